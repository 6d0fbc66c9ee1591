/** When the clocks of a zone change. Pure. */

import type { Shapes } from "minute8-client";
import { DAY, HOUR, local, MINUTE } from "./time";

export interface ClockChange {
  /** ms; the first instant with the new offset. */
  at: number;
  before: string;
  after: string;
  /** Minutes that are skipped (positive) or repeated (negative). */
  minutes: number;
}

/** The next change of a zone's offset after `from` and within a year; null if there is none. */
export function nextChange(zone: string, from: number): ClockChange | null {
  let low = Math.floor(from / MINUTE) * MINUTE;
  const first = offset(low, zone);
  const end = low + 366 * DAY;
  let high = low;
  while (offset(high, zone) === first) {
    low = high;
    high += 7 * DAY;
    if (high > end) return null;
  }
  while (high - low > MINUTE) {
    const middle = low + Math.floor((high - low) / 2 / MINUTE) * MINUTE;
    if (offset(middle, zone) === first) low = middle;
    else high = middle;
  }
  const after = offset(high, zone);
  return { at: high, before: first, after, minutes: minutesOf(after) - minutesOf(first) };
}

function offset(at: number, zone: string): string {
  return local(at, zone).offset;
}

export function minutesOf(offsetText: string): number {
  const found = /^([+-])(\d\d):(\d\d)/.exec(offsetText);
  if (!found) return 0;
  return (found[1] === "-" ? -1 : 1) * (Number(found[2]) * 60 + Number(found[3]));
}

/** The range around a change that a picture shows. */
export function around(change: ClockChange): [number, number] {
  return [change.at - 18 * HOUR, change.at + 18 * HOUR];
}

export type Moved = Shapes["MovedJob"];
/** Jobs that one change moves in the same way. */
export type Together = [Moved, ...Moved[]];

/** The moved jobs, those together that one change moves in the same way; the earliest change first. */
export function movedTogether(moved: readonly Moved[]): Together[] {
  const groups = new Map<string, Together>();
  for (const change of moved) {
    const key = JSON.stringify([change.change_at, change.timezone, change.text]);
    const group = groups.get(key);
    if (group) group.push(change);
    else groups.set(key, [change]);
  }
  return [...groups.values()].sort(([first], [second]) => Date.parse(first.change_at) - Date.parse(second.change_at));
}
