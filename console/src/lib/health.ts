/** How a job is at a glance. Pure. */

import type { Job, JobHealth } from "./jobs";
import { stateOfRun } from "./states";

export interface Health {
  state: "overdue" | "failing" | "fine" | "paused" | "unknown";
  /** How late an overdue job is, in seconds. */
  lateS: number;
  /** Scheduled runs that failed in a row. */
  inRow: number;
  /** States of the last runs, the newest last. */
  outcomes: readonly string[];
}

// What a queue and a cold start may take.
const LATE_S = 60;

/** The health of a job. Its next fire time cannot say that it is late: that was in the future when the list was loaded. */
export function healthOf(job: Job, found: JobHealth | undefined): Health {
  const outcomes = (found?.outcomes ?? []).map(stateOfRun).reverse();
  const inRow = found?.failures_in_row ?? 0;
  const lateS = found?.overdue?.late_s ?? 0;
  if (job.state === "paused") return { state: "paused", lateS: 0, inRow, outcomes };
  if (lateS > LATE_S) return { state: "overdue", lateS, inRow, outcomes };
  if (inRow > 0) return { state: "failing", lateS: 0, inRow, outcomes };
  return { state: outcomes.length ? "fine" : "unknown", lateS: 0, inRow, outcomes };
}
