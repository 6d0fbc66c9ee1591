/** When failures came, as small bars: so that one that began now is told from one that goes on for days. */

import type { JSX } from "preact";
import { absolute, HOUR, zoneChoice, zoneOf } from "../lib/time";
import { type Bin, binsOf } from "./bins";

const BARS = 24;
const BAR_PX = 5;
const HEIGHT = 20;

interface Hours {
  hours: readonly { at: string; failed: number }[];
  from: number;
  until: number;
}

function barsOf({ hours, from, until }: Hours): Bin[] {
  const marks = hours.map(({ at, failed }) => ({ at: Date.parse(at), state: "failed", count: failed }));
  // From a whole hour on, so that each bar has as many hours.
  const start = Math.floor(from / HOUR) * HOUR;
  return binsOf(marks, start, Math.max(until, start + BARS), BARS);
}

/** The most failures of a bar, of several trends. Pure. */
export function mostOf(trends: readonly Hours[]): number {
  return Math.max(1, ...trends.flatMap((trend) => barsOf(trend).map((bin) => bin.total)));
}

/** `most`: how many failures the highest bar of all trends beside each other has. */
export function Trend({ most, ...trend }: Hours & { most: number }): JSX.Element {
  const bins = barsOf(trend);
  const zone = zoneOf(zoneChoice.value, undefined);
  const first = bins.find((bin) => bin.total);
  const recent = bins.slice(-BARS / 4).reduce((sum, bin) => sum + bin.total, 0);
  const label = first ? `since ${absolute(first.from, zone).slice(0, 16)}, ${recent} lately` : "none";
  return (
    <svg class="spark" width={BARS * BAR_PX} height={HEIGHT} role="img" aria-label={label}>
      <title>{label}</title>
      <rect x="0" y={HEIGHT - 1} width={BARS * BAR_PX} height="1" class="f-track" />
      {bins.map((bin, n) => {
        const height = bin.total ? Math.max(2, (bin.total / most) * HEIGHT) : 0;
        return (
          <rect key={bin.from} x={n * BAR_PX} y={HEIGHT - height} width={BAR_PX - 1} height={height} class="f-bad" />
        );
      })}
    </svg>
  );
}
