/** The editor's form loses no field: neither those that are declared nor those that a later API adds. */

import { describe, expect, it } from "vitest";
import { BOUNDS, CALL, FOLLOWING, JOB, labelOf, POLICIES, TIMINGS } from "../src/lib/boxes";
import { anchored, BOXES, type Box, type Definition, definitionOf, type Form, formOf } from "../src/lib/definition";

/** A value of the kind of a field, which is not its default. */
function exampleOf({ path, kind, words = [] }: (typeof BOXES)[Box]): unknown {
  const values: Record<string, unknown> = { list: ["a", "b"], json: [{ a: 1 }], text: `a ${path}`, duration: "90m" };
  return kind === "choice" ? words.at(-1) : (values[kind] ?? 7);
}

/** A value for each field below a path, by name. */
function all(at: string): Definition {
  const below = Object.values(BOXES).filter(({ path }) => path.startsWith(at) && !path.slice(at.length).includes("."));
  return Object.fromEntries(below.map((field) => [field.path.slice(at.length), exampleOf(field)]));
}

const { target: _more, ...job } = all("");
const { cron, every, at, schedules, ...always } = all("schedule.");
const exclude = all("schedule.exclude.");
const pace = all("schedule.pace.");
const TARGETS: Definition[] = [
  { kind: "http", url: "https://hooks.example.com/x", headers: { "x-team": "a" }, envelope: false },
  { kind: "lambda", arn: "a", role_arn: "r", external_id: "billing", invocation: "Event", envelope: false },
  { kind: "sqs", arn: "a", message_group_id: "g" },
];
const FULL: [string, Definition][] = [{ cron }, { every }, { every: 90 }, { at }, { schedules }].flatMap((when) =>
  TARGETS.map((target): [string, Definition] => [
    `${JSON.stringify(when)} ${target.kind}`,
    {
      ...job,
      schedule: { ...always, ...when, exclude, pace },
      retry: all("retry."),
      alert: all("alert."),
      concurrency: all("concurrency."),
      target,
    },
  ]),
);

/** With a field that the form cannot know, and an explicit null, in each object. */
function withOthers(definition: Definition): Definition {
  const more = (value: unknown) => ({ ...(value as Definition), later: { a: [1] }, absent: null });
  const schedule = definition.schedule as Definition;
  return more({
    ...definition,
    schedule: more({ ...schedule, exclude: more(schedule.exclude) }),
    retry: more(definition.retry),
    alert: more(definition.alert),
    target: more(definition.target),
  });
}

const [[, FIRST = {}] = []] = FULL;

describe("a form of a stored job", () => {
  it("is tested with every field", () => {
    expect(Object.keys(FIRST)).toEqual(expect.arrayContaining(["owner", "runbook", "on_crash", "catch_up"]));
    expect(FIRST.schedule).toMatchObject({ spread_s: 7, exclude: { calendars: ["a", "b"] } });
    expect(Object.keys(FIRST.retry as Definition)).toHaveLength(5);
  });

  it.each(FULL)("gives it back: %s", (_, definition) => {
    for (const stored of [definition, withOthers(definition)]) {
      expect(definitionOf(formOf("x", stored), stored)).toEqual({
        definition: stored,
        schedule: stored.schedule,
        problems: {},
      });
    }
  });

  it("has a box for every field: a new job with the same texts is the same job", () => {
    for (const [, definition] of FULL) {
      const { anchor, timezone, dialect, dst, ...both } = definition.schedule as Definition;
      const ofZone = both.at ? { timezone } : { timezone, dialect, dst };
      const hidden = both.every ? { anchor } : ofZone;
      const { exclude: _, include_calendars: __, on_excluded: ___, ...ofAll } = both;
      const schedule = both.schedules ? ofAll : { ...both, ...hidden };
      const made = definitionOf(formOf("x", { ...definition, schedule }));
      expect(made.definition).toEqual({ ...definition, schedule });
    }
  });

  it.each<[keyof Form, string, string[], unknown]>([
    ["name", "New", ["name"], "New"],
    ["owner", "", ["owner"], undefined],
    ["spread_s", "0", ["schedule", "spread_s"], 0],
    ["spread_s", "", ["schedule", "spread_s"], undefined],
    ["exclude_dates", "", ["schedule", "exclude", "dates"], undefined],
    ["tags", "a, b", ["tags"], ["a", "b"]],
    ["factor", "2.5", ["retry", "factor"], 2.5],
    ["on_crash", "retry", ["on_crash"], "retry"],
    ["after_completion", "keep", ["after_completion"], "keep"],
    ["payload", "", ["payload"], null],
  ])("changes only what was changed: %s to '%s'", (field, text, path, value) => {
    const stored = withOthers(FIRST);
    const wanted = structuredClone(stored);
    const inside = path.slice(0, -1).reduce<Definition>((outer, name) => outer[name] as Definition, wanted);
    const last = path.at(-1) ?? "";
    if (value === undefined) delete inside[last];
    else inside[last] = value;
    expect(definitionOf({ ...formOf("x", stored), [field]: text }, stored).definition).toEqual(wanted);
  });

  it("keeps all that the new kind has when its kind of schedule changes", () => {
    const {
      cron: _,
      timezone: __,
      anchor: ___,
      dialect: _d,
      dst: _r,
      ...kept
    } = withOthers(FIRST).schedule as Definition;
    const { anchor: ____, ...stored } = withOthers(FIRST).schedule as Definition;
    const before = { ...withOthers(FIRST), schedule: stored };
    const form: Form = { ...formOf("x", before), mode: "every", every: "120" };
    expect(definitionOf(form, before).schedule).toEqual({ ...kept, every: 120 });
  });
});

