/** Expected against actual of one job, as its view draws it. Pure but for `loadExpected`. */

import type { Shapes } from "minute8-client";
import { api } from "./session";
import { HOUR, MINUTE, rfc3339 } from "./time";

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

const PAGE = 5_000;
// More would not be legible in one picture.
export const MOST_FIRES = 20_000;

/** The due instants of a range that moves with the present, and when they were read (ms): the changes, and all. */
export interface Known extends Expectation {
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
export function changedFrom(before: Known, present: number): number | undefined {
  if (!before.complete || present - before.wholeAt >= WHOLE_EVERY) return undefined;
  const open = before.fires.filter((fire) => UNSETTLED.has(stateOfFire(fire))).map((fire) => Date.parse(fire.fire_at));
  const earliest = open.reduce((first, second) => Math.min(first, second), before.readAt - OVERLAP);
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

/** The due instants from `back` ms ago to `ahead` ms from now; of what was read before, only what may have changed. */
export async function loadExpected(
  jobId: string,
  [back, ahead]: readonly [number, number],
  signal: AbortSignal,
  before?: Known,
): Promise<Known> {
  const present = Date.now();
  const minute = Math.floor(present / MINUTE) * MINUTE;
  const begin = minute - back;
  const changed = before && changedFrom(before, present);
  const from = changed === undefined ? begin : Math.floor(changed / 1000) * 1000;
  const query = { from_at: rfc3339(from), until_at: rfc3339(minute + ahead), limit: PAGE };
  const pages = api().pages("/v1/jobs/{job_id}/expected", { path: { job_id: jobId }, query, signal });
  const { fires, complete } = await gathered(pages);
  if (!before || changed === undefined) return { fires, complete, readAt: present, wholeAt: present };
  return { fires: updated(before.fires, fires, begin, from), complete, readAt: present, wholeAt: before.wholeAt };
}

/** The instants of pages, until there are enough for one picture. */
export async function gathered(
  pages: AsyncIterable<{ expected: Fire[]; next_cursor: string | null }>,
): Promise<Expectation> {
  const fires: Fire[] = [];
  for await (const page of pages) {
    fires.push(...page.expected);
    if (!page.next_cursor) break;
    if (fires.length >= MOST_FIRES) return { fires, complete: false };
  }
  return { fires, complete: true };
}
