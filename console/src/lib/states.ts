/** What each state looks like: a tone and a shape; its word is its name, as the command has it. Pure. */

export type Tone = "good" | "bad" | "late" | "busy" | "quiet" | "alarm";

interface Look {
  tone: Tone;
  shape: string;
  word: string;
}

const LOOKS: Record<string, Omit<Look, "word">> = {
  // runs
  queued: { tone: "busy", shape: "ring" },
  running: { tone: "busy", shape: "play" },
  dispatching: { tone: "busy", shape: "play" },
  dispatched: { tone: "good", shape: "arrow" },
  succeeded: { tone: "good", shape: "check" },
  failed: { tone: "bad", shape: "cross" },
  retrying: { tone: "late", shape: "turn" },
  skipped: { tone: "quiet", shape: "dash" },
  missed: { tone: "late", shape: "square" },
  cancelled: { tone: "quiet", shape: "dash" },
  // expected against actual
  on_time: { tone: "good", shape: "check" },
  late: { tone: "late", shape: "clock" },
  no_record: { tone: "alarm", shape: "bang" },
  overdue: { tone: "bad", shape: "clock" },
  not_kept: { tone: "quiet", shape: "dash" },
  to_come: { tone: "quiet", shape: "ring" },
  not_due: { tone: "quiet", shape: "dash" },
  // backfills
  under_way: { tone: "busy", shape: "play" },
  all_enqueued: { tone: "good", shape: "check" },
  // findings
  warning: { tone: "late", shape: "bang" },
  not_checked: { tone: "quiet", shape: "dash" },
  // jobs, tenants, keys
  new: { tone: "quiet", shape: "ring" },
  working: { tone: "good", shape: "check" },
  failing: { tone: "bad", shape: "cross" },
  disabled: { tone: "bad", shape: "pause" },
  active: { tone: "good", shape: "check" },
  not_running: { tone: "bad", shape: "pause" },
  paused: { tone: "late", shape: "pause" },
  ended: { tone: "quiet", shape: "dash" },
  suspended: { tone: "bad", shape: "cross" },
  deleting: { tone: "quiet", shape: "dash" },
  expired: { tone: "quiet", shape: "dash" },
  revoked: { tone: "quiet", shape: "cross" },
};

/** How a state is shown, also one that is not known. */
export function lookOf(state: string): Look {
  return { ...(LOOKS[state] ?? { tone: "quiet", shape: "ring" }), word: state.replaceAll("_", " ") };
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
