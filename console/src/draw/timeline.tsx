/**
 * Executions on one line of time: a column for each slice, its height how many, its colours what became of them. What is
 * over and what is to come have a scale each. A column can be pointed at, reached by keyboard, clicked, and dragged over.
 */

import type { JSX } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import { lookOf } from "../lib/states";
import { absolute, DAY, local, now, zoneChoice, zoneOf } from "../lib/time";
import { useWidth } from "../ui/hooks";
import { Icon } from "../ui/icons";
import { AHEAD, type Bin, binsOf, columnsOf, countLevels, type Mark, partOf, stack, ticks } from "./bins";

const COLUMN_PX = 6;
const AXIS_PX = 20;
// Above the columns, for the word "now".
const TOP_PX = 16;
const SIDE_PX = 40;

/** A part of the line that somebody chose (ms). */
export interface Chosen {
  from: number;
  until: number;
}

interface Scale {
  x: (at: number) => number;
  width: number;
  height: number;
  zone: string;
}

export function TimeLine(props: {
  label: string;
  marks: readonly Mark[];
  from: number;
  until: number;
  zone?: string | undefined;
  height?: number;
  /** The width of a column in ms; as many as fit otherwise. */
  step?: number;
  open?: (chosen: Chosen) => void;
  openWords?: string;
}): JSX.Element {
  const [box, whole] = useWidth<HTMLDivElement>();
  const [hidden, hide] = useState<ReadonlySet<string>>(new Set());
  const [read, setRead] = useState<number>();
  const { from, marks } = props;
  const width = whole - 2 * SIDE_PX;
  const height = props.height ?? 72;
  const zone = zoneOf(zoneChoice.value, props.zone);
  const [columns, until] = props.step
    ? [Math.max(1, Math.round((props.until - from) / props.step)), props.until]
    : columnsOf(from, props.until, width, COLUMN_PX);
  const bins = useMemo(
    () =>
      binsOf(
        marks.filter((mark) => !hidden.has(mark.state)),
        from,
        until,
        columns,
      ),
    [marks, hidden, from, until, columns],
  );
  const scale: Scale = { x: (at) => SIDE_PX + ((at - from) / (until - from)) * width, width, height, zone };
  const present = Math.min(until, Math.max(from, now.value));
  const shown = read === undefined ? undefined : bins[read];
  const columnAt = (clientX: number) => {
    const left = box.current?.getBoundingClientRect().left ?? 0;
    return Math.max(0, Math.min(columns - 1, Math.floor(((clientX - left - SIDE_PX) / width) * columns)));
  };
  const { open } = props;
  const openWords = open ? (props.openWords ?? "Click a column to see its executions.") : " ";
  const choose = (from: number, to: number) => {
    const [first, last] = [bins[Math.min(from, to)], bins[Math.max(from, to)]];
    if (first && last) open?.({ from: first.from, until: last.until });
  };
  const brush = useBrush(columnAt, setRead, open ? choose : undefined);
  return (
    <div ref={box} class="timeline">
      <svg
        class={`draw ${open ? "clickable" : ""}`}
        viewBox={`0 0 ${whole} ${TOP_PX + height + AXIS_PX}`}
        height={TOP_PX + height + AXIS_PX}
        role="img"
        aria-label={`${props.label}: ${summary(marks)}`}
        {...brush.events}
      >
        <g transform={`translate(0 ${TOP_PX})`}>
          <Times scale={scale} from={from} until={until} />
          {read === undefined ? null : (
            <rect
              x={scale.x(bins[Math.min(brush.from ?? read, read)]?.from ?? from)}
              width={((Math.abs(read - (brush.from ?? read)) + 1) * width) / columns}
              height={height}
              class="f-soft"
            />
          )}
          <Columns bins={partOf(bins, present, false)} scale={scale} clip={[from, present]} side="left" />
          <Columns bins={partOf(bins, present, true)} scale={scale} clip={[present, until]} side="right" />
          <line x1={SIDE_PX} x2={whole - SIDE_PX} y1={height} y2={height} class="s-strong" />
          {present > from && present < until ? (
            <g>
              <line
                x1={scale.x(present)}
                x2={scale.x(present)}
                y1="0"
                y2={height}
                class="s-accent"
                stroke-width="1.5"
              />
              <text x={scale.x(present)} y="-4" text-anchor="middle" class="f-accent">
                now
              </text>
              {/* The two sides have a scale each. */}
              {scale.x(present) > SIDE_PX + 80 ? (
                <text x={SIDE_PX} y="-4">
                  ← what ran
                </text>
              ) : null}
              {scale.x(present) < whole - SIDE_PX - 80 ? (
                <text x={whole - SIDE_PX} y="-4" text-anchor="end">
                  what is due →
                </text>
              ) : null}
            </g>
          ) : null}
        </g>
      </svg>
      <input
        type="range"
        class="sr"
        aria-label={`${props.label}, by time`}
        min={0}
        max={columns - 1}
        value={read ?? 0}
        aria-valuetext={shown ? words(shown, zone) : "not read yet"}
        onFocus={() => setRead(read ?? Math.floor(scale.x(present) < whole / 2 ? 0 : columns / 2))}
        onBlur={() => setRead(undefined)}
        onInput={(event) => setRead(Number(event.currentTarget.value))}
        onKeyDown={(event) => {
          if (event.key === "Enter" && read !== undefined) choose(read, read);
        }}
      />
      <p class="hint reading">{shown ? words(shown, zone) : openWords}</p>
      <Legend marks={marks} hidden={hidden} hide={hide} />
    </div>
  );
}

