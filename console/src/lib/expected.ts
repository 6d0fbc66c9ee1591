/** Expected against actual, as views draw it. Pure but for `loadExpected`. */

import type { Shapes } from "minute8-client";
import { firstPages } from "./pages";
import { api } from "./session";

export type Fire = Shapes["ExpectedFire"];

export interface Expectation {
  fires: Fire[];
  /** Whether nothing of the range is left out. */
  complete: boolean;
}

/** The state of a due instant: what became of its run, if that is worse than when it started. */
export function stateOfFire(fire: Fire): string {
  const run = fire.run?.status;
  if (run === "failed" || run === "retrying") return run;
  return fire.status;
}

/** How many due instants are in each state. */
export function countStates(fires: Iterable<Fire>): Map<string, number> {
  const counts = new Map<string, number>();
  for (const fire of fires) {
    const state = stateOfFire(fire);
    counts.set(state, (counts.get(state) ?? 0) + 1);
  }
  return counts;
}

export interface Hour {
  /** ms */
  from: number;
  succeeded: number;
  failed: number;
  /** Of those that started late, or have not started: the most. */
  latestS: number;
  due: number;
}

/** The due instants by hour, over the hours that [from, until) touches. */
export function byHour(fires: Iterable<Fire>, from: number, until: number): Hour[] {
  const hour = 3_600_000;
  const first = Math.floor(from / hour) * hour;
  const hours = Array.from({ length: Math.ceil((until - first) / hour) }, (_, n) => ({
    from: first + n * hour,
    succeeded: 0,
    failed: 0,
    latestS: 0,
    due: 0,
  }));
  for (const fire of fires) {
    const found = hours[Math.floor((Date.parse(fire.fire_at) - first) / hour)];
    if (!found) continue;
    found.due++;
    if (fire.run?.status === "succeeded" || fire.run?.status === "dispatched") found.succeeded++;
    if (fire.run?.status === "failed") found.failed++;
    found.latestS = Math.max(found.latestS, fire.late_s ?? 0);
  }
  return hours;
}

// A page has up to 5,000 instants of up to 200 jobs. More would not be legible in one picture.
const MOST_PAGES = 6;

/** What became of the due instants of a job, or of all jobs, in a range. */
export async function loadExpected(
  jobId: string | null,
  range: { from_at: string; until_at: string },
  signal: AbortSignal,
): Promise<Expectation> {
  const query = { ...range, limit: 5000 };
  const all =
    jobId === null
      ? api().pages("/v1/expected", { query, signal })
      : api().pages("/v1/jobs/{job_id}/expected", { path: { job_id: jobId }, query, signal });
  const read = await firstPages<{ expected: Fire[]; next_cursor: string | null }>(all, MOST_PAGES);
  return { fires: read.pages.flatMap((page) => page.expected), complete: !read.more };
}
