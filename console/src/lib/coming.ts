/** What is coming: executions by minute, and the minutes that are crowded. */

import type { Shapes } from "minute8-client";
import type { Show } from "./load";
import { firstPages } from "./pages";
import { api } from "./session";

export interface Coming {
  /** ms and how many. */
  minutes: [number, number][];
  crowded: Shapes["CrowdedMinute"][];
  executions: number;
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
  return [...sums].sort(([one], [other]) => one - other);
}

export async function loadDensity(signal: AbortSignal, show?: Show<Coming>): Promise<Coming> {
  const all = api().pages("/v1/density", { signal });
  const { pages, more } = await firstPages(all, MOST_PAGES, (found) => show?.(comingOf(found, false)));
  return comingOf(pages, !more);
}

function comingOf(pages: readonly Shapes["TenantDensity"][], complete: boolean): Coming {
  const crowded = pages.flatMap((page) => page.crowded).sort((one, other) => other.executions - one.executions);
  return {
    minutes: added(pages),
    crowded,
    executions: pages.reduce((sum, page) => sum + page.executions, 0),
    complete,
  };
}
