/** A job's definition as a form holds it: flat texts, and how they become JSON and back. Pure. */

export interface Form {
  job_id: string;
  name: string;
  tags: string;
  owner: string;
  runbook: string;
  mode: "cron" | "every" | "at" | "schedules";
  cron: string;
  every: string;
  at: string;
  /** Several schedules as JSON. */
  schedules: string;
  timezone: string;
  dialect: string;
  dst: string;
  anchor: string;
  start_at: string;
  end_at: string;
  exclude_dates: string;
  exclude_weekdays: string;
  exclude_calendars: string;
  max_runs: string;
  include_calendars: string;
  on_excluded: string;
  spread_s: string;
  jitter_s: string;
  pace_per_second: string;
  pace_tolerance_s: string;
  pace_key: string;
  target_kind: string;
  target_arn: string;
  target_url: string;
  target_role_arn: string;
  /** Empty: in an envelope, as without a word. */
  target_envelope: string;
  /** The other fields of the target as JSON; empty if it has none. */
  target_more: string;
  /** As JSON. */
  payload: string;
  timeout_s: string;
  max_attempts: string;
  base_s: string;
  factor: string;
  cap_s: string;
  max_age_s: string;
  start_deadline_s: string;
  catch_up: string;
  overlap: string;
  on_crash: string;
  after_completion: string;
  completion: string;
  callback_timeout_s: string;
  pause_after_failures: string;
  concurrency_key: string;
  concurrency_limit: string;
  when_full: string;
  max_wait_s: string;
  longer_than_s: string;
  shorter_than_s: string;
  no_success_for_s: string;
  dead_letter: string;
}

export type Definition = Record<string, unknown>;

type Box = Exclude<keyof Form, "job_id" | "mode">;
type Kind = "text" | "number" | "list" | "json" | "choice" | "flag" | "others";

/** The path of each box in the definition, and how its text is read. */
const BOXES: Record<Box, [path: string, kind: Kind]> = {
  name: ["name", "text"],
  tags: ["tags", "list"],
  owner: ["owner", "text"],
  runbook: ["runbook", "text"],
  cron: ["schedule.cron", "text"],
  every: ["schedule.every", "number"],
  at: ["schedule.at", "text"],
  schedules: ["schedule.schedules", "json"],
  timezone: ["schedule.timezone", "text"],
  dialect: ["schedule.dialect", "text"],
  dst: ["schedule.dst", "text"],
  anchor: ["schedule.anchor", "text"],
  start_at: ["schedule.start_at", "text"],
  end_at: ["schedule.end_at", "text"],
  exclude_dates: ["schedule.exclude.dates", "list"],
  exclude_weekdays: ["schedule.exclude.weekdays", "list"],
  exclude_calendars: ["schedule.exclude.calendars", "list"],
  max_runs: ["schedule.max_runs", "number"],
  include_calendars: ["schedule.include_calendars", "list"],
  on_excluded: ["schedule.on_excluded", "text"],
  spread_s: ["schedule.spread_s", "number"],
  jitter_s: ["schedule.jitter_s", "number"],
  pace_per_second: ["schedule.pace.per_second", "number"],
  pace_tolerance_s: ["schedule.pace.tolerance_s", "number"],
  pace_key: ["schedule.pace.key", "text"],
  payload: ["payload", "json"],
  timeout_s: ["timeout_s", "number"],
  max_attempts: ["retry.max_attempts", "number"],
  base_s: ["retry.base_s", "number"],
  factor: ["retry.factor", "number"],
  cap_s: ["retry.cap_s", "number"],
  max_age_s: ["retry.max_age_s", "number"],
  start_deadline_s: ["start_deadline_s", "number"],
  catch_up: ["catch_up", "choice"],
  overlap: ["overlap", "choice"],
  on_crash: ["on_crash", "choice"],
  after_completion: ["after_completion", "choice"],
  completion: ["completion", "choice"],
  callback_timeout_s: ["callback_timeout_s", "number"],
  pause_after_failures: ["pause_after_failures", "number"],
  concurrency_key: ["concurrency.key", "text"],
  concurrency_limit: ["concurrency.limit", "number"],
  when_full: ["concurrency.when_full", "text"],
  max_wait_s: ["concurrency.max_wait_s", "number"],
  longer_than_s: ["alert.longer_than_s", "number"],
  shorter_than_s: ["alert.shorter_than_s", "number"],
  no_success_for_s: ["alert.no_success_for_s", "number"],
  dead_letter: ["dead_letter", "text"],
  target_kind: ["target.kind", "text"],
  target_arn: ["target.arn", "text"],
  target_url: ["target.url", "text"],
  target_role_arn: ["target.role_arn", "text"],
  target_envelope: ["target.envelope", "flag"],
  // After those with a box: it holds what they leave.
  target_more: ["target", "others"],
};
const OF_TARGET: readonly Box[] = ["target_arn", "target_url", "target_role_arn"];

