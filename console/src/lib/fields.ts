/**
 * The fields of a job that have boxes in the editor; those of its target are in definition.ts.
 *
 * Generated from the declaration of a job by `python -m scripts.console_fields`; a test holds that it is up to date.
 */

export interface FieldOfJob {
  path: string;
  kind: string;
  default?: string | number | boolean;
  words?: readonly string[];
}

export const FIELDS = {
  name: { path: "name", kind: "text" },
  tags: { path: "tags", kind: "list" },
  timeout_s: { path: "timeout_s", kind: "integer", default: 60 },
  completion: { path: "completion", kind: "choice", default: "answer", words: ["answer", "callback"] },
  callback_timeout_s: { path: "callback_timeout_s", kind: "integer" },
  start_deadline_s: { path: "start_deadline_s", kind: "integer" },
  catch_up: { path: "catch_up", kind: "choice", default: "latest", words: ["none", "latest", "all"] },
  overlap: { path: "overlap", kind: "choice", default: "allow", words: ["allow", "skip", "queue_one"] },
  pause_after_failures: { path: "pause_after_failures", kind: "integer" },
  on_crash: { path: "on_crash", kind: "choice", default: "retry", words: ["retry", "fail"] },
  after_completion: { path: "after_completion", kind: "choice", default: "keep", words: ["keep", "delete"] },
  dead_letter: { path: "dead_letter", kind: "text" },
  owner: { path: "owner", kind: "text" },
  runbook: { path: "runbook", kind: "text" },
  payload: { path: "payload", kind: "json" },
  max_attempts: { path: "retry.max_attempts", kind: "integer", default: 3 },
  base_s: { path: "retry.base_s", kind: "integer", default: 30 },
  factor: { path: "retry.factor", kind: "number", default: 2.0 },
  cap_s: { path: "retry.cap_s", kind: "integer", default: 900 },
  max_age_s: { path: "retry.max_age_s", kind: "integer", default: 86400 },
  longer_than_s: { path: "alert.longer_than_s", kind: "integer" },
  shorter_than_s: { path: "alert.shorter_than_s", kind: "integer" },
  no_success_for_s: { path: "alert.no_success_for_s", kind: "integer" },
  concurrency_key: { path: "concurrency.key", kind: "text" },
  concurrency_limit: { path: "concurrency.limit", kind: "integer" },
  concurrency_when_full: { path: "concurrency.when_full", kind: "choice", default: "wait", words: ["wait", "skip"] },
  concurrency_max_wait_s: { path: "concurrency.max_wait_s", kind: "integer", default: 3600 },
  cron: { path: "schedule.cron", kind: "text" },
  every: { path: "schedule.every", kind: "duration" },
  at: { path: "schedule.at", kind: "text" },
  timezone: { path: "schedule.timezone", kind: "text" },
  dialect: { path: "schedule.dialect", kind: "choice", default: "minute8", words: ["minute8", "eventbridge"] },
  dst: { path: "schedule.dst", kind: "choice", default: "minute8", words: ["minute8", "eventbridge"] },
  anchor: { path: "schedule.anchor", kind: "text" },
  start_at: { path: "schedule.start_at", kind: "text" },
  end_at: { path: "schedule.end_at", kind: "text" },
  include_calendars: { path: "schedule.include_calendars", kind: "list" },
  on_excluded: { path: "schedule.on_excluded", kind: "choice", default: "skip", words: ["skip", "next", "previous"] },
  schedules: { path: "schedule.schedules", kind: "json" },
  max_runs: { path: "schedule.max_runs", kind: "integer" },
  spread_s: { path: "schedule.spread_s", kind: "integer" },
  jitter_s: { path: "schedule.jitter_s", kind: "integer" },
  exclude_dates: { path: "schedule.exclude.dates", kind: "list" },
  exclude_weekdays: { path: "schedule.exclude.weekdays", kind: "list" },
  exclude_calendars: { path: "schedule.exclude.calendars", kind: "list" },
  pace_per_second: { path: "schedule.pace.per_second", kind: "integer" },
  pace_tolerance_s: { path: "schedule.pace.tolerance_s", kind: "integer", default: 60 },
  pace_key: { path: "schedule.pace.key", kind: "text" },
} as const satisfies Record<string, FieldOfJob>;

/** Expressions that people often start from, in words; H is a minute of the job's own. */
export const PRESETS: readonly [words: string, cron: string][] = [
  ["Every 5 minutes", "*/5 * * * *"],
  ["Every hour", "H * * * *"],
  ["At 09:00", "0 9 * * *"],
  ["At 09:00, Monday through Friday", "0 9 * * 1-5"],
  ["At 09:00, on Monday", "0 9 * * 1"],
  ["At 09:00, on day 1 of the month", "0 9 1 * *"],
];
