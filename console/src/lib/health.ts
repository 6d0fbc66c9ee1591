/** How a job is at a glance. Pure. */

import type { Shapes } from "minute8-client";
import { stateOfRun } from "./states";

type Job = Shapes["Job"];
type JobHealth = Shapes["JobHealth"];

export interface Health {
  state: "overdue" | "failing" | "fine" | "paused" | "ended" | "unknown";
  /** How late an overdue job is, in seconds. */
  lateS: number;
  /** Scheduled runs that failed in a row. */
  inRow: number;
  /** States of the last runs, the newest last. */
  outcomes: readonly string[];
}

// It costs a query for each job, so it is asked for so many at most, and less often than the list.
export const MOST_HEALTHS = 2_000;

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
  if (!job.next_fire_at) return { state: "ended", lateS: 0, inRow, outcomes };
  return { state: outcomes.length ? "fine" : "unknown", lateS: 0, inRow, outcomes };
}

/** How much is read of what is counted. */
export type Known = "nothing" | "part" | "all";

/** How much is known of the health of so many jobs. */
export function knownHealth(isRead: boolean, jobs: number): Known {
  if (!isRead) return "nothing";
  return jobs > MOST_HEALTHS ? "part" : "all";
}

/** What a figure shows for a count of problems. Only a zero of everything is good news. */
export function figureOf(
  count: number,
  known: Known,
  bad: "bad" | "late" = "bad",
): { value: string; tone: "bad" | "late" | "good" | undefined } {
  if (known === "nothing" && !count) return { value: "–", tone: undefined };
  const value = `${count.toLocaleString("en")}${known === "all" ? "" : "+"}`;
  return { value, tone: count ? bad : known === "all" ? "good" : undefined };
}
