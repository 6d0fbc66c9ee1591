import type { Shapes } from "minute8-client";
import { describe, expect, it, vi } from "vitest";
import { levelOf } from "../src/draw/heat";
import { levels } from "../src/draw/plot";
import { mostOf } from "../src/draw/trend";
import { stepsOf } from "../src/draw/waterfall";
import { added } from "../src/lib/coming";
import { cli, curl, quoted, targetOf } from "../src/lib/commands";
import { BLANK, definitionOf, fieldOf } from "../src/lib/definition";
import { consequences, diffOf, shortly } from "../src/lib/diff";
import { changedFrom, type Fire, gathered, type Known, MOST_FIRES, stateOfFire, updated } from "../src/lib/expected";
import { type Group, merged } from "../src/lib/groups";
import { figureOf, healthOf } from "../src/lib/health";
import { type Job, type JobFilter, queryOf, type Run } from "../src/lib/jobs";
import { linked } from "../src/lib/links";
import { lookOf, stateOfBackfill, stateOfRun } from "../src/lib/states";
import { minutesOf, movedTogether, nextChange } from "../src/lib/zones";
import { byDay } from "../src/views/audit";
import { alike, payloadOf } from "../src/views/run";
import { whyOf } from "../src/views/run-table";
import { secondsWith } from "../src/views/upcoming";

vi.hoisted(() => vi.stubGlobal("location", { hash: "", href: "https://minute8.test/console" }));
vi.mock("../src/lib/session", () => ({ api: () => undefined, session: { value: null }, may: () => false }));

const at = (text: string) => Date.parse(text);

describe("a difference", () => {
  it("names the fields that differ, and no order of keys", () => {
    const before = { schedule: { cron: "0 1 * * *", timezone: "UTC" }, tags: ["a"], payload: { a: 1, b: 2 } };
    const after = { payload: { b: 2, a: 1 }, tags: ["a", "b"], schedule: { cron: "0 2 * * *", timezone: "UTC" } };
    expect(diffOf(before, after)).toEqual([
      { field: "schedule.cron", before: "0 1 * * *", after: "0 2 * * *" },
      { field: "tags", before: ["a"], after: ["a", "b"] },
    ]);
    expect(diffOf({ a: null }, {})).toEqual([]);
    expect(diffOf({ a: { b: 1 } }, { a: 5 })).toEqual([{ field: "a", before: { b: 1 }, after: 5 }]);
  });
  it("of fire times says what appears and vanishes, as far as both lists reach", () => {
    const before = ["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"];
    const after = ["2026-01-01T00:00:00Z", "2026-01-01T12:00:00Z", "2026-01-02T00:00:00Z"];
    expect(consequences(before, after)).toEqual({ stay: 2, vanish: [], appear: ["2026-01-01T12:00:00Z"] });
    expect(consequences(before, [])).toEqual({ stay: 0, vanish: before, appear: [] });
  });
  it("is short", () => {
    expect(shortly(null)).toBe("–");
    expect(shortly("x".repeat(1000)).length).toBeLessThan(170);
  });
});

describe("clock changes", () => {
  it("are found to the minute", () => {
    const spring = nextChange("Europe/Paris", at("2026-01-01T00:00:00Z"));
    expect(spring).toEqual({ at: at("2026-03-29T01:00:00Z"), before: "+01:00", after: "+02:00", minutes: 60 });
    const autumn = nextChange("America/New_York", at("2026-07-01T00:00:00Z"));
    expect(autumn).toEqual({ at: at("2026-11-01T06:00:00Z"), before: "-04:00", after: "-05:00", minutes: -60 });
    expect(nextChange("Australia/Lord_Howe", at("2026-01-01T00:00:00Z"))?.minutes).toBe(-30);
  });
  it("are none where there are none", () => {
    expect(nextChange("UTC", 0)).toBeNull();
    expect(nextChange("Asia/Tokyo", at("2026-01-01T00:00:00Z"))).toBeNull();
  });
  it("that move jobs in the same way are one, the earliest first", () => {
    const moved = (job_id: string, timezone: string, text = "fires once") => ({
      ...{ job_id, timezone, text },
      change_at: timezone === "Europe/Paris" ? "2026-03-29T01:00:00Z" : "2026-03-08T07:00:00Z",
    });
    const [a, b, c, d] = ["a", "b", "c", "d"].map((id, n) => moved(id, n < 3 ? "Europe/Paris" : "America/New_York"));
    const other = moved("e", "Europe/Paris", "is skipped");
    if (!(a && b && c && d)) throw new Error();
    expect(movedTogether([a, b, other, c, d])).toEqual([[d], [a, b, c], [other]]);
  });
  it("know offsets of all kinds", () => {
    expect([minutesOf("+05:45"), minutesOf("-03:30"), minutesOf("")]).toEqual([345, -210, 0]);
  });
});

