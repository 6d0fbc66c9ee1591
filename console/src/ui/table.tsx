/** Tables, and boxes that scroll sideways. A list has pages, so a table draws all of its rows. */

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

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
    for (const element of [shown, ...shown.children]) observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const reachable = isWider ? { tabIndex: 0, role: "group" as const, "aria-label": label } : {};
  return (
    <div class="scroll" ref={box} {...reachable}>
      {children}
    </div>
  );
}

/** A table; `empty` if it has no row. */
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
