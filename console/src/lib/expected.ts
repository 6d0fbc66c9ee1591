/** Expected against actual, as views draw it. Pure but for `loadExpected` and `loadPast`. */

import type { Shapes } from "minute8-client";
import type { Show } from "./load";
import { api } from "./session";
import { DAY, HOUR, MINUTE, rfc3339 } from "./time";

export type Fire = Shapes["ExpectedFire"];

export interface Expectation {
  fires: Fire[];
  /** Whether nothing of the range is left out. */
  complete: boolean;
  /** If more of it is on its way: how many jobs are read. */
  reading?: number;
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
// A page has up to 1,000 jobs, and 200 of those that have changed lately.
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

/** The last day of all jobs, and when it was read (ms): what has changed since, and all of it. */
export interface Past extends Expectation {
  readAt: number;
  wholeAt: number;
}

// A run may have been recorded a little after it was read, and the clocks may differ.
const OVERLAP = 2 * MINUTE;
// What waits for longer is seen when all is read again.
const LONGEST_OVERLAP = HOUR;
const WHOLE_EVERY = 15 * MINUTE;
const UNSETTLED = new Set(["to_come", "overdue", "queued", "running", "retrying"]);

/** From when on (ms) what was read may have changed; undefined: all of it is to be read again. */
export function changedFrom(before: Past, present: number): number | undefined {
  if (!before.complete || present - before.wholeAt >= WHOLE_EVERY) return undefined;
  const open = before.fires.filter((fire) => UNSETTLED.has(stateOfFire(fire))).map((fire) => Date.parse(fire.fire_at));
  const earliest = open.reduce((one, other) => Math.min(one, other), before.readAt - OVERLAP);
  return Math.max(earliest, before.readAt - LONGEST_OVERLAP);
}

/** What was read before `from` (ms), within the range that begins at `begin`, and what is read since. */
export function updated(before: readonly Fire[], since: readonly Fire[], begin: number, from: number): Fire[] {
  const stays = before.filter((fire) => {
    const at = Date.parse(fire.fire_at);
    return at >= begin && at < from;
  });
  return [...stays, ...since];
}

/** What became of the due instants of all jobs in the last day; of what was read before, only what may have changed. */
export async function loadPast(signal: AbortSignal, show?: Show<Past>, before?: Past): Promise<Past> {
  const present = Date.now();
  const begin = Math.floor(present / MINUTE) * MINUTE - DAY;
  const until_at = rfc3339(present);
  const from = before && changedFrom(before, present);
  if (!before || from === undefined) {
    const times = { readAt: present, wholeAt: present };
    const range = { from_at: rfc3339(begin), until_at };
    const found = await loadExpected(null, range, signal, show && ((part) => show({ ...part, ...times })));
    return { ...found, ...times };
  }
  const second = Math.floor(from / 1000) * 1000;
  const since = await loadExpected(null, { from_at: rfc3339(second), until_at }, signal);
  const fires = updated(before.fires, since.fires, begin, second);
  return { fires, complete: since.complete, readAt: present, wholeAt: before.wholeAt };
}

/** The instants of pages, shown as they come, until there are enough for one picture. */
export async function gathered(
  pages: AsyncIterable<{ expected: Fire[]; by_job?: readonly unknown[]; next_cursor: string | null }>,
  show?: Show<Expectation>,
): Promise<Expectation> {
  const fires: Fire[] = [];
  let read = 0;
  let jobs = 0;
  for await (const page of pages) {
    fires.push(...page.expected);
    jobs += page.by_job?.length ?? 0;
    if (!page.next_cursor) break;
    if (fires.length >= MOST_FIRES || ++read >= MOST_PAGES) return { fires, complete: false };
    show?.({ fires: [...fires], complete: false, reading: jobs });
  }
  return { fires, complete: true };
}
