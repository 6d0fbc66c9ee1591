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
  const density = await api().get("/v1/density", { query: { until_at: rfc3339(until) }, signal });
  return {
    minutes: added([density]),
    crowded: density.crowded,
    executions: density.executions,
    jobs: density.jobs_counted,
    complete: density.complete,
  };
}

const PAGE = 500;

/** The executions of a range (ms), the earliest first: as many as some pages have, and whether that is all. */
export async function loadExecutions(
  from: number,
  until: number,
  pages: number,
  signal: AbortSignal,
): Promise<{ executions: Execution[]; more: boolean; jobs: number; complete: boolean }> {
  const query = { limit: PAGE, from_at: rfc3339(from), until_at: rfc3339(until) };
  const read = await firstPages(api().pages("/v1/upcoming", { query, signal }), pages);
  return {
    executions: read.pages.flatMap((page) => page.executions),
    more: read.more,
    jobs: read.pages[0]?.jobs_counted ?? 0,
    complete: read.pages.every((page) => page.complete),
  };
}