describe("a run's way", () => {
  const run = {
    due_at: "2026-01-01T00:00:00Z",
    waited_s: 0.7,
    status: "succeeded",
    attempts: [
      {
        attempt: 1,
        started_at: "2026-01-01T00:00:01Z",
        finished_at: "2026-01-01T00:00:03Z",
        outcome: "failed",
        error_type: "Boom",
      },
      { attempt: 2, started_at: "2026-01-01T00:00:33Z", finished_at: "2026-01-01T00:00:34Z", outcome: "succeeded" },
    ],
  } as Shapes["Run"];
  it("has each wait and each attempt, without gaps", () => {
    const steps = stepsOf(run, 0);
    expect(steps.map(({ name, tone }) => `${name} ${tone}`)).toEqual([
      "waited for its turn wait",
      "queued, until it was claimed wait",
      "attempt 1: claimed, called, answered bad",
      "waited to retry wait",
      "attempt 2: claimed, called, answered good",
    ]);
    for (const [n, step] of steps.slice(1).entries()) expect(step.from).toBe(steps[n]?.until);
    expect(steps[2]?.result).toBe("failed: Boom");
  });
  it("says in a list for what it waits", () => {
    const detail = "1 run of the concurrency key crm is going, such as a:b; it waits";
    expect(whyOf({ status: "queued", detail })).toBe(detail);
    expect(whyOf({ status: "succeeded" })).toBe("");
    expect(stepsOf({ ...run, status: "queued", attempts: [], detail }, at("2026-01-01T00:00:09Z")).at(-1)?.result).toBe(
      detail,
    );
  });
  it("ends at the present while it goes on, and shows the wait to come", () => {
    const [first] = run.attempts;
    if (!first) throw new Error("no attempt");
    const { finished_at: _, ...open } = { ...first, outcome: "running" as const };
    const present = at("2026-01-01T00:00:09Z");
    expect(stepsOf({ ...run, status: "running", attempts: [open] }, present).at(-1)).toMatchObject({
      until: present,
      tone: "busy",
    });
    const waiting = { ...run, status: "retrying" as const, attempts: [first], next_attempt_at: "2026-01-01T00:00:40Z" };
    expect(stepsOf(waiting, present).at(-1)).toMatchObject({
      name: "waits to retry",
      until: at("2026-01-01T00:00:40Z"),
    });
    expect(stepsOf({ ...run, status: "queued", attempts: [] }, present)).toMatchObject([
      { name: "waits for its turn", until: present, tone: "wait" },
    ]);
  });
});