/** What a pointer does: it reads the column that it is on, and chooses one, or all that it is dragged over. */
function useBrush(
  columnAt: (clientX: number) => number,
  read: (column: number | undefined) => void,
  choose: ((from: number, to: number) => void) | undefined,
) {
  const [from, setFrom] = useState<number>();
  const begun = useRef<number | undefined>(undefined);
  const begin = (column: number | undefined) => {
    begun.current = column;
    setFrom(column);
  };
  return {
    from,
    events: {
      onPointerMove: (event: PointerEvent) => read(columnAt(event.clientX)),
      onPointerLeave: () => {
        begin(undefined);
        read(undefined);
      },
      onPointerDown: (event: PointerEvent) => {
        if (choose && event.button === 0) begin(columnAt(event.clientX));
      },
      onPointerUp: (event: PointerEvent) => {
        const first = begun.current;
        begin(undefined);
        if (first !== undefined) choose?.(first, columnAt(event.clientX));
      },
    },
  };
}

/** The labels below, and the lines that go up from them. */
function Times({ scale, from, until }: { scale: Scale; from: number; until: number }): JSX.Element {
  const { x, width, height, zone } = scale;
  return (
    <>
      {ticks(from, until, Math.floor(width / 90)).map((at) => (
        <g key={at}>
          <line x1={x(at)} x2={x(at)} y1="0" y2={height} class="s-line" />
          <text x={x(at)} y={height + 14} text-anchor="middle">
            {tick(at, zone, until - from)}
          </text>
        </g>
      ))}
    </>
  );
}

/** The columns of what is over or to come, between two instants, with the axis of their counts on one side. */
function Columns(props: {
  bins: readonly Bin[];
  scale: Scale;
  clip: readonly [number, number];
  side: "left" | "right";
}): JSX.Element | null {
  const { x, width, height } = props.scale;
  const most = Math.max(0, ...props.bins.map((bin) => bin.total));
  if (!most) return null;
  const left = props.side === "left";
  const [begin, end] = props.clip;
  return (
    <g>
      {countLevels(most).map((count) => {
        const y = height - (count / most) * (height - 4);
        return (
          <g key={count}>
            <line x1={x(begin)} x2={x(end)} y1={y} y2={y} class="s-line" stroke-dasharray="2 3" />
            <text x={left ? SIDE_PX - 4 : SIDE_PX + width + 4} y={y + 4} text-anchor={left ? "end" : "start"}>
              {short(count)}
            </text>
          </g>
        );
      })}
      {props.bins.map((bin) => {
        // The column of the present is cut where it begins or ends.
        const from = x(Math.max(bin.from, Math.min(begin, bin.until)));
        const until = x(Math.min(bin.until, Math.max(end, bin.from)));
        return <Column key={bin.from} bin={bin} most={most} x={from} w={until - from} height={height} />;
      })}
    </g>
  );
}

function Column(props: { bin: Bin; most: number; x: number; w: number; height: number }): JSX.Element | null {
  const { bin, height } = props;
  if (!bin.total) return null;
  let y = height;
  // The worst on top, where it is seen first.
  const parts = stack(bin.states, props.most, height - 4).reverse();
  return (
    <g>
      {parts.map(([state, part]) => {
        y -= part;
        return (
          <rect
            key={state}
            x={props.x}
            y={y}
            width={Math.max(1.5, props.w - 1)}
            height={part}
            class={`f-${lookOf(state).tone}`}
            opacity={state === AHEAD ? 0.55 : 1}
          />
        );
      })}
    </g>
  );
}

/** How many there are of each state; clicking one hides it. */
function Legend(props: {
  marks: readonly Mark[];
  hidden: ReadonlySet<string>;
  hide: (states: ReadonlySet<string>) => void;
}): JSX.Element {
  const counts = countsOf(props.marks);
  const toggle = (state: string) => {
    const next = new Set(props.hidden);
    if (!next.delete(state)) next.add(state);
    props.hide(next);
  };
  return (
    <div class="legend">
      {[...counts].map(([state, count]) => (
        <button
          key={state}
          type="button"
          class="quiet"
          aria-pressed={!props.hidden.has(state)}
          title="Show or hide"
          onClick={() => toggle(state)}
        >
          <span class={`state ${lookOf(state).tone}`}>
            <Icon name={lookOf(state).shape} />
            {count.toLocaleString("en")} {lookOf(state).word}
          </span>
        </button>
      ))}
      {counts.size ? null : <span class="muted">nothing was or is due</span>}
    </div>
  );
}

function countsOf(marks: readonly Mark[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { state, count } of marks) counts.set(state, (counts.get(state) ?? 0) + (count ?? 1));
  return counts;
}

function summary(marks: readonly Mark[]): string {
  return [...countsOf(marks)].map(([state, count]) => `${count} ${lookOf(state).word}`).join(", ") || "nothing";
}

/** A column in words. */
function words(bin: Bin, zone: string): string {
  const found = bin.states.map(([state, count]) => `${count.toLocaleString("en")} ${lookOf(state).word}`).join(", ");
  return `${absolute(bin.from, zone).slice(0, 16)} to ${local(bin.until, zone).time.slice(0, 5)}: ${found || "nothing"}`;
}

function short(count: number): string {
  if (count < 10_000) return count.toLocaleString("en");
  return count < 1_000_000 ? `${count / 1000}k` : `${count / 1_000_000}M`;
}

function tick(at: number, zone: string, range: number): string {
  const shown = local(at, zone);
  if (range > 3 * DAY) return `${shown.weekday} ${shown.date.slice(8)}`;
  return shown.time === "00:00:00" ? `${shown.weekday} ${shown.date.slice(8)}` : shown.time.slice(0, 5);
}
