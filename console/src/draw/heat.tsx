/** One row of cells by hour: colour and a figure say the same. */

import type { JSX } from "preact";
import { local, zoneChoice, zoneOf } from "../lib/time";
import { Scroll } from "../ui/table";

export interface Cell {
  /** ms */
  at: number;
  /** From 0 (good) to 1 (bad); null: nothing happened. */
  badness: number | null;
  /** What stands in the cell, at most four characters. */
  text: string;
  title: string;
}

export function Heat({ rows }: { rows: { name: string; cells: Cell[] }[] }): JSX.Element {
  const zone = zoneOf(zoneChoice.value, undefined);
  return (
    <Scroll label="By hour" toEnd>
      <table class="heat" aria-label="By hour">
        <thead>
          <tr>
            <td />
            {rows[0]?.cells.map((cell) => (
              <th key={cell.at} scope="col">
                {local(cell.at, zone).time.slice(0, 2)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.name}>
              <th scope="row">{row.name}</th>
              {row.cells.map((cell) => (
                <td key={cell.at} class={`cell ${levelOf(cell.badness)}`} title={cell.title}>
                  {cell.text}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

/** The class of a cell. Pure. */
export function levelOf(badness: number | null): string {
  if (badness === null) return "none";
  if (badness <= 0) return "level0";
  if (badness < 0.05) return "level1";
  return badness < 0.25 ? "level2" : "level3";
}
