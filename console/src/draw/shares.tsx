/** Where time goes: until calls begin, which is Minute8's part, and in the calls, which is the targets'. */

import type { Shapes } from "minute8-client";
import type { JSX } from "preact";
import { duration, inUnits } from "../lib/time";
import { Scroll } from "../ui/table";
import { levels } from "./plot";

type Spread = Shapes["Spread"];

/** How some values are spread, by nearest rank as the API does it. Pure. */
export function spreadOf(values: readonly number[]): Spread {
  const sorted = [...values].sort((first, second) => first - second);
  const at = (share: number) => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? null;
  return { count: sorted.length, p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1) };
}

interface Parts {
  /** Seconds from due to the start. */
  lateness: Spread;
  /** Seconds of the call. */
  durations: Spread;
}

// What starts later than this counts as late.
export const LATE_S = 1;

/** The end of the scale of both bars, in seconds: a round value, from which on nothing is longer. Pure. */
export function scaleOf(...seconds: readonly (number | null | undefined)[]): number {
  const most = Math.max(LATE_S, ...seconds.map((value) => value ?? 0));
  const [, step = most] = levels(most);
  return Number((Math.ceil(most / step) * step).toPrecision(6));
}

export function WhereTimeGoes({ lateness, durations }: Parts): JSX.Element | null {
  const most = scaleOf(lateness.p99, durations.p99);
  if (!lateness.count && !durations.count) return null;
  const row = (whose: string, name: string, { p50, p99, max }: Spread, tone: string) => (
    <tr>
      <th scope="row">
        {whose} <span class="muted">{name}</span>
      </th>
      <td class="bars">
        <svg viewBox="0 0 1000 12" preserveAspectRatio="none" width="100%" height="12" aria-hidden="true">
          <rect width="1000" height="12" class="f-track" />
          <rect width={p99 == null ? 0 : Math.max(3, (p99 / most) * 1000)} height="12" class={tone} />
        </svg>
      </td>
      {[p50, p99, max].map((seconds, n) => (
        <td key={n} class="num">
          {seconds == null ? "–" : duration(seconds)}
        </td>
      ))}
    </tr>
  );
  return (
    <Scroll label="Where time goes">
      <table class="waterfall shares" aria-label="Where time goes">
        <thead>
          <tr>
            <td />
            <th scope="col" class="bars">
              99 %, from 0 to {inUnits(most)}
            </th>
            {["median", "99 %", "most"].map((name) => (
              <th key={name} scope="col" class="num">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {row("Minute8", "starts late by", lateness, (lateness.p99 ?? 0) > LATE_S ? "f-late" : "f-good")}
          {row("The target", "takes", durations, "f-accent")}
        </tbody>
      </table>
    </Scroll>
  );
}
