import type { JSX } from "preact";
import { lookOf } from "../lib/states";

const MOST = 20;

/** The last outcomes of a job, the newest on the right: colour and height say the same. */
export function Sparkline({ states }: { states: readonly string[] }): JSX.Element {
  const shown = states.slice(-MOST);
  const counts = new Map<string, number>();
  for (const state of shown) counts.set(lookOf(state).word, (counts.get(lookOf(state).word) ?? 0) + 1);
  const label = shown.length
    ? `last ${shown.length}: ${[...counts].map(([word, count]) => `${count} ${word}`).join(", ")}`
    : "no runs yet";
  return (
    <svg class="spark" width={MOST * 6} height="18" viewBox={`0 0 ${MOST * 6} 18`} role="img" aria-label={label}>
      <title>{label}</title>
      {shown.map((state, n) => {
        const { tone } = lookOf(state);
        const height = HEIGHTS[tone] ?? 6;
        const x = (MOST - shown.length + n) * 6;
        return <rect key={n} x={x} y={18 - height} width="4" height={height} rx="1" class={`f-${tone}`} />;
      })}
      {Array.from({ length: MOST - shown.length }, (_, n) => (
        <rect key={`none${n}`} x={n * 6} y="15" width="4" height="3" rx="1" class="f-track" />
      ))}
    </svg>
  );
}

const HEIGHTS: Record<string, number> = { good: 8, late: 12, bad: 18, alarm: 18, busy: 6, quiet: 4 };
