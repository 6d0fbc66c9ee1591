/** Tables: a short one draws all of its rows, a long one only those near what is seen, so that 10,000 stay quick. */

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

const ROW_PX = 37;
const AROUND = 12;

export interface Column<T> {
  name: ComponentChildren;
  label?: string;
  class?: string;
  cell: (row: T) => ComponentChildren;
}

export interface Rows<T> {
  label: string;
  columns: Column<T>[];
  rows: readonly T[];
  keyOf: (row: T) => string;
}

/** The column of what can be done with a row. */
export function actions<T>(cell: (row: T) => ComponentChildren): Column<T> {
  return { name: <span class="sr">Actions</span>, class: "end", cell };
}

/** A box that scrolls sideways, at first to its end if `toEnd`. The keyboard reaches it while what it holds is wider. */
export function Scroll(props: { label: string; toEnd?: boolean; children: ComponentChildren }): JSX.Element {
  const { label, toEnd, children } = props;
  const box = useRef<HTMLDivElement>(null);
  const [isWider, setWider] = useState(false);
  useEffect(() => {
    const shown = box.current;
    if (!shown) return;
    if (toEnd) shown.scrollLeft = shown.scrollWidth;
    const observer = new ResizeObserver(() => setWider(shown.scrollWidth > shown.clientWidth));
    for (const one of [shown, ...shown.children]) observer.observe(one);
    return () => observer.disconnect();
  }, []);
  const reachable = isWider ? { tabIndex: 0, role: "group" as const, "aria-label": label } : {};
  return (
    <div class="scroll" ref={box} {...reachable}>
      {children}
    </div>
  );
}

/** A short table: all of its rows; `empty` if there is none. */
export function List<T>(props: Rows<T> & { empty?: JSX.Element }): JSX.Element | null {
  const { rows, columns } = props;
  if (!rows.length) return props.empty ?? null;
  return (
    <Scroll label={props.label}>
      <table aria-label={props.label}>
        {columns.some((column) => column.name) ? <Header columns={columns} /> : null}
        <tbody>
          {rows.map((row) => (
            <tr key={props.keyOf(row)}>
              <Cells row={row} columns={columns} />
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

/** A long table, whose rows are equally high. */
export function Table<T>(props: Rows<T>): JSX.Element {
  const body = useRef<HTMLTableSectionElement>(null);
  const [seen, setSeen] = useState<[number, number]>([0, 60]);
  useEffect(() => {
    const look = () => {
      const top = body.current?.getBoundingClientRect().top ?? 0;
      const first = Math.max(0, Math.floor(-top / ROW_PX) - AROUND);
      const last = Math.ceil((innerHeight - top) / ROW_PX) + AROUND;
      setSeen((before) => (before[0] === first && before[1] === last ? before : [first, last]));
    };
    look();
    addEventListener("scroll", look, { passive: true });
    addEventListener("resize", look);
    return () => {
      removeEventListener("scroll", look);
      removeEventListener("resize", look);
    };
  }, [props.rows.length]);
  const first = Math.min(seen[0], Math.max(0, props.rows.length - 1));
  const shown = props.rows.slice(first, seen[1]);
  const after = Math.max(0, props.rows.length - first - shown.length);
  return (
    <Scroll label={props.label}>
      <table class="rows" aria-label={props.label} aria-rowcount={props.rows.length + 1}>
        <Header columns={props.columns} />
        <tbody ref={body}>
          <Spacer rows={first} columns={props.columns.length} />
          {shown.map((row, n) => (
            <tr key={props.keyOf(row)} aria-rowindex={first + n + 2}>
              <Cells row={row} columns={props.columns} />
            </tr>
          ))}
          <Spacer rows={after} columns={props.columns.length} />
        </tbody>
      </table>
    </Scroll>
  );
}

function Header<T>({ columns }: { columns: Column<T>[] }): JSX.Element {
  return (
    <thead>
      <tr>
        {columns.map((column, n) => (
          <th key={n} scope="col" class={column.class} aria-label={column.label}>
            {column.name}
          </th>
        ))}
      </tr>
    </thead>
  );
}

function Cells<T>({ row, columns }: { row: T; columns: Column<T>[] }): JSX.Element {
  return (
    <>
      {columns.map((column, n) => (
        <td key={n} class={column.class}>
          {column.cell(row)}
        </td>
      ))}
    </>
  );
}

function Spacer({ rows, columns }: { rows: number; columns: number }): JSX.Element | null {
  if (!rows) return null;
  return (
    <tr class="spacer">
      <td colSpan={columns} style={{ height: `${rows * ROW_PX}px` }} />
    </tr>
  );
}
