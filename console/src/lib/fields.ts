/**
 * The fields of a job that have boxes in the editor; those of its target are in definition.ts.
 *
 * Generated from the declaration of a job by `python -m scripts.console_fields`; a test holds that it is up to date.
 */

export interface FieldOfJob {
  path: string;
  kind: string;
  description: string;
  default?: string | number | boolean;
  words?: readonly string[];
}

export const FIELDS = {
  name: { path: "name", kind: "text", description: "A name for people." },
  tags: { path: "tags", kind: "list", description: "Labels; lists filter by them." },
  timeout_s: { path: "timeout_s", kind: "integer", description: "After this a call is given up as timed out; at most 10 s less than the executor's time limit (290 usually).", default: 60 },
  completion: { path: "completion", kind: "choice", description: "What ends an attempt: the call's answer, or a callback of the target.", default: "answer", words: ["answer", "callback"] },
  callback_timeout_s: { path: "callback_timeout_s", kind: "integer", description: "With completion callback: how long a run waits for each sign of the target; an hour if none." },
  start_deadline_s: { path: "start_deadline_s", kind: "integer", description: "Later than this after it was due, a run is skipped." },
  catch_up: { path: "catch_up", kind: "choice", description: "Which missed fire times still run after an outage of over ten minutes.", default: "latest", words: ["none", "latest", "all"] },
  overlap: { path: "overlap", kind: "choice", description: "What happens when the previous run is still going; not allow needs a target that Minute8 waits for, or callback.", default: "allow", words: ["allow", "skip", "queue_one"] },
  pause_after_failures: { path: "pause_after_failures", kind: "integer", description: "Pause the job after so many failed runs in a row." },
  on_crash: { path: "on_crash", kind: "choice", description: "If the executor dies during a call: call again, or end the run as failed (at most one call).", default: "retry", words: ["retry", "fail"] },
  after_completion: { path: "after_completion", kind: "choice", description: "Whether the job is deleted when its last run has ended.", default: "keep", words: ["keep", "delete"] },
  dead_letter: { path: "dead_letter", kind: "text", description: "The ARN of a standard SQS queue, which the tenant may call, that gets a message of each run that fails." },
  owner: { path: "owner", kind: "text", description: "Who answers for the job; failure events contain it." },
  runbook: { path: "runbook", kind: "text", description: "The URL of what to do when it fails; failure events contain it." },
  payload: { path: "payload", kind: "json", description: "What the target gets: any JSON, with placeholders, and secrets for secret://name; at most the tenant's payload_bytes, and 224 KiB with placeholders replaced." },
  max_attempts: { path: "retry.max_attempts", kind: "integer", description: "The number of attempts in all.", default: 3 },
  base_s: { path: "retry.base_s", kind: "integer", description: "The wait before the second attempt.", default: 30 },
  factor: { path: "retry.factor", kind: "number", description: "Each wait is so many times the wait before.", default: 2.0 },
  cap_s: { path: "retry.cap_s", kind: "integer", description: "The longest wait between two attempts.", default: 900 },
  max_age_s: { path: "retry.max_age_s", kind: "integer", description: "No attempt begins later than this after the run was due.", default: 86400 },
  longer_than_s: { path: "alert.longer_than_s", kind: "integer", description: "A run takes longer, from its first start to its end, with retries; also while it is going." },
  shorter_than_s: { path: "alert.shorter_than_s", kind: "integer", description: "A run succeeds, and its last call took less; at most longer_than_s." },
  no_success_for_s: { path: "alert.no_success_for_s", kind: "integer", description: "The job is active, and no run succeeds for so long, from when it became active or changed its times." },
  concurrency_key: { path: "concurrency.key", kind: "text", description: "Jobs of the tenant with the same key share the places." },
  concurrency_limit: { path: "concurrency.limit", kind: "integer", description: "A run of this job begins if fewer go." },
  concurrency_when_full: { path: "concurrency.when_full", kind: "choice", description: "What a run does that finds no place; later attempts and backfills always wait.", default: "wait", words: ["wait", "skip"] },
  concurrency_max_wait_s: { path: "concurrency.max_wait_s", kind: "integer", description: "After so long a run that waits is skipped, with the reason concurrency.", default: 3600 },
  cron: { path: "schedule.cron", kind: "text", description: "Five fields, or six with seconds first; or by dialect. At most 256 characters." },
  every: { path: "schedule.every", kind: "duration", description: "Elapsed time: 90m, PT90M, or seconds. With timezone local days: 2w, 3mo. 1 s to 3660 days." },
  at: { path: "schedule.at", kind: "text", description: "One instant, RFC 3339, or a local time with timezone." },
  timezone: { path: "schedule.timezone", kind: "text", description: "IANA zone; UTC if none." },
  dialect: { path: "schedule.dialect", kind: "choice", description: "How cron is read; eventbridge: minutes hours day-of-month month day-of-week year.", default: "minute8", words: ["minute8", "eventbridge"] },
  dst: { path: "schedule.dst", kind: "choice", description: "The rule for clock changes of cron; eventbridge: skipped times do not fire, repeated ones fire once.", default: "minute8", words: ["minute8", "eventbridge"] },
  anchor: { path: "schedule.anchor", kind: "text", description: "An instant that every counts from; with timezone also a local time. Else the time of registration." },
  start_at: { path: "schedule.start_at", kind: "text", description: "Nothing fires before (RFC 3339)." },
  end_at: { path: "schedule.end_at", kind: "text", description: "Nothing fires at or after (RFC 3339)." },
  include_calendars: { path: "schedule.include_calendars", kind: "list", description: "Names of calendars: the job fires only on dates that are in one of them." },
  on_excluded: { path: "schedule.on_excluded", kind: "choice", description: "On an excluded date the job does not fire, or at that time on the next or previous other date.", default: "skip", words: ["skip", "next", "previous"] },
  schedules: { path: "schedule.schedules", kind: "json", description: "Several schedules; an instant that some share fires once, with the patch of the first." },
  max_runs: { path: "schedule.max_runs", kind: "integer", description: "The job ends after so many fire times; pauses, also with edits, do not count. With cron or every, without calendars." },
  spread_s: { path: "schedule.spread_s", kind: "integer", description: "All runs are due the same 0 to n seconds later, by the job's id; without it the tenant's default." },
  jitter_s: { path: "schedule.jitter_s", kind: "integer", description: "Spread: each run is due 0 to n seconds later." },
  exclude_dates: { path: "schedule.exclude.dates", kind: "list", description: "Local dates (2026-12-24) on which the job does not fire." },
  exclude_weekdays: { path: "schedule.exclude.weekdays", kind: "list", description: "Days of the week on which the job does not fire; with on_excluded, none moves to one: [\"sat\", \"sun\"]." },
  exclude_calendars: { path: "schedule.exclude.calendars", kind: "list", description: "Names of the tenant's calendars." },
  pace_per_second: { path: "schedule.pace.per_second", kind: "integer", description: "At most so many executions are due at one second." },
  pace_tolerance_s: { path: "schedule.pace.tolerance_s", kind: "integer", description: "An execution is due at most so many seconds later, to keep to the pace.", default: 60 },
  pace_key: { path: "schedule.pace.key", kind: "text", description: "Jobs with the same key share the pace; without it those with the same target's ARN or URL's host." },
} as const satisfies Record<string, FieldOfJob>;
