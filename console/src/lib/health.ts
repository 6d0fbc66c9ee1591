/** How a job is at a glance. Pure. */

import type { Shapes } from "minute8-client";
import { stateOfRun } from "./states";

type Job = Shapes["Job"];
type JobHealth = Shapes["JobHealth"];

export interface Health {
  state: "overdue" | "failing" | "stopped" | "fine" | "paused" | "ended" | "unknown";
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
  // A job that Minute8 has paused is no job that somebody wanted to rest.
  if (found?.not_running) return { state: "stopped", lateS: 0, inRow, outcomes };
  if (job.state === "paused") return { state: "paused", lateS: 0, inRow, outcomes };
  if (lateS > LATE_S) return { state: "overdue", lateS, inRow, outcomes };
  if (inRow > 0) return { state: "failing", lateS: 0, inRow, outcomes };
  if (!job.next_fire_at) return { state: "ended", lateS: 0, inRow, outcomes };
  return { state: outcomes.length ? "fine" : "unknown", lateS: 0, inRow, outcomes };
}

/** What a figure shows for a count of problems. A count that is not known, or not of all, is no good news. */
export function figureOf(
  count: number | undefined,
  bad: "bad" | "late" = "bad",
  isWhole = true,
): { value: string; tone: "bad" | "late" | "good" | undefined } {
  if (count === undefined) return { value: "–", tone: undefined };
  const good = isWhole ? "good" : undefined;
  return { value: `${count.toLocaleString("en")}${isWhole ? "" : "+"}`, tone: count ? bad : good };
}