describe("expected against actual", () => {
  const fire = (status: string, run?: string) =>
    ({ status, ...(run ? { run: { status: run, execution_id: "x" } } : {}) }) as Fire;
  it("shows what became of the run, where that is worse", () => {
    expect(stateOfFire(fire("on_time", "failed"))).toBe("failed");
    expect(stateOfFire(fire("on_time", "succeeded"))).toBe("on_time");
    expect(stateOfFire(fire("no_record"))).toBe("no_record");
  });
  it("has a look of its own for every status that the API knows", () => {
    for (const status of [
      "on_time",
      "late",
      "running",
      "queued",
      "skipped",
      "missed",
      "cancelled",
      "to_come",
      "overdue",
      "no_record",
      "not_kept",
    ]) {
      expect(lookOf(status).word).not.toBe("");
    }
    expect(lookOf("brand_new")).toEqual({ tone: "quiet", shape: "ring", word: "brand new" });
    expect(stateOfRun({ status: "skipped", reason: "missed" })).toBe("missed");
    expect(stateOfRun({ status: "skipped", reason: "paused" })).toBe("skipped");
  });

  it.each([
    [null, 1, 2, "under_way"],
    [null, 2, 2, "all_enqueued"],
    ["2026-01-01T00:00:00Z", 1, 2, "cancelled"],
  ])("of a backfill, cancelled at %s, with %i of %i enqueued, are %s", (cancelled_at, sent, total, state) => {
    expect(stateOfBackfill({ cancelled_at, sent, total })).toBe(state);
  });
});

describe("counts", () => {
  it("of pages add up by minute", () => {
    const page = (...minutes: [string, number][]) => ({
      minutes: minutes.map(([minute_at, executions]) => ({ minute_at, executions })),
    });
    const first = page(["2026-01-01T00:01:00Z", 2], ["2026-01-01T00:00:00Z", 1]);
    expect(added([first, page(["2026-01-01T00:01:00Z", 5])])).toEqual([
      [at("2026-01-01T00:00:00Z"), 1],
      [at("2026-01-01T00:01:00Z"), 7],
    ]);
  });
  it("of one group on two pages are one group", () => {
    const group = {
      job_id: "a",
      fingerprint: "f",
      count: 2,
      hours: [{ at: "1", failed: 2 }],
      first_at: "1",
      last_at: "5",
      last_execution_id: "x",
    } as Group;
    const later = { ...group, count: 3, first_at: "0", last_at: "7", last_execution_id: "y" };
    const [found, other] = merged([group, { ...group, job_id: "b", last_at: "6" }, later]);
    expect(found).toMatchObject({ job_id: "a", count: 5, first_at: "0", last_at: "7", last_execution_id: "y" });
    expect(found?.hours).toHaveLength(2);
    expect(other?.job_id).toBe("b");
  });
});

describe("a job's health", () => {
  const job = { job_id: "a", state: "active", next_fire_at: "2026-01-01T00:00:00Z" } as Job;
  const known = { last_run: null, outcomes: [], failures_in_row: 0, not_running: null, overdue: null };
  it("is late where the API says so, not because the list that was loaded grows old", () => {
    expect(healthOf(job, undefined).state).toBe("unknown");
    expect(healthOf(job, known).state).toBe("unknown");
    const overdue = { fire_at: "", due_at: "", late_s: 180, detail: "" };
    expect(healthOf(job, { ...known, overdue })).toMatchObject({ state: "overdue", lateS: 180 });
    expect(healthOf({ ...job, state: "paused" }, { ...known, overdue }).state).toBe("paused");
  });
  it("is ended where nothing comes any more, unless that failed or is late", () => {
    const last = { ...job, next_fire_at: null };
    expect(healthOf(last, known).state).toBe("ended");
    expect(healthOf(last, { ...known, failures_in_row: 1 }).state).toBe("failing");
    expect(healthOf({ ...last, state: "paused" }, known).state).toBe("paused");
  });
  it("does not run where the API says so, also when that paused it", () => {
    const stopped = { ...known, not_running: "paused_after_failures" };
    expect(healthOf({ ...job, state: "paused" }, stopped).state).toBe("stopped");
    expect(healthOf({ ...job, next_fire_at: null }, { ...known, not_running: "ended" }).state).toBe("stopped");
  });
  it("turns the newest outcome to the right", () => {
    const outcomes = [
      { fire_at: "", status: "failed" as const, trigger: "schedule" },
      { fire_at: "", status: "succeeded" as const, trigger: "schedule" },
    ];
    const found = healthOf(job, { ...known, outcomes, failures_in_row: 1 });
    expect(found).toMatchObject({ state: "failing", outcomes: ["succeeded", "failed"] });
  });
});

