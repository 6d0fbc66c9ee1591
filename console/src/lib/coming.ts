/** What is coming: executions by minute, the minutes that are crowded, and the executions of a range. */

import type { Shapes } from "minute8-client";
import { firstPages } from "./pages";
import { api } from "./session";
import { rfc3339 } from "./time";

export type Execution = Shapes["ComingExecution"];
export type Crowded = Shapes["CrowdedMinute"];

export interface Coming {
  /** ms and how many. */
  minutes: [number, number][];
  crowded: Crowded[];
  executions: number;
  /** How many jobs are counted. */
  jobs: number;
  complete: boolean;
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
  return [...sums].sort(([first], [second]) => first - second);
}

/** How many executions of all jobs are due in each minute until an instant (ms). */
export async function loadDensity(until: number, signal: AbortSignal): Promise<Coming> {
  const all = api().pages("/v1/density", { query: { until_at: rfc3339(until) }, signal });
  const { pages, more } = await firstPages(all, MOST_PAGES);
  const sum = (of: (page: Shapes["TenantDensity"]) => number) => pages.reduce((total, page) => total + of(page), 0);
  return {
    minutes: added(pages),
    crowded: crowdedIn(pages),
    executions: sum((page) => page.executions),
    jobs: sum((page) => page.jobs_counted),
    complete: !more,
  };
}

// A page names as many.
const NAMED = 5;

/** The crowded minutes of all pages, each once, the most crowded first. Pure. */
export function crowdedIn(pages: readonly Pick<Shapes["TenantDensity"], "minutes" | "crowded">[]): Crowded[] {
  const sums = new Map(added(pages));
  const found = new Map<string, Crowded>();
  for (const { minute_at, jobs } of pages.flatMap((page) => page.crowded)) {
    const executions = sums.get(Date.parse(minute_at)) ?? 0;
    const named = [...(found.get(minute_at)?.jobs ?? []), ...jobs].slice(0, NAMED);
    found.set(minute_at, { minute_at, executions, jobs: named });
  }
  return [...found.values()].sort((first, second) => second.executions - first.executions);
}

// Each 1,000 jobs have an order of their own, so the pages of a range are sorted together.
const PAGE = 500;

/** The executions of a range (ms), the earliest first: as many as some pages have, and whether that is all. */
export async function loadExecutions(
  from: number,
  until: number,
  pages: number,
  signal: AbortSignal,
): Promise<{ executions: Execution[]; more: boolean }> {
  const query = { limit: PAGE, from_at: rfc3339(from), until_at: rfc3339(until) };
  const read = await firstPages(api().pages("/v1/upcoming", { query, signal }), pages);
  const executions = read.pages.flatMap((page) => page.executions);
  executions.sort((first, second) => Date.parse(first.due_at) - Date.parse(second.due_at));
  return { executions, more: read.more };
}