describe("the envelope", () => {
  it("is a flag of the target, whose other fields stay", () => {
    const target = { kind: "sqs", arn: "a", message_group_id: "g" };
    const form = formOf("x", { target });
    const alone = definitionOf({ ...form, target_envelope: "false" }, { target }).definition;
    expect(alone.target).toEqual({ ...target, envelope: false });
    expect(definitionOf({ ...formOf("x", alone), target_envelope: "" }, alone).definition.target).toEqual(target);
  });
});

describe("a target", () => {
  const target = { kind: "lambda", arn: "a", role_arn: "r", external_id: "e", qualifier: null };
  const form = formOf("x", { target });

  it("has each field in one place", () => {
    expect(form).toMatchObject({ target_kind: "lambda", target_arn: "a", target_role_arn: "r" });
    expect(JSON.parse(form.target_more)).toEqual({ external_id: "e" });
    const twice = definitionOf({ ...form, target_more: '{"arn": "b"}' }, { target });
    expect(twice.problems).toEqual({ target_more: "cannot be read: arn has a field of its own" });
    expect(Object.keys(definitionOf({ ...form, target_more: "[1]" }, { target }).problems)).toEqual(["target_more"]);
  });

  it("of another kind takes nothing over", () => {
    const changed = { ...form, target_kind: "http", target_url: "https://a.example.com", target_more: "" };
    expect(definitionOf(changed, { target }).definition.target).toEqual({ kind: "http", url: "https://a.example.com" });
  });
});

describe("an interval", () => {
  const job = { schedule: { every: "1h" }, schedule_resolved: { every_s: 3600, anchor_at: "2026-11-23T20:30:21Z" } };

  it.each([
    [{ every: "1h" }, job, "2026-11-23T20:30:21Z"],
    [{ every: "2h" }, job, undefined],
    [{ every: "1h", anchor: "2026-01-01T00:00:00Z" }, job, "2026-01-01T00:00:00Z"],
    [{ every: "1h" }, { ...job, schedule: { every: "1h", anchor: "2026-01-01T00:00:00Z" } }, undefined],
    [{ cron: "0 0 * * *" }, job, undefined],
    [{ every: "1h" }, null, undefined],
  ])("%o of a job keeps its anchor where the API keeps it", (schedule, before, anchor) =>
    expect(anchored(schedule, before).anchor).toBe(anchor),
  );
});

describe("a field that is added to the declaration", () => {
  const field = { path: "schedule.depth_s", kind: "integer", default: 7 };

  it("has a box that is called as the field", () => {
    expect(labelOf("depth_s", field)).toEqual(["schedule: depth s", "docs/job.md says what it does.", undefined]);
  });

  it("offers its words, and of a part also nothing, which is the default", () => {
    const words = { ...field, kind: "choice", words: ["calm", "wild"] };
    expect(labelOf("mood", { ...words, path: "mood" })[2]).toEqual({ calm: "calm", wild: "wild" });
    expect(labelOf("mood", words)[2]).toEqual({ "": "as usual", calm: "calm", wild: "wild" });
  });

  it("leaves no field without a box", () => {
    const placed = [JOB, ...Object.values(TIMINGS), CALL, POLICIES, BOUNDS, FOLLOWING].flat();
    const addresses = ["target_kind", "target_arn", "target_url"];
    expect([...new Set([...placed, ...addresses])].sort()).toEqual(Object.keys(BOXES).sort());
  });
});