describe("a figure", () => {
  it("of a count that is not known is no good news", () => {
    expect(figureOf(undefined)).toEqual({ value: "–", tone: undefined });
    expect(figureOf(0)).toEqual({ value: "0", tone: "good" });
    expect(figureOf(1200, "late")).toEqual({ value: "1,200", tone: "late" });
    expect(figureOf(0, "bad", false)).toEqual({ value: "0+", tone: undefined });
    expect(figureOf(3, "bad", false)).toEqual({ value: "3+", tone: "bad" });
  });
});

describe("a list of jobs, for the API", () => {
  it.each<[JobFilter, object]>([
    [{}, { sort: "failures" }],
    [
      { search: "night ly", sort: "next" },
      { q: "night ly", sort: "next" },
    ],
    // Signs are no words, and an address can say anything.
    [{ search: "-", state: "gone", kind: "x", sort: "x" }, { sort: "failures" }],
    [
      { state: "paused", tag: "eu", kind: "sqs", failing: "yes" },
      { state: "paused", tag: "eu", kind: "sqs", failing: true },
    ],
    [{ cursor: "c", before: "50" }, { cursor: "c" }],
  ])("%o is %o", (filter, query) => {
    expect(queryOf(filter)).toEqual({ limit: 50, health: true, sort: "failures", ...query });
  });
});

describe("addresses in a text", () => {
  it("are links, of http and https alone", () => {
    expect(linked("see https://a.com/b, or (http://c.com).", 99)).toEqual([
      { shown: "see " },
      { shown: "https://a.com/b", href: "https://a.com/b" },
      { shown: ", or (" },
      { shown: "http://c.com", href: "http://c.com" },
      { shown: ")." },
    ]);
    expect(linked("javascript:x ftp://a", 99)).toEqual([{ shown: "javascript:x ftp://a" }]);
    expect(linked('https://a"onclick=x', 99)).toEqual([
      { shown: "https://a", href: "https://a" },
      { shown: '"onclick=x' },
    ]);
  });
  it("stay whole where the text is cut", () => {
    const [a, b] = ["https://a.com", "https://b.com"];
    expect(linked(`${a} ${b}`, 27)).toEqual([{ shown: a, href: a }, { shown: " " }, { shown: b, href: b }]);
    expect(linked(`${a} ${b}`, 20)).toEqual([{ shown: a, href: a }, { shown: " " }, { shown: "https:…", href: b }]);
    expect(linked(`${a} ${b}`, 13)).toEqual([{ shown: a, href: a }, { shown: "…" }]);
  });
});

describe("due instants of many pages", () => {
  const fire = { fire_at: "2026-01-01T00:00:00Z", status: "on_time" } as Fire;
  async function* pages(count: number, each: number) {
    for (let n = 1; n <= count; n++)
      yield { expected: Array<Fire>(each).fill(fire), next_cursor: n < count ? "more" : null };
  }
  it.each([
    [3, 2, 6, true],
    [1, 0, 0, true],
    [4, MOST_FIRES / 4, MOST_FIRES, true],
    [9, MOST_FIRES / 4, MOST_FIRES, false],
  ])("%i with %i each are %i, whole: %s", async (count, each, total, complete) => {
    const found = await gathered(pages(count, each));
    expect([found.fires.length, found.complete]).toEqual([total, complete]);
  });
});

