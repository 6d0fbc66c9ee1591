/** A job's definition as a form holds it: flat texts, and how they become JSON and back. Pure. */

import type { Job } from "./jobs";

export const KINDS = ["lambda", "http", "sqs", "sns", "event_bus", "step_functions"] as const;

export interface Form {
  job_id: string;
  name: string;
  tags: string;
  mode: "cron" | "every" | "at";
  cron: string;
  every: string;
  at: string;
  timezone: string;
  anchor: string;
  start_at: string;
  end_at: string;
  exclude_dates: string;
  exclude_calendars: string;
  jitter_s: string;
  /** The target as JSON. */
  target: string;
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
  pause_after_failures: string;
  /** Fields that this page does not know, as JSON. */
  others: string;
}

export const BLANK: Form = {
  ...{ job_id: "", name: "", tags: "", mode: "cron", cron: "0 9 * * *", every: "1h", at: "", timezone: "", anchor: "" },
  ...{ start_at: "", end_at: "", exclude_dates: "", exclude_calendars: "", jitter_s: "" },
  ...{ target: '{\n  "kind": "lambda",\n  "arn": ""\n}', payload: "null", timeout_s: "" },
  ...{ max_attempts: "", base_s: "", factor: "", cap_s: "", max_age_s: "", start_deadline_s: "" },
  ...{ catch_up: "latest", overlap: "allow", pause_after_failures: "", others: "" },
};

const KNOWN = [
  ...["name", "tags", "schedule", "target", "payload", "timeout_s", "retry", "start_deadline_s", "catch_up", "overlap"],
  "pause_after_failures",
];

/** The form of a definition. Times that a job does not have stay empty. */
export function formOf(id: string, definition: Record<string, unknown>): Form {
  const job = definition as Partial<Job>;
  const schedule: Partial<Job["schedule"]> = job.schedule ?? {};
  const text = (value: unknown) => (value === null || value === undefined ? "" : String(value));
  const others = Object.entries(definition).filter(([name, value]) => !KNOWN.includes(name) && value !== null);
  return {
    ...BLANK,
    job_id: id,
    name: text(job.name),
    tags: (job.tags ?? []).join(", "),
    mode: schedule.every != null ? "every" : schedule.at != null ? "at" : "cron",
    cron: text(schedule.cron),
    every: text(schedule.every),
    at: text(schedule.at),
    timezone: text(schedule.timezone),
    anchor: text(schedule.anchor),
    start_at: text(schedule.start_at),
    end_at: text(schedule.end_at),
    exclude_dates: (schedule.exclude?.dates ?? []).join(", "),
    exclude_calendars: (schedule.exclude?.calendars ?? []).join(", "),
    jitter_s: text(schedule.jitter_s),
    target: JSON.stringify(withoutNulls(job.target ?? {}), null, 2),
    payload: JSON.stringify(job.payload ?? null, null, 2),
    timeout_s: text(job.timeout_s),
    max_attempts: text(job.retry?.max_attempts),
    base_s: text(job.retry?.base_s),
    factor: text(job.retry?.factor),
    cap_s: text(job.retry?.cap_s),
    max_age_s: text(job.retry?.max_age_s),
    start_deadline_s: text(job.start_deadline_s),
    catch_up: text(job.catch_up) || BLANK.catch_up,
    overlap: text(job.overlap) || BLANK.overlap,
    pause_after_failures: text(job.pause_after_failures),
    others: others.length ? JSON.stringify(Object.fromEntries(others), null, 2) : "",
  };
}

export interface Written {
  definition: Record<string, unknown>;
  schedule: Record<string, unknown>;
  /** What could not be read, by field. */
  problems: Record<string, string>;
}

/** The definition that a form says. What is empty is left out, so that it has its default. */
export function definitionOf(form: Form): Written {
  const problems: Record<string, string> = {};
  const json = (field: "target" | "payload" | "others"): unknown => {
    try {
      return form[field].trim() ? JSON.parse(form[field]) : undefined;
    } catch (error) {
      problems[field] = `is not JSON: ${error instanceof Error ? error.message : ""}`;
      return undefined;
    }
  };
  const schedule = filled({
    [form.mode]: form[form.mode],
    timezone: form.mode === "every" ? "" : form.timezone,
    anchor: form.mode === "every" ? form.anchor : "",
    start_at: form.start_at,
    end_at: form.end_at,
    jitter_s: numberOf(form.jitter_s),
    exclude: filled({ dates: listOf(form.exclude_dates), calendars: listOf(form.exclude_calendars) }),
  });
  const retry = filled({
    max_attempts: numberOf(form.max_attempts),
    base_s: numberOf(form.base_s),
    factor: numberOf(form.factor),
    cap_s: numberOf(form.cap_s),
    max_age_s: numberOf(form.max_age_s),
  });
  const others = json("others");
  const definition = {
    ...filled({
      name: form.name,
      tags: listOf(form.tags),
      target: json("target"),
      timeout_s: numberOf(form.timeout_s),
      retry,
      start_deadline_s: numberOf(form.start_deadline_s),
      catch_up: form.catch_up,
      overlap: form.overlap,
      pause_after_failures: numberOf(form.pause_after_failures),
    }),
    schedule,
    payload: json("payload") ?? null,
    ...(typeof others === "object" ? others : {}),
  };
  return { definition, schedule, problems };
}

/** A whole number or a fraction; any other text as it is, so that the API says what is wrong with it. */
function numberOf(text: string): number | string | undefined {
  const trimmed = text.trim();
  if (!trimmed) return undefined;
  return /^-?\d+(\.\d+)?$/.test(trimmed) ? Number(trimmed) : trimmed;
}

function listOf(text: string): string[] {
  return text
    .split(",")
    .map((one) => one.trim())
    .filter(Boolean);
}

function filled(values: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => !isEmpty(value)));
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === "") return true;
  if (Array.isArray(value)) return value.length === 0;
  return typeof value === "object" && Object.keys(value).length === 0;
}

function withoutNulls(value: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== null));
}

/** The form's field for a field of the API's errors: `schedule.cron` is `cron`, `target.arn` is `target`. */
export function fieldOf(name: string): keyof Form | undefined {
  const parts = name.split(".");
  const [first = "", second = ""] = parts;
  if (first === "schedule" && second === "exclude")
    return parts[2] === "calendars" ? "exclude_calendars" : "exclude_dates";
  if (first === "schedule" || first === "retry") {
    if (second in BLANK) return second as keyof Form;
    return first === "schedule" ? "cron" : "max_attempts";
  }
  return first in BLANK ? (first as keyof Form) : undefined;
}
