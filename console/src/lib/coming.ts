/** What is coming: executions by minute, the minutes that are crowded, and the next executions. */

import type { Shapes } from "minute8-client";
import type { Show } from "./load";
import { firstPages } from "./pages";
import { api } from "./session";
import { MINUTE, rfc3339 } from "./time";

export type Execution = Shapes["ComingExecution"];

export interface Coming {
  /** ms and how many. */
  minutes: [number, number][];
  crowded: Shapes["CrowdedMinute"][];
  executions: number;
  /** How many jobs are counted, in how many pages. */
  jobs: number;
  pages: number;
  complete: boolean;
  /** Whether more of it is on its way. */
  reading: boolean;
}

// A page counts up to 1,000 jobs.
const MOST_PAGES = 10;

/** Counts of pages, added up by minute. Pure. */
export function added(pages: readonly { minutes: readonly Shapes["MinuteCount"][] }[]): [number, number][] {
  const sums = new Map<number, number>();
  for (const page of pages) {
    for (const { minute_at, executions } of page.minutes) {
      const at = Date.parse(minute_at);
      sums.set(at, (sums.get(at) ?? 0) + executions);
    }
  }
  return [...sums].sort(([one], [other]) => one - other);
}

export async function loadDensity(signal: AbortSignal, show?: Show<Coming>): Promise<Coming> {
  const all = api().pages("/v1/density", { signal });
  const { pages, more } = await firstPages(all, MOST_PAGES, (found) => show?.(comingOf(found, false, true)));
  return comingOf(pages, !more, false);
}

function comingOf(pages: readonly Shapes["TenantDensity"][], complete: boolean, reading: boolean): Coming {
  const sum = (of: (page: Shapes["TenantDensity"]) => number) => pages.reduce((all, page) => all + of(page), 0);
  return {
    minutes: added(pages),
    crowded: crowdedIn(pages),
    executions: sum((page) => page.executions),
    jobs: sum((page) => page.jobs_counted),
    pages: pages.length,
    complete,
    reading,
  };
}

// A page names as many.
const NAMED = 5;

/** The crowded minutes of all pages, each once, the most crowded first. Pure. */
export function crowdedIn(pages: readonly Pick<Shapes["TenantDensity"], "minutes" | "crowded">[]): Coming["crowded"] {
  const sums = new Map(added(pages));
  const found = new Map<string, Shapes["CrowdedMinute"]>();
  for (const { minute_at, jobs } of pages.flatMap((page) => page.crowded)) {
    const executions = sums.get(Date.parse(minute_at)) ?? 0;
    const named = [...(found.get(minute_at)?.jobs ?? []), ...jobs].slice(0, NAMED);
    found.set(minute_at, { minute_at, executions, jobs: named });
  }
  return [...found.values()].sort((one, other) => other.executions - one.executions);
}

/** When the minute ends (ms) by which so many executions are due; undefined if fewer are. Pure. */
export function dueBy(minutes: Coming["minutes"], present: number, count: number): number | undefined {
  let sum = 0;
  for (const [at, executions] of minutes) {
    if (at + MINUTE <= present) continue;
    sum += executions;
    if (sum >= count) return at + MINUTE;
  }
  return undefined;
}

// Some are over before the next ones are loaded.
const NEXT = 24;
// As many as a page may have.
const MOST_NEXT = 1_000;

/** The next executions, the earliest first. Of many jobs a page has only some, so all pages of a short time are read. */
export async function loadNext(signal: AbortSignal, coming: Coming | undefined): Promise<Execution[]> {
  if (!coming || coming.reading || coming.pages < 2) {
    return (await api().get("/v1/upcoming", { query: { limit: NEXT }, signal })).executions;
  }
  const until = dueBy(coming.minutes, Date.now(), NEXT);
  const query = { limit: MOST_NEXT, ...(until ? { until_at: rfc3339(until) } : {}) };
  const { pages } = await firstPages(api().pages("/v1/upcoming", { query, signal }), MOST_PAGES);
  return pages
    .flatMap((page) => page.executions)
    .sort((one, other) => Date.parse(one.due_at) - Date.parse(other.due_at))
    .slice(0, NEXT);
}
