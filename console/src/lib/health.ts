/** How a job is, from what the list of jobs says of it. Pure. */

import type { Job } from "./jobs";

export interface Health {
  state: "overdue" | "failing" | "fine" | "paused" | "unknown";
  /** How late an overdue job is, in seconds. */
  lateS: number;
  /** Failures in a row. */
  inRow: number;
  /** States of the last runs, the newest last. */
  outcomes: readonly string[];
}

// What a queue and a cold start may take.
const LATE_S = 60;

/** The fields that an API of this version may add to a job. */
interface WithHealth {
  last_outcomes?: readonly string[];
  failures_in_row?: number;
  overdue_s?: number | null;
}

export function healthOf(job: Job, present: number): Health {
  const more = job as Job & WithHealth;
  const outcomes = more.last_outcomes ?? [];
  const inRow = more.failures_in_row ?? trailing(outcomes, "failed");
  const lateS = more.overdue_s ?? (job.next_fire_at ? (present - Date.parse(job.next_fire_at)) / 1000 : 0);
  if (job.state === "paused") return { state: "paused", lateS: 0, inRow, outcomes };
  if (lateS > LATE_S) return { state: "overdue", lateS, inRow, outcomes };
  if (inRow > 0) return { state: "failing", lateS: 0, inRow, outcomes };
  return { state: outcomes.length ? "fine" : "unknown", lateS: 0, inRow, outcomes };
}

function trailing(outcomes: readonly string[], state: string): number {
  let count = 0;
  for (let n = outcomes.length - 1; n >= 0 && outcomes[n] === state; n--) count++;
  return count;
}