/** The boxes of the target that a kind has. */
function boxesOf(kind: string): Box[] {
  return OF_TARGET.filter((name) => (kind === "http") === (name === "target_url"));
}

/** The fields of a target that have boxes of their own. */
function ownOf(kind: string): string[] {
  return ["kind", "envelope", ...boxesOf(kind).map((name) => name.replace("target_", ""))];
}

const NAMES = Object.keys(BOXES) as Box[];

const EMPTY = Object.fromEntries(["job_id", ...NAMES].map((name) => [name, ""])) as unknown as Form;

/** The form of a new job. */
export const BLANK: Form = {
  ...EMPTY,
  ...{ mode: "cron", cron: "0 9 * * *", every: "1h" },
  schedules: '[\n  {"cron": "0 9 * * 1-5"},\n  {"cron": "0 12 * * 6", "payload_patch": {}}\n]',
  ...{ target_kind: "lambda", payload: "null" },
  ...{ catch_up: "latest", overlap: "allow", on_crash: "retry", after_completion: "keep", completion: "answer" },
};

/** The form of a definition. Boxes for what a job does not have stay empty. */
export function formOf(id: string, definition: Definition): Form {
  const mode =
    (["every", "at", "schedules"] as const).find((kind) => valueAt(definition, `schedule.${kind}`) != null) ?? "cron";
  const texts = NAMES.map((name) => [name, textOf(name, valueAt(definition, BOXES[name][0]))]);
  return { ...BLANK, ...Object.fromEntries(texts), job_id: id, mode };
}

function textOf(name: Box, value: unknown): string {
  const [, kind] = BOXES[name];
  if (kind === "others") return othersOf(isObject(value) ? value : {});
  if (kind === "flag") return value === false ? "false" : "";
  if (name === "schedules" && value == null) return "";
  if (kind === "json") return JSON.stringify(value ?? null, null, 2);
  if (value === null || value === undefined) return kind === "choice" ? BLANK[name] : "";
  return kind === "list" && Array.isArray(value) ? value.join(", ") : String(value);
}

/** What of a target has no box, as JSON. */
function othersOf(target: Definition): string {
  const own = ownOf(String(target.kind));
  const others = Object.entries(target).filter(([name, value]) => value !== null && !own.includes(name));
  return others.length ? JSON.stringify(Object.fromEntries(others), null, 2) : "";
}

/** The target with other fields instead of those that have no box. Throws what is wrong with them. */
function withOthers(target: unknown, others: unknown): Definition {
  if (!isObject(others)) throw new Error("an object is needed");
  const before = isObject(target) ? target : {};
  const own = ownOf(String(before.kind));
  const twice = own.find((name) => name in others);
  if (twice) throw new Error(`${twice} has a field of its own`);
  return { ...Object.fromEntries(Object.entries(before).filter(([name]) => own.includes(name))), ...others };
}

export interface Written {
  definition: Definition;
  schedule: Definition;
  /** What could not be read, by field. */
  problems: Record<string, string>;
}

