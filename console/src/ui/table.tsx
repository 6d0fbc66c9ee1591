/** A table that draws only the rows near the window's part that is seen, so that 10,000 rows stay quick. */

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

export function Table<T>(props: {
  label: string;
  columns: Column<T>[];
  rows: readonly T[];
  keyOf: (row: T) => string;
}): JSX.Element {
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
    <div class="scroll">
      <table class="rows" aria-label={props.label} aria-rowcount={props.rows.length + 1}>
        <thead>
          <tr>
            {props.columns.map((column, n) => (
              <th key={n} scope="col" class={column.class} aria-label={column.label}>
                {column.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody ref={body}>
          <Spacer rows={first} columns={props.columns.length} />
          {shown.map((row, n) => (
            <tr key={props.keyOf(row)} aria-rowindex={first + n + 2}>
              {props.columns.map((column, c) => (
                <td key={c} class={column.class}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
          <Spacer rows={after} columns={props.columns.length} />
        </tbody>
      </table>
    </div>
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
