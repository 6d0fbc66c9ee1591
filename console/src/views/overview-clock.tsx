/** The jobs that the next clock changes of their zones move, before they do. */

import type { Shapes } from "minute8-client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useLoad } from "../lib/load";
import { to } from "../lib/router";
import { api } from "../lib/session";
import { Card, Problem, Text, Time } from "../ui/parts";

type Moved = Shapes["MovedJob"];

const FIRST = 6;

export function ClockChanges(): JSX.Element | null {
  // The API reads 1,000 jobs a page, so the next pages are read only if somebody asks.
  const [pages, setPages] = useState(1);
  const [all, showAll] = useState(false);
  const found = useLoad(`clock changes ${pages}`, (signal) => load(pages, signal));
  const [before, setBefore] = useState<{ moved: Moved[]; more: boolean }>();
  if (found.data && found.data !== before) setBefore(found.data);
  const data = found.data ?? before;
  if (!data?.moved.length) return data?.more ? <More pages={pages} set={setPages} /> : <Problem error={found.error} />;
  const shown = all ? data.moved : data.moved.slice(0, FIRST);
  return (
    <Card
      title="Moved by the next clock change"
      side={`${data.moved.length.toLocaleString("en")}${data.more ? "+" : ""} jobs`}
    >
      <Problem error={found.error} retry={found.reload} />
      <div class="scroll">
        <table aria-label="Jobs that a clock change moves">
          <tbody>
            {shown.map((moved) => (
              <tr key={moved.job_id}>
                <td class="clip">
                  <a class="mono" href={to(["jobs", moved.job_id])}>
                    {moved.job_id}
                  </a>
                </td>
                <td>
                  <Time at={moved.change_at} full /> <span class="muted small">{moved.timezone}</span>
                </td>
                <td class="wrap">
                  <Text most={300}>{moved.text}</Text>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {data.moved.length > shown.length ? (
        <div class="more">
          <button type="button" onClick={() => showAll(true)}>
            Show all {data.moved.length.toLocaleString("en")}
          </button>
        </div>
      ) : data.more ? (
        <More pages={pages} set={setPages} />
      ) : null}
    </Card>
  );
}

function More({ pages, set }: { pages: number; set: (pages: number) => void }): JSX.Element {
  return (
    <div class="more">
      <button type="button" onClick={() => set(pages + 1)}>
        Look for clock changes of more jobs
      </button>
    </div>
  );
}

async function load(most: number, signal: AbortSignal): Promise<{ moved: Moved[]; more: boolean }> {
  const moved: Moved[] = [];
  let pages = 0;
  for await (const page of api().pages("/v1/clock-changes", { signal })) {
    moved.push(...page.moved);
    if (++pages >= most) return { moved, more: Boolean(page.next_cursor) };
  }
  return { moved, more: false };
}