/** The definition that a form says: the `stored` one, changed where a box was changed. An emptied box has its default. */
export function definitionOf(form: Form, stored?: Definition): Written {
  const problems: Record<string, string> = {};
  const definition = structuredClone(stored ?? { payload: null });
  const after = said(form);
  const before = { ...(stored ? said(formOf("", stored)) : EMPTY) };
  if (before.target_kind !== after.target_kind) {
    // A target of another kind takes nothing over.
    delete definition.target;
    for (const name of NAMES) if (name.startsWith("target_")) before[name] = "";
  }
  for (const name of NAMES) {
    if (after[name] === before[name]) continue;
    const [path, kind] = BOXES[name];
    try {
      const value = read(after[name], kind);
      if (kind === "others") definition.target = withOthers(definition.target, value ?? {});
      else put(definition, path, value);
    } catch (error) {
      problems[name] = `cannot be read: ${error instanceof Error ? error.message : ""}`;
    }
  }
  definition.payload ??= null;
  const schedule = isObject(definition.schedule) ? definition.schedule : {};
  return { definition, schedule, problems };
}

interface Anchored {
  schedule: { every?: unknown; anchor?: unknown };
  schedule_resolved: Record<string, unknown>;
}

/** A schedule as the API stores it for a job: an interval that stays, without a written anchor, keeps its anchor. */
export function anchored(schedule: Definition, job: Anchored | null): Definition {
  const { every, anchor } = job?.schedule ?? {};
  const at = job?.schedule_resolved.anchor_at;
  const isKept = every && every === schedule.every && !anchor && !schedule.anchor && typeof at === "string";
  return isKept ? { ...schedule, anchor: at } : schedule;
}

/** What goes into each of several schedules, and not beside them. */
const OF_ONE: readonly Box[] = [
  "timezone",
  "exclude_dates",
  "exclude_weekdays",
  "exclude_calendars",
  "include_calendars",
  "on_excluded",
];

/** The form without the boxes that its kind of schedule does not have. */
function said(form: Form): Form {
  const hidden: Box[] = [
    ...(["cron", "every", "at", "schedules"] as const).filter((mode) => mode !== form.mode),
    form.mode === "every" ? "timezone" : "anchor",
    ...(form.mode === "cron" ? [] : (["dialect", "dst"] as const)),
    ...(form.mode === "schedules" ? OF_ONE : []),
    ...OF_TARGET.filter((name) => !boxesOf(form.target_kind).includes(name)),
  ];
  return { ...form, ...Object.fromEntries(hidden.map((name) => [name, ""])) };
}

/** What a text says; undefined if it is empty. Throws if JSON is wrong. */
function read(text: string, kind: Kind): unknown {
  const trimmed = text.trim();
  if (!trimmed) return undefined;
  if (kind === "json" || kind === "others") return JSON.parse(trimmed);
  if (kind === "flag") return trimmed === "false" ? false : undefined;
  if (kind === "list") return listOf(trimmed);
  // Any other text stays as it is, so that the API says what is wrong with it.
  if (kind === "number" && /^-?\d+(\.\d+)?$/.test(trimmed)) return Number(trimmed);
  return kind === "number" ? trimmed : text;
}

function listOf(text: string): string[] {
  return text
    .split(",")
    .map((part) => part.trim())
    .filter(Boolean);
}

function valueAt(definition: Definition, path: string): unknown {
  return path.split(".").reduce<unknown>((inside, name) => (isObject(inside) ? inside[name] : undefined), definition);
}

/** Set what is at the path, or remove it, with what is empty then around it. */
function put(inside: Definition, path: string, value: unknown): void {
  const [name = "", ...rest] = path.split(".");
  let wanted = value;
  if (rest.length) {
    const below = inside[name];
    const child: Definition = isObject(below) ? below : {};
    put(child, rest.join("."), value);
    wanted = Object.keys(child).length ? child : undefined;
  }
  if (wanted === undefined) delete inside[name];
  else inside[name] = wanted;
}

function isObject(value: unknown): value is Definition {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * The form's field for a field of the API's errors: `schedule.cron` is `cron`; `target.method` is `target_more`, as is
 * all that a target of the `kind` has no box for.
 */
export function fieldOf(name: string, kind = ""): keyof Form | undefined {
  if (name === "job_id") return name;
  for (const parts = name.split("."); parts.length; parts.pop()) {
    const path = parts.join(".");
    const found =
      NAMES.find((box) => BOXES[box][0] === path) ?? NAMES.find((box) => BOXES[box][0].startsWith(`${path}.`));
    if (found) return OF_TARGET.includes(found) && !boxesOf(kind).includes(found) ? "target_more" : found;
  }
  return undefined;
}