describe("what was read of the past", () => {
  const noon = at("2026-01-01T12:00:00Z");
  const minute = 60_000;
  const fire = (minutes: number, status: string, run?: string) =>
    ({
      fire_at: new Date(noon + minutes * minute).toISOString(),
      status,
      ...(run ? { run: { status: run } } : {}),
    }) as Fire;
  const past = (...fires: Fire[]): Known => ({ fires, complete: true, readAt: noon, wholeAt: noon });

  it.each([
    ["nothing is open", [fire(-30, "on_time", "succeeded"), fire(-40, "missed"), fire(-1, "late", "failed")], -2],
    ["a run goes on", [fire(-30, "running"), fire(-7, "queued")], -30],
    ["a run is tried again", [fire(-20, "on_time", "retrying")], -20],
    ["one has not started", [fire(-3, "overdue"), fire(0, "to_come")], -3],
    ["one has not ended for hours", [fire(-300, "running")], -60],
  ])("may have changed for some time: %s", (_, fires, minutes) => {
    expect(changedFrom(past(...fires), noon + minute)).toBe(noon + minutes * minute);
  });

  it("is read whole again after a quarter of an hour, or if it was not whole", () => {
    expect(changedFrom(past(), noon + 15 * minute - 1)).toBeDefined();
    expect(changedFrom(past(), noon + 15 * minute)).toBeUndefined();
    expect(changedFrom({ ...past(), complete: false }, noon + minute)).toBeUndefined();
  });

  it("keeps what is older than the answer, and forgets what the day has left behind", () => {
    const before = [fire(-61, "missed"), fire(-60, "late"), fire(-10, "on_time"), fire(-5, "running")];
    const since = [fire(-5, "on_time"), fire(1, "on_time")];
    const found = updated(before, since, noon - 60 * minute, noon - 5 * minute);
    expect(found).toEqual([before[1], before[2], ...since]);
  });
});

describe("a form", () => {
  it("leaves out what is empty, and keeps what is not a number for the API to refuse", () => {
    const { definition: made } = definitionOf({ ...BLANK, timeout_s: "1x" });
    expect(made.timeout_s).toBe("1x");
    expect(made).not.toHaveProperty("retry");
    expect(made.schedule).toEqual({ cron: "0 9 * * *" });
    expect(definitionOf({ ...BLANK, mode: "every", timezone: "Europe/Paris" }).schedule).toEqual({ every: "1h" });
  });
  it("says where JSON is wrong", () => {
    expect(definitionOf({ ...BLANK, payload: "{" }).problems.payload).toMatch(/^cannot be read/);
  });
  it("knows the field of each of the API's errors", () => {
    expect(fieldOf("schedule.cron")).toBe("cron");
    expect(fieldOf("schedule.exclude.calendars.0")).toBe("exclude_calendars");
    expect(fieldOf("schedule")).toBe("cron");
    expect(fieldOf("retry.base_s")).toBe("base_s");
    expect(fieldOf("target.arn", "lambda")).toBe("target_arn");
    expect(fieldOf("target.method", "http")).toBe("target_more");
    expect(fieldOf("target.arn", "http")).toBe("target_more");
    expect(fieldOf("nonsense")).toBeUndefined();
  });
});

describe("a backfill", () => {
  const whole = { sent: 3, total: 3 };
  const runs = (failed: number, open: number, all: number) => ({ failed, open, all });
  it.each([
    [{ ...whole, sent: 2 }, undefined, "under_way"],
    [{ ...whole, cancelled_at: "now" }, runs(1, 0, 3), "cancelled"],
    [whole, undefined, "all_enqueued"],
    [whole, runs(0, 1, 3), "under_way"],
    [whole, runs(1, 1, 3), "failed"],
    [whole, runs(0, 0, 3), "succeeded"],
    // No good news of a part.
    [whole, runs(0, 0, 2), "all_enqueued"],
  ] as const)("%o whose runs are %o is %s", (backfill, found, state) =>
    expect(stateOfBackfill(backfill, found)).toBe(state),
  );
});

describe("a run's page", () => {
  const attempt = (n: number, error: string) =>
    ({ attempt: n, started_at: `2026-01-01T00:0${n}:00Z`, outcome: "failed", error }) as Run["attempts"][number];
  const run = { attempts: [attempt(1, "a"), attempt(2, "b"), attempt(3, "b")] } as Run;
  it("has attempts that ended alike together, the last first", () => {
    expect(alike(run.attempts).map((group) => group.map((member) => member.attempt))).toEqual([[3, 2], [1]]);
    expect(alike([])).toEqual([]);
  });
  it("knows the payload of a run that had its own, or whose job has not changed since", () => {
    const job = { payload: { job: 1 }, updated_at: "2026-01-01T00:00:59Z" } as unknown as Job;
    expect(payloadOf({ ...run, payload: null }, job)).toEqual({ payload: null, isOwn: true });
    expect(payloadOf(run, job)).toEqual({ payload: { job: 1 }, isOwn: false });
    expect(payloadOf(run, { ...job, updated_at: "2026-01-01T00:01:01Z" })).toBeUndefined();
    expect(payloadOf(run, undefined)).toBeUndefined();
  });
});

