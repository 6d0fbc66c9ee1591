/** A job's definition as a form holds it: flat texts, and how they become JSON and back. Pure. */

import { FIELDS, type FieldOfJob } from "./fields";

const OF_TARGETS = {
  target_kind: { path: "target.kind", kind: "text" },
  target_arn: { path: "target.arn", kind: "text" },
  target_url: { path: "target.url", kind: "text" },
  target_role_arn: { path: "target.role_arn", kind: "text" },
  target_envelope: { path: "target.envelope", kind: "flag", default: true },
  // After those with a box: it holds the others as JSON, and is empty if there are none.
  target_more: { path: "target", kind: "others" },
} as const;

export type Box = keyof typeof FIELDS | keyof typeof OF_TARGETS;
export type Form = Record<Box | "job_id", string> & { mode: "cron" | "every" | "at" | "schedules" };
export type Definition = Record<string, unknown>;

/** Each box: its path in the definition, and how its text is read. */
export const BOXES: Record<Box, FieldOfJob> = {
  ...FIELDS,
  ...OF_TARGETS,
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

/** Choices of the job itself show their default; other boxes stay empty for it. */
const shown = (name: Box) => (BOXES[name].kind === "choice" && BOXES[name].path === name ? BOXES[name].default : "");

const EMPTY = Object.fromEntries(["job_id", ...NAMES].map((name) => [name, ""])) as unknown as Form;

/** The form of a new job. */
export const BLANK: Form = {
  ...EMPTY,
  ...{ mode: "cron", cron: "0 9 * * *", every: "1h" },
  schedules: '[\n  {"cron": "0 9 * * 1-5"},\n  {"cron": "0 12 * * 6", "payload_patch": {}}\n]',
  ...{ target_kind: "lambda", payload: "null" },
  ...Object.fromEntries(NAMES.filter(shown).map((name) => [name, shown(name)])),
};

/** The form of a definition. Boxes for what a job does not have stay empty. */
export function formOf(id: string, definition: Definition): Form {
  const mode =
    (["every", "at", "schedules"] as const).find((kind) => valueAt(definition, `schedule.${kind}`) != null) ?? "cron";
  const texts = NAMES.map((name) => [name, textOf(name, valueAt(definition, BOXES[name].path))]);
  return { ...BLANK, ...Object.fromEntries(texts), job_id: id, mode } as Form;
}

function textOf(name: Box, value: unknown): string {
  const { kind } = BOXES[name];
  if (kind === "others") return othersOf(isObject(value) ? value : {});
  if (kind === "flag") return value == null || value === BOXES[name].default ? "" : String(value);
  if (name === "schedules" && value == null) return "";
  if (kind === "json") return JSON.stringify(value ?? null, null, 2);
  if (value === null || value === undefined) return String(shown(name));
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
    const { path, kind } = BOXES[name];
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
export const OF_ONE: readonly Box[] = [
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
function read(text: string, kind: string): unknown {
  const trimmed = text.trim();
  if (!trimmed) return undefined;
  if (kind === "json" || kind === "others") return JSON.parse(trimmed);
  if (kind === "flag") return trimmed === "true";
  if (kind === "list") return listOf(trimmed);
  if (kind === "text" || kind === "choice") return text;
  // A number. Any other text stays as it is, so that the API says what is wrong with it.
  return /^-?\d+(\.\d+)?$/.test(trimmed) ? Number(trimmed) : trimmed;
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
      NAMES.find((box) => BOXES[box].path === path) ?? NAMES.find((box) => BOXES[box].path.startsWith(`${path}.`));
    if (found) return OF_TARGET.includes(found) && !boxesOf(kind).includes(found) ? "target_more" : found;
  }
  return undefined;
}
