/** Tables, and boxes that scroll sideways. Of many rows some are drawn at a time, so that a page stays light. */

import { type ComponentChildren, Fragment, type JSX } from "preact";
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
  /** What stands below a row, over all columns. */
  below?: (row: T) => ComponentChildren;
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
    const observer = new ResizeObserver(() => {
      setWider(shown.scrollWidth > shown.clientWidth);
      if (toEnd) shown.scrollLeft = shown.scrollWidth;
    });
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

const MOST_ROWS = 50;

/** Some of many items, and the way to the others: `draw` gets those that are shown. */
export function Some<T>(props: {
  items: readonly T[];
  most?: number;
  draw: (shown: readonly T[]) => ComponentChildren;
}): JSX.Element {
  const { items, most = MOST_ROWS } = props;
  const [begin, setBegin] = useState(0);
  // The list may have become shorter.
  const from = begin < items.length ? begin : 0;
  const until = Math.min(items.length, from + most);
  return (
    <>
      {props.draw(items.slice(from, until))}
      {items.length > most ? (
        <div class="pages actions">
          <button type="button" disabled={!from} onClick={() => setBegin(from - most)}>
            Previous
          </button>
          <span class="muted">
            {(from + 1).toLocaleString("en")} to {until.toLocaleString("en")} of {items.length.toLocaleString("en")}
          </span>
          <button type="button" disabled={until === items.length} onClick={() => setBegin(until)}>
            Next {Math.min(most, items.length - until) || most}
          </button>
        </div>
      ) : null}
    </>
  );
}

// A table with fewer columns fits into a phone's window.
const CARDS_FROM = 4;

/** A table; on a small screen each row is a card that has all columns by their names. `empty` if it has no row. */
export function List<T>(props: Rows<T> & { empty?: JSX.Element }): JSX.Element | null {
  const { rows } = props;
  if (!rows.length) return props.empty ?? null;
  return <Some items={rows} draw={(shown) => <Rows {...props} rows={shown} />} />;
}

function Rows<T>(props: Rows<T>): JSX.Element {
  const { rows, columns } = props;
  return (
    <Scroll label={props.label}>
      <table aria-label={props.label} class={columns.length < CARDS_FROM ? "" : "cards"}>
        {columns.some((column) => column.name) ? <Header columns={columns} /> : null}
        <tbody>
          {rows.map((row) => {
            const below = props.below?.(row);
            return (
              <Fragment key={props.keyOf(row)}>
                <tr>
                  <Cells row={row} columns={columns} />
                </tr>
                {below ? (
                  <tr>
                    <td colSpan={columns.length}>{below}</td>
                  </tr>
                ) : null}
              </Fragment>
            );
          })}
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
        <td
          key={n}
          class={column.class}
          data-label={typeof column.name === "string" && column.name ? column.name : undefined}
        >
          {column.cell(row)}
        </td>
      ))}
    </>
  );
}