describe("the audit by day", () => {
  it("has what one key did in a row together, within a day of the zone", () => {
    const entry = (instant: string, action: string, by: string) =>
      ({ entry_id: instant, at: instant, action, by }) as Shapes["AuditEntry"];
    const entries = [
      entry("2026-01-02T00:30:00Z", "job.created", "a"),
      entry("2026-01-01T23:30:00Z", "job.created", "a"),
      entry("2026-01-01T22:30:00Z", "job.created", "a"),
      entry("2026-01-01T22:00:00Z", "job.created", "b"),
    ];
    const sizes = (zone: string) =>
      byDay(entries, zone).map((day) => [day.date, ...day.alike.map((entries) => entries.length)]);
    expect(sizes("UTC")).toEqual([
      ["2026-01-02", 1],
      ["2026-01-01", 2, 1],
    ]);
    expect(sizes("Asia/Kathmandu")).toEqual([["2026-01-02", 3, 1]]);
  });
});

describe("commands", () => {
  it("call what is one address, never a pattern of some", () => {
    expect(targetOf(["*", "arn:aws:lambda:*:1:function:a", "arn:aws:sqs:us-east-1:1:q"])).toBe(
      "arn:aws:sqs:us-east-1:1:q",
    );
    expect(targetOf(["*.example.com", "example.com:8443"])).toBe("https://example.com:8443/");
    expect(targetOf(["*", "arn:aws:lambda:*:1:function:a-?"])).toBeUndefined();
    expect(targetOf([])).toBeUndefined();
  });
  it("are quoted for a shell, and hold no key", () => {
    expect(quoted("it's; rm -rf /")).toBe(`'it'\\''s; rm -rf /'`);
    expect(cli("runs", "show", "t:j:20260101T000000Z")).toBe("minute8 runs show t:j:20260101T000000Z");
    expect(curl("POST", "https://x/v1/y", { a: "b" })).toContain(`'{"a":"b"}'`);
    expect(curl("GET", "https://x")).toContain("$MINUTE8_KEY");
  });
});

describe("scales", () => {
  it("have round levels", () => {
    expect(levels(1.7)).toEqual([0, 0.5, 1, 1.5]);
    expect(levels(0.003)).toEqual([0, 0.001, 0.002, 0.003]);
    expect(levels(0)).toEqual([0]);
  });
  it("tell little from much", () => {
    expect([null, 0, 0.01, 0.1, 1].map(levelOf)).toEqual(["none", "level0", "level1", "level2", "level3"]);
  });
});

describe("what stands beside each other", () => {
  it("has one scale: the most failures of a bar of all trends", () => {
    const day = { from: at("2026-01-01T00:00:00Z"), until: at("2026-01-02T00:00:00Z") };
    const trend = (...failed: number[]) => ({
      ...day,
      hours: failed.map((count, hour) => ({ at: `2026-01-01T0${hour}:00:00Z`, failed: count })),
    });
    expect(mostOf([trend(2, 7), trend(12), trend()])).toBe(12);
    expect(mostOf([])).toBe(1);
  });
  it("names some jobs of a minute by second, and each second of which none is named", () => {
    const second = (n: number, executions: number) => ({ at: `2026-01-01T00:00:0${n}Z`, executions });
    const job = (id: string, n: number) => ({ job_id: id, name: "", due_at: `2026-01-01T00:00:0${n}Z` });
    const [a, b, c] = [job("a", 0), job("b", 0), job("c", 1)];
    const seconds = [second(0, 2), second(1, 1), second(2, 9)];
    const shown = secondsWith(seconds, [a, b, c] as never, [b] as never);
    expect(shown.map(({ jobs }) => jobs.map((due) => due.job_id))).toEqual([["b"], []]);
    expect(shown.map(({ executions }) => executions)).toEqual([2, 9]);
  });
});
