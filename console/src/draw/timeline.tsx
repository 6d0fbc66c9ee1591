/** Due instants on one line of time: a column for each slice, its height how many, its colours what became of them. */

import type { JSX } from "preact";
import { lookOf } from "../lib/states";
import { absolute, DAY, local, now, zoneChoice, zoneOf } from "../lib/time";
import { useWidth } from "../ui/hooks";
import { Icon } from "../ui/icons";
import { type Bin, binsOf, columnsOf, type Mark, stack, ticks } from "./bins";

const COLUMN_PX = 6;
const AXIS_PX = 20;

export function TimeLine(props: {
  label: string;
  marks: readonly Mark[];
  from: number;
  until: number;
  zone?: string | undefined;
  height?: number;
  open?: (bin: Bin) => void;
}): JSX.Element {
  const [box, width] = useWidth<HTMLDivElement>();
  const { from, marks } = props;
  const height = props.height ?? 72;
  const zone = zoneOf(zoneChoice.value, props.zone);
  const [columns, until] = columnsOf(from, props.until, width, COLUMN_PX);
  const bins = binsOf(marks, from, until, columns);
  const most = Math.max(1, ...bins.map((bin) => bin.total));
  const x = (at: number) => ((at - from) / (until - from)) * width;
  const present = now.value;
  return (
    <div ref={box}>
      <svg
        class="draw"
        viewBox={`0 0 ${width} ${height + AXIS_PX}`}
        height={height + AXIS_PX}
        role="img"
        aria-label={`${props.label}: ${summary(marks)}`}
      >
        {present > from && present < until ? (
          <rect x={x(present)} y="0" width={width - x(present)} height={height} class="f-soft" opacity="0.45" />
        ) : null}
        {ticks(from, until, Math.floor(width / 90)).map((at) => (
          <g key={at}>
            <line x1={x(at)} x2={x(at)} y1="0" y2={height} class="s-line" />
            <text x={Math.min(width - 30, x(at) + 3)} y={height + 14}>
              {tick(at, zone, until - from)}
            </text>
          </g>
        ))}
        <line x1="0" x2={width} y1={height} y2={height} class="s-strong" />
        {bins.map((bin, n) => (
          <Column
            key={bin.from}
            bin={bin}
            most={most}
            x={(n * width) / columns}
            w={width / columns - 1}
            height={height}
            zone={zone}
          />
        ))}
        {present > from && present < until ? (
          <g>
            <line x1={x(present)} x2={x(present)} y1="-2" y2={height} class="s-accent" stroke-width="1.5" />
            <text x={x(present) + 4} y="9" class="f-accent">
              now
            </text>
          </g>
        ) : null}
      </svg>
      <Legend marks={marks} />
    </div>
  );
}

function Column(props: {
  bin: Bin;
  most: number;
  x: number;
  w: number;
  height: number;
  zone: string;
}): JSX.Element | null {
  const { bin, height } = props;
  if (!bin.total) return null;
  let y = height;
  // The worst on top, where it is seen first.
  const parts = stack(bin.states, props.most, height - 4).reverse();
  const words = bin.states.map(([state, count]) => `${count} ${lookOf(state).word}`).join(", ");
  return (
    <g>
      <title>{`${absolute(bin.from, props.zone)}: ${words}`}</title>
      <rect x={props.x} y="0" width={props.w} height={height} fill="transparent" />
      {parts.map(([state, part]) => {
        y -= part;
        const { tone } = lookOf(state);
        return (
          <rect
            key={state}
            x={props.x}
            y={y}
            width={props.w}
            height={part}
            class={`f-${tone}`}
            opacity={state === "to_come" ? 0.45 : 1}
          />
        );
      })}
    </g>
  );
}

export function Legend({ marks }: { marks: readonly Mark[] }): JSX.Element {
  const counts = new Map<string, number>();
  for (const mark of marks) counts.set(mark.state, (counts.get(mark.state) ?? 0) + (mark.count ?? 1));
  return (
    <div class="legend">
      {[...counts].map(([state, count]) => (
        <span key={state} class={`state ${lookOf(state).tone}`}>
          <Icon name={lookOf(state).shape} />
          {count.toLocaleString("en")} {lookOf(state).word}
        </span>
      ))}
      {counts.size ? null : <span class="muted">nothing was or is due</span>}
    </div>
  );
}

function summary(marks: readonly Mark[]): string {
  const counts = new Map<string, number>();
  for (const { state, count } of marks) counts.set(state, (counts.get(state) ?? 0) + (count ?? 1));
  return [...counts].map(([state, count]) => `${count} ${lookOf(state).word}`).join(", ") || "nothing";
}

function tick(at: number, zone: string, range: number): string {
  const shown = local(at, zone);
  if (range > 3 * DAY) return `${shown.weekday} ${shown.date.slice(8)}`;
  return shown.time === "00:00:00" ? `${shown.weekday} ${shown.date.slice(8)}` : shown.time.slice(0, 5);
}
