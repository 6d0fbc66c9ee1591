/** The jobs that the next clock changes of their zones move, before they do. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useLoad } from "../lib/load";
import { firstPages } from "../lib/pages";
import { to } from "../lib/router";
import { api } from "../lib/session";
import { counted } from "../lib/words";
import { type Moved, movedTogether, type Together } from "../lib/zones";
import { Card, More, Problem, Text, Time } from "../ui/parts";
import { type Column, List } from "../ui/table";

const FIRST = 6;
// So many jobs of a group have a link.
const LINKED = 200;

export function ClockChanges(): JSX.Element | null {
  // The API reads 1,000 jobs a page, so the next pages are read only if somebody asks.
  const [pages, setPages] = useState(1);
  const [all, showAll] = useState(false);
  const found = useLoad(`clock changes ${pages}`, async (signal) => {
    const read = await firstPages(api().pages("/v1/clock-changes", { signal }), pages);
    return { moved: read.pages.flatMap((page) => page.moved), more: read.more };
  });
  const [before, setBefore] = useState<{ moved: Moved[]; more: boolean }>();
  if (found.data && found.data !== before) setBefore(found.data);
  const data = found.data ?? before;
  const more = data?.more ? <More show={() => setPages(pages + 1)}>Look for clock changes of more jobs</More> : null;
  if (!data?.moved.length) return more ?? <Problem error={found.error} retry={found.reload} />;
  const groups = movedTogether(data.moved);
  const shown = all ? groups : groups.slice(0, FIRST);
  return (
    <Card title="Moved by the next clock change" side={counted(data.moved.length, "job", data.more)}>
      <Problem error={found.error} retry={found.reload} />
      <List label="Jobs that a clock change moves" columns={COLUMNS} rows={shown} keyOf={([moved]) => moved.job_id} />
      {groups.length > shown.length ? (
        <More show={() => showAll(true)}>Show all {data.moved.length.toLocaleString("en")}</More>
      ) : (
        more
      )}
    </Card>
  );
}

const COLUMNS: Column<Together>[] = [
  { name: "", class: "wrap", cell: (moved) => <Ids moved={moved} /> },
  {
    name: "",
    class: "clip",
    cell: ([moved]) => (
      <>
        <Time at={moved.change_at} inZone={moved.timezone} full /> <span class="muted small">{moved.timezone}</span>
      </>
    ),
  },
  { name: "", class: "wrap", cell: ([moved]) => <Text most={300}>{moved.text}</Text> },
];

function Ids({ moved: [first, ...others] }: { moved: Together }): JSX.Element {
  const link = ({ job_id: id }: Moved) => (
    <a key={id} class="mono" href={to(["jobs", id])}>
      {id}
    </a>
  );
  return (
    <>
      {link(first)}
      {others.length ? (
        <details class="small">
          <summary>and {counted(others.length, "other job")}</summary>
          {others.slice(0, LINKED).flatMap((execution) => [link(execution), " "])}
          {others.length > LINKED ? "…" : ""}
        </details>
      ) : null}
    </>
  );
}
