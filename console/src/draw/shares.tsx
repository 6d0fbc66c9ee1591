/** Where time goes: until calls begin, which is Minute8's part, and in the calls, which is the targets'. */

import type { Shapes } from "minute8-client";
import type { JSX } from "preact";
import { duration } from "../lib/time";
import { Scroll } from "../ui/table";

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

export function WhereTimeGoes({ lateness, durations }: Parts): JSX.Element | null {
  const most = Math.max(lateness.p99 ?? 0, durations.p99 ?? 0);
  if (!lateness.count && !durations.count) return null;
  const row = (whose: string, name: string, { p50, p99, max }: Spread, tone: string) => (
    <tr>
      <th scope="row">
        {whose} <span class="muted">{name}</span>
      </th>
      <td class="bars roomy">
        <svg viewBox="0 0 1000 12" preserveAspectRatio="none" width="100%" height="12" aria-hidden="true">
          <rect width="1000" height="12" class="f-track" />
          <rect width={most ? Math.max(3, ((p99 ?? 0) / most) * 1000) : 0} height="12" class={tone} />
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
            <td class="roomy" />
            {["median", "99 %", "most"].map((name) => (
              <th key={name} scope="col" class="num">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {row("Minute8", "starts late by", lateness, "f-late")}
          {row("The target", "takes", durations, "f-accent")}
        </tbody>
      </table>
    </Scroll>
  );
}
