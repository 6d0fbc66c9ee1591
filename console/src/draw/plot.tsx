/** The durations of runs over time, one point each; failed ones are crosses. */

import type { JSX } from "preact";
import { absolute, duration, zoneChoice, zoneOf } from "../lib/time";
import { useWidth } from "../ui/hooks";
import { ticks } from "./bins";

export interface Point {
  /** ms */
  at: number;
  seconds: number;
  failed: boolean;
}

const LEFT = 52;
const BOTTOM = 20;
// The width of an instant below the axis.
const LABEL = 98;

/** Three round values up to the most. Pure. */
export function levels(most: number): number[] {
  if (most <= 0) return [0];
  const size = 10 ** Math.floor(Math.log10(most));
  const step = [0.2, 0.5, 1, 2, 5].map((part) => part * size).find((candidate) => most / candidate <= 4) ?? size * 5;
  return Array.from({ length: Math.floor(most / step) + 1 }, (_, n) => Number((n * step).toPrecision(6)));
}

export function Plot({
  label,
  points,
  zone,
}: {
  label: string;
  points: readonly Point[];
  zone?: string | undefined;
}): JSX.Element {
  const [box, width] = useWidth<HTMLDivElement>();
  const height = 140;
  const from = Math.min(...points.map((point) => point.at));
  const until = Math.max(...points.map((point) => point.at), from + 60_000);
  const most = Math.max(...points.map((point) => point.seconds), 0.001) * 1.08;
  const x = (at: number) => LEFT + ((at - from) / (until - from)) * (width - LEFT - 8);
  const y = (seconds: number) => height - BOTTOM - (seconds / most) * (height - BOTTOM - 6);
  const shownIn = zoneOf(zoneChoice.value, zone);
  return (
    <div ref={box}>
      <svg class="draw" viewBox={`0 0 ${width} ${height}`} height={height} role="img" aria-label={label}>
        {levels(most).map((seconds) => (
          <g key={seconds}>
            <line x1={LEFT} x2={width} y1={y(seconds)} y2={y(seconds)} class="s-line" />
            <text x={LEFT - 6} y={y(seconds) + 4} text-anchor="end">
              {duration(seconds)}
            </text>
          </g>
        ))}
        {ticks(from, until, Math.max(2, Math.floor(width / 160)))
          // The last one is moved to the left where it would be cut off, and may meet the one before.
          .filter((_, n, all) => n + 1 < all.length || n === 0 || x(all[n - 1] ?? from) < width - 2.2 * LABEL)
          .map((at) => (
            <text key={at} x={Math.min(x(at), width - LABEL)} y={height - 4}>
              {absolute(at, shownIn).slice(0, 16)}
            </text>
          ))}
        {points.map((point) => (
          <g key={`${point.at} ${point.seconds}`}>
            <title>{`${absolute(point.at, shownIn)}: ${duration(point.seconds)}${point.failed ? ", failed" : ""}`}</title>
            {point.failed ? (
              <path
                d={`M${x(point.at) - 3.5} ${y(point.seconds) - 3.5}l7 7m0-7-7 7`}
                class="s-bad"
                stroke-width="2"
                fill="none"
              />
            ) : (
              <circle cx={x(point.at)} cy={y(point.seconds)} r="2.6" class="f-accent" opacity="0.75" />
            )}
          </g>
        ))}
      </svg>
    </div>
  );
}
