/** A concurrency key: who has its permits, who waits since when, and the end of either by hand. */

import type { Shapes } from "minute8-client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useLoad } from "../lib/load";
import { to } from "../lib/router";
import { api, may } from "../lib/session";
import { now, span } from "../lib/time";
import { Card, Empty, Found, Head, Time } from "../ui/parts";
import { actions, type Column, List } from "../ui/table";
import { jobColumn } from "./job-column";
import { EndByForce } from "./run";

type Entry = Shapes["PermitHolder"] | Shapes["Waiter"];

export function Permits({ name }: { name: string }): JSX.Element {
  const found = useLoad(`permits ${name}`, (signal) => api().get("/v1/permits", { query: { key: name }, signal }), 5);
  const [ended, end] = useState("");
  const list = (title: string, entries: (key: Shapes["ConcurrencyKey"]) => Entry[], empty: string, since: string) => (
    <Card title={title} side={found.data ? entries(found.data).length : null}>
      <Found found={found}>
        {(data) => (
          <List
            label={title}
            columns={columns(since, end)}
            rows={entries(data)}
            keyOf={(entry) => entry.execution_id}
            empty={<Empty title={empty} />}
          />
        )}
      </Found>
    </Card>
  );
  return (
    <>
      <Head title={<span class="mono">{name}</span>} sub="A concurrency key: jobs with it share its permits." />
      {list("Have a permit", (key) => key.holders, "No run has a permit", "Called")}
      {list("Wait for a permit", (key) => key.waiting, "No run waits", "Waits since")}
      {ended ? <EndByForce id={ended} close={() => end("")} /> : null}
    </>
  );
}

function columns(since: string, end: (id: string) => void): Column<Entry>[] {
  return [
    jobColumn("Job"),
    {
      name: "Run",
      class: "wrap",
      cell: ({ execution_id: id }) => (
        <a data-row href={to(["runs", id])}>
          {id.split(":").slice(2).join(":")}
        </a>
      ),
    },
    { name: since, cell: (entry) => <Time at={entry.since_at} /> },
    {
      name: "For",
      class: "num",
      cell: (entry) => (entry.since_at ? span(Math.max(0, (now.value - Date.parse(entry.since_at)) / 1000)) : "–"),
    },
    { name: "At most until", cell: (entry) => <Time at={entry.until_at} /> },
    actions(({ execution_id: id }) =>
      may("admin") ? (
        <button type="button" class="danger" onClick={() => end(id)}>
          End by force<span class="sr"> {id}</span>
        </button>
      ) : null,
    ),
  ];
}
