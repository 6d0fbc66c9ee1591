/** Instants and what became of them, counted into the columns of a time line. Pure. */

import { WORST_FIRST } from "../lib/states";

/** The state of what is to come. */
export const AHEAD = "to_come";

export interface Mark {
  /** ms */
  at: number;
  state: string;
  count?: number;
}

export interface Bin {
  from: number;
  until: number;
  total: number;
  /** Counts by state, the worst first. */
  states: [string, number][];
}

/** `columns` bins of equal width over [from, until); what is outside is left out. */
export function binsOf(marks: Iterable<Mark>, from: number, until: number, columns: number): Bin[] {
  const width = (until - from) / columns;
  const counts = Array.from({ length: columns }, () => new Map<string, number>());
  for (const mark of marks) {
    if (mark.at < from || mark.at >= until) continue;
    const column = counts[Math.min(columns - 1, Math.floor((mark.at - from) / width))];
    column?.set(mark.state, (column.get(mark.state) ?? 0) + (mark.count ?? 1));
  }
  return counts.map((states, n) => ({
    from: from + n * width,
    until: from + (n + 1) * width,
    total: [...states.values()].reduce((sum, count) => sum + count, 0),
    states: [...states].sort(([first], [second]) => rank(first) - rank(second)),
  }));
}

/** The part of bins that is over at `present` (ms), or the part that is to come; with their totals anew. */
export function partOf(bins: readonly Bin[], present: number, isAhead: boolean): Bin[] {
  return bins.map((bin) => {
    const states = bin.states.filter(([state]) => (state === AHEAD || bin.from >= present) === isAhead);
    return { ...bin, states, total: states.reduce((sum, [, count]) => sum + count, 0) };
  });
}

/** How many columns a line of this width has, each of whole minutes, so that all hold as many; and where they end. */
export function columnsOf(from: number, until: number, width: number, columnPx: number): [number, number] {
  const most = Math.max(20, Math.floor(width / columnPx));
  const step = Math.max(1, Math.ceil((until - from) / most / 60_000)) * 60_000;
  const columns = Math.max(1, Math.ceil((until - from) / step));
  return [columns, from + columns * step];
}

/** The worst state of several; undefined of none. */
export function worst(states: Iterable<string>): string | undefined {
  let found: string | undefined;
  for (const state of states) if (found === undefined || rank(state) < rank(found)) found = state;
  return found;
}

// A single failure among thousands is still seen.
const LEAST_PX = 1.5;

/** Heights of a stack of counts, `most` of which fill `height`: linear, but each that is there is seen. */
export function stack(
  states: readonly (readonly [string, number])[],
  most: number,
  height: number,
): [string, number][] {
  if (!most) return [];
  return states.map(([state, count]) => [state, Math.max(LEAST_PX, (count / most) * height)]);
}

/** Round counts for the labels of an axis up to `most`, without 0: three at most, whole numbers. */
export function countLevels(most: number): number[] {
  if (most < 1) return [];
  const size = 10 ** Math.floor(Math.log10(most));
  const step =
    [0.5, 1, 2, 5].map((part) => part * size).find((candidate) => candidate >= 1 && most / candidate < 4) ?? size * 5;
  return Array.from({ length: Math.floor(most / step) }, (_, n) => (n + 1) * step);
}

/** Instants at which a time line of this span has its labels, and how far they are apart. */
export function ticks(from: number, until: number, most: number): number[] {
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 10_080].map((minutes) => minutes * 60_000);
  const step = steps.find((candidate) => (until - from) / candidate <= most) ?? 20_160 * 60_000;
  const found: number[] = [];
  for (let at = Math.ceil(from / step) * step; at <= until; at += step) found.push(at);
  return found;
}

function rank(state: string): number {
  const found = (WORST_FIRST as readonly string[]).indexOf(state);
  return found < 0 ? WORST_FIRST.length : found;
}
