/** What the editor's boxes are called, and in which order they come. Pure. */

import { BOXES, type Box, type Form } from "./definition";

const OF_ROLE = "The ARN of the role that calls it; Minute8’s own if empty.";
type Label = [label: string, hint?: string | undefined, of?: Record<string, string> | undefined];
const NAMES_HINT = "Names, separated by commas.";

/** What boxes are called. One without a row is called as its field. */
const LABELS: Partial<Record<Box, Label>> = {
  name: ["Name", "For people."],
  tags: ["Tags", "Separated by commas."],
  owner: ["Owner", "Who answers for it; failure events say so."],
  runbook: ["Runbook", "The URL of what to do when it fails."],
  cron: ["Cron expression", "minute hour day month weekday; six fields begin with the second."],
  every: ["Every", "90m, 1h30m, or seconds."],
  at: ["At", "2026-12-24T08:00:00Z, or a local time with a time zone."],
  schedules: [
    "Schedules",
    "JSON. Each may have a payload_patch; an instant that some share fires once, with the patch of the first.",
  ],
  timezone: ["Time zone", "UTC if empty."],
  dialect: ["Read as", "", { "": "minute8", eventbridge: "EventBridge" }],
  dst: ["Rule for clock changes", "", { "": "minute8", eventbridge: "EventBridge" }],
  anchor: ["Counted from", "An instant; now if empty."],
  start_at: ["Not before", "An instant."],
  end_at: ["Ends", "An instant; it does not fire from then on."],
  max_runs: ["Ends after so many fire times", ""],
  exclude_dates: ["Not on these dates", "2026-12-24, 2026-12-25"],
  exclude_weekdays: ["Not on these days of a week", "sat, sun"],
  exclude_calendars: ["Not on the dates of these calendars", NAMES_HINT],
  include_calendars: ["Only on the dates of these calendars", NAMES_HINT],
  on_excluded: [
    "On an excluded date",
    "",
    { "": "leave the fire time out", next: "fire on the next date", previous: "fire on the date before" },
  ],
  spread_s: ["Spread (s)", "All runs are due the same 0 to this many later."],
  jitter_s: ["Jitter (s)", "Each run is due 0 to this many later."],
  pace_per_second: ["Pace (executions a second)", "Shared by all jobs with the same key; none if empty."],
  pace_tolerance_s: ["Pace: tolerance (s)", "How far the pace may delay a run; 60 if empty."],
  pace_key: ["Pace: key", "The target if empty."],
  target_role_arn: ["Role", OF_ROLE],
  target_envelope: ["What it receives", "", { "": "the payload in an envelope", false: "the payload alone" }],
  timeout_s: ["Time limit (s)"],
  target_more: ["Other fields of the target", "JSON; docs/job.md lists those of each kind. None if empty."],
  payload: ["Payload", "JSON; texts may hold {{placeholders}}."],
  overlap: [
    "While the previous run goes on",
    "",
    { allow: "start it beside", skip: "skip the new one", queue_one: "let one wait" },
  ],
  catch_up: ["Missed fire times", "", { none: "leave out", latest: "run the latest once", all: "run each of them" }],
  max_attempts: ["Attempts"],
  base_s: ["First wait (s)"],
  factor: ["Each wait is longer by"],
  cap_s: ["Longest wait (s)"],
  max_age_s: ["No attempt later than (s)"],
  start_deadline_s: ["Start deadline (s)", "Skipped if it cannot start in time; none if empty."],
  pause_after_failures: ["Pause after failures in a row", "Never if empty."],
  concurrency_key: ["Concurrency: key", "Jobs with it share the limit."],
  concurrency_limit: ["Concurrency: runs at a time", "No limit if empty."],
  concurrency_when_full: ["If as many go", "", { "": "as usual: wait", wait: "wait", skip: "skip the run" }],
  concurrency_max_wait_s: ["Skip after waiting (s)"],
  longer_than_s: ["Alert: a run takes over (s)", "None if empty."],
  shorter_than_s: ["Alert: a success takes under (s)", "None if empty."],
  no_success_for_s: ["Alert: no success for (s)", "None if empty."],
  completion: ["An attempt ends with", "", { answer: "the call’s answer", callback: "a callback of the target" }],
  callback_timeout_s: ["Wait for each callback (s)", "An hour if empty."],
  on_crash: ["After a crash during a call", "", { retry: "call again: at least once", fail: "fail: at most once" }],
  after_completion: ["After the last run", "", { keep: "keep the job", delete: "delete the job" }],
  dead_letter: ["Dead-letter queue", "An SQS queue's ARN."],
};
export const JOB: readonly Box[] = ["name", "tags", "owner", "runbook"];
export const TIMINGS: Record<Form["mode"], readonly Box[]> = {
  cron: ["cron", "timezone", "dialect", "dst"],
  every: ["every", "anchor"],
  at: ["at", "timezone"],
  schedules: ["schedules"],
};
export const CALL: readonly Box[] = ["target_role_arn", "target_envelope", "timeout_s", "target_more", "payload"];
export const POLICIES: readonly Box[] = ["overlap", "catch_up", "max_attempts", "base_s"];
const PLACED = new Set([...JOB, ...Object.values(TIMINGS).flat(), ...CALL, ...POLICIES]);
/** All others of a schedule, and of the job: a field that is added has its box there. */
const REST = (Object.keys(BOXES) as Box[]).filter((name) => !PLACED.has(name) && !name.startsWith("target_"));
export const BOUNDS = REST.filter((name) => BOXES[name].path.startsWith("schedule."));
export const FOLLOWING = REST.filter((name) => !BOUNDS.includes(name));
export const PLAIN: readonly Box[] = [...JOB, "payload", "exclude_weekdays"];
export const ROWS: Partial<Record<Box, number>> = { schedules: 8, target_more: 3, payload: 5 };

/** What a box is called, its hint, and the words of a choice. */
export function labelOf(name: string, field: (typeof BOXES)[Box]): Label {
  const [label, hint, of] = LABELS[name as Box] ?? [
    field.path.replaceAll(".", ": ").replaceAll("_", " "),
    "docs/job.md says what it does.",
  ];
  const offered = field.kind === "flag" ? ["true", "false"] : (field.words ?? []);
  const isFilled = field.kind === "choice" && field.path === name;
  const choices = offered.length ? [...(isFilled ? [] : [""]), ...offered] : [];
  return [
    label,
    hint ?? (field.default === undefined ? "" : `${field.default.toLocaleString("en")} if empty.`),
    of ?? (choices.length ? Object.fromEntries(choices.map((word) => [word, word || "as usual"])) : undefined),
  ];
}
