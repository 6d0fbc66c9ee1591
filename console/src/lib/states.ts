/** What each state looks like: a tone, a shape and a word. Pure. */

export type Tone = "good" | "bad" | "late" | "busy" | "quiet" | "alarm";

interface Look {
  tone: Tone;
  shape: string;
  word: string;
}

const LOOKS: Record<string, Look> = {
  // runs
  queued: { tone: "busy", shape: "ring", word: "queued" },
  running: { tone: "busy", shape: "play", word: "running" },
  dispatching: { tone: "busy", shape: "play", word: "handing over" },
  dispatched: { tone: "good", shape: "arrow", word: "handed over" },
  succeeded: { tone: "good", shape: "check", word: "succeeded" },
  failed: { tone: "bad", shape: "cross", word: "failed" },
  retrying: { tone: "late", shape: "turn", word: "retrying" },
  skipped: { tone: "quiet", shape: "dash", word: "skipped" },
  missed: { tone: "late", shape: "square", word: "missed" },
  cancelled: { tone: "quiet", shape: "dash", word: "cancelled" },
  // expected against actual
  on_time: { tone: "good", shape: "check", word: "on time" },
  late: { tone: "late", shape: "clock", word: "late" },
  no_record: { tone: "alarm", shape: "bang", word: "no record" },
  overdue: { tone: "bad", shape: "clock", word: "overdue" },
  not_kept: { tone: "quiet", shape: "dash", word: "no longer kept" },
  to_come: { tone: "quiet", shape: "ring", word: "to come" },
  not_due: { tone: "quiet", shape: "dash", word: "not due" },
  // backfills
  under_way: { tone: "busy", shape: "play", word: "under way" },
  all_enqueued: { tone: "good", shape: "check", word: "all enqueued" },
  // findings
  warning: { tone: "late", shape: "bang", word: "warning" },
  not_checked: { tone: "quiet", shape: "dash", word: "not checked" },
  // jobs, tenants, keys
  new: { tone: "quiet", shape: "ring", word: "no message yet" },
  working: { tone: "good", shape: "check", word: "working" },
  failing: { tone: "bad", shape: "cross", word: "failing" },
  disabled: { tone: "bad", shape: "pause", word: "disabled" },
  active: { tone: "good", shape: "check", word: "active" },
  not_running: { tone: "bad", shape: "pause", word: "not running" },
  paused: { tone: "late", shape: "pause", word: "paused" },
  ended: { tone: "quiet", shape: "dash", word: "ended" },
  suspended: { tone: "bad", shape: "cross", word: "suspended" },
  deleting: { tone: "quiet", shape: "dash", word: "deleting" },
  expired: { tone: "quiet", shape: "dash", word: "expired" },
  revoked: { tone: "quiet", shape: "cross", word: "revoked" },
};

/** How a state is shown; one that is not known is shown as it is called. */
export function lookOf(state: string): Look {
  return LOOKS[state] ?? { tone: "quiet", shape: "ring", word: state.replaceAll("_", " ") };
}

/** From worst to best: of several outcomes in one place, the first of these is shown. */
export const WORST_FIRST = [
  "no_record",
  "failed",
  "overdue",
  "missed",
  "late",
  "retrying",
  "running",
  "dispatching",
  "queued",
  "cancelled",
  "skipped",
  "dispatched",
  "succeeded",
  "on_time",
  "not_kept",
  "to_come",
] as const;

/** What became of the runs of a backfill, as far as they were read. */
export interface BackfillRuns {
  failed: number;
  /** Those that wait or go on. */
  open: number;
  all: number;
}

/** The state of a backfill: once all is enqueued, its runs say how it ends. */
export function stateOfBackfill(
  backfill: { cancelled_at?: string | null; sent: number; total: number },
  runs?: BackfillRuns,
): string {
  if (backfill.cancelled_at) return "cancelled";
  if (backfill.sent < backfill.total) return "under_way";
  if (runs?.failed) return "failed";
  if (runs?.open) return "under_way";
  // No good news of a part.
  return runs && runs.all >= backfill.total ? "succeeded" : "all_enqueued";
}

/** Whether a run has not ended. */
export function isOpen({ status }: { status: string }): boolean {
  return status === "queued" || status === "running" || status === "dispatching" || status === "retrying";
}

/** The state of a run as people think of it: a skipped run that was missed or cancelled says so. */
export function stateOfRun(run: { status: string; reason?: string | null }): string {
  if (run.status === "skipped" && (run.reason === "missed" || run.reason === "cancelled")) return run.reason;
  return run.status;
}
