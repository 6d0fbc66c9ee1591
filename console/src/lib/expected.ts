/** Expected against actual, as views draw it. Pure but for `loadExpected`. */

import type { Shapes } from "minute8-client";
import type { Show } from "./load";
import { api } from "./session";

export type Fire = Shapes["ExpectedFire"];

export interface Expectation {
  fires: Fire[];
  /** Whether nothing of the range is left out. */
  complete: boolean;
  /** Whether more of it is on its way. */
  reading?: boolean;
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

const PAGE = 5_000;
// More would not be legible in one picture.
export const MOST_FIRES = 30_000;
// A page has up to 200 jobs.
export const MOST_PAGES = 50;

/** What became of the due instants of a job, or of all jobs, in a range. */
export async function loadExpected(
  jobId: string | null,
  range: { from_at: string; until_at: string },
  signal: AbortSignal,
  show?: Show<Expectation>,
): Promise<Expectation> {
  const query = { ...range, limit: PAGE };
  const all =
    jobId === null
      ? api().pages("/v1/expected", { query, signal })
      : api().pages("/v1/jobs/{job_id}/expected", { path: { job_id: jobId }, query, signal });
  return gathered(all, show);
}

/** The instants of pages, shown as they come, until there are enough for one picture. */
export async function gathered(
  pages: AsyncIterable<{ expected: Fire[]; next_cursor: string | null }>,
  show?: Show<Expectation>,
): Promise<Expectation> {
  const fires: Fire[] = [];
  let read = 0;
  for await (const page of pages) {
    fires.push(...page.expected);
    if (!page.next_cursor) break;
    if (fires.length >= MOST_FIRES || ++read >= MOST_PAGES) return { fires, complete: false };
    show?.({ fires: [...fires], complete: false, reading: true });
  }
  return { fires, complete: true };
}
