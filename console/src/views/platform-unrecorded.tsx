/** Executions that were enqueued and have no record: what ticks have found; an operator sends them again. */

import type { Shapes } from "minute8-client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useLoad } from "../lib/load";
import { to } from "../lib/router";
import { api } from "../lib/session";
import { DAY, rfc3339 } from "../lib/time";
import { counted } from "../lib/words";
import { Ask, say } from "../ui/actions";
import { Card, Empty, Found, Text, Time } from "../ui/parts";
import { type Column, List } from "../ui/table";

type Lost = Shapes["WithoutRecord"];

const SHOWN = 50;

export function Unrecorded(): JSX.Element {
  const [asked, ask] = useState<readonly Lost[]>();
  const found = useLoad(
    "unrecorded",
    async (signal) => {
      const query = { limit: SHOWN, from_at: rfc3339(Date.now() - 2 * DAY) };
      const executions: Lost[] = [];
      // A page may be empty and not the last one.
      for await (const page of api().pages("/v1/platform/unrecorded", { query, signal })) {
        executions.push(...page.executions);
        if (executions.length >= SHOWN) return { executions, more: Boolean(page.next_cursor) };
      }
      return { executions, more: false };
    },
    60,
  );
  return (
    <Card title="No record, 48 h">
      <Found found={found} lines={1}>
        {({ executions, more }) =>
          executions.length ? (
            <>
              <div class="actions">
                <strong class="alarm">{counted(executions.length, "execution", more)}</strong>
                <button type="button" onClick={() => ask(executions)}>
                  Send these again
                </button>
              </div>
              <List
                label="Executions without a record"
                columns={COLUMNS}
                rows={executions}
                keyOf={(execution) => execution.execution_id}
              />
            </>
          ) : (
            <Empty title="Every execution has a record">Ticks compare what they enqueued with what ran.</Empty>
          )
        }
      </Found>
      {asked ? <Sure lost={asked} close={() => ask(undefined)} changed={found.reload} /> : null}
    </Card>
  );
}

const COLUMNS: Column<Lost>[] = [
  { name: "", cell: (execution) => <Time at={execution.due_at} /> },
  { name: "", cell: (execution) => <a href={to(["tenants", execution.tenant_id])}>{execution.tenant_id}</a> },
  { name: "", class: "wrap mono", cell: (execution) => <Text>{execution.execution_id}</Text> },
  {
    name: "",
    class: "muted",
    cell: (execution) =>
      execution.sent_at ? (
        <>
          sent again <Time at={execution.sent_at} />
        </>
      ) : null,
  },
];

function Sure(props: { lost: readonly Lost[]; close: () => void; changed: () => void }): JSX.Element {
  const execution_ids = props.lost.map((execution) => execution.execution_id);
  const plan = useLoad(`unrecorded-plan:${execution_ids.join()}`, () =>
    api().post("/v1/platform/unrecorded/run", { body: { execution_ids, send: false } }),
  );
  const act = async () => {
    const body = { execution_ids, send: true };
    const done = await api().post("/v1/platform/unrecorded/run", { body });
    say(
      `${done.sent.length} are sent again, ${done.known.length} recorded anew, ${done.recorded.length} have a record meanwhile`,
    );
    props.changed();
  };
  return (
    <Ask title="Send again" verb={`Send ${props.lost.length} again`} act={act} close={props.close}>
      <p>Each runs late. What is known to have had a record is only recorded anew.</p>
      <Found found={plan} lines={2}>
        {({ jobs }) => (
          <ul>
            {jobs.map((job) => (
              <li key={`${job.tenant_id}/${job.job_id}`}>
                {job.tenant_id}/{job.job_id}: {counted(job.executions, "execution")}
                {job.sent_before ? `, ${job.sent_before} sent before` : ""}
                {Object.entries(job.known_by).map(([source, count]) => `, ${count} called according to: ${source}`)}
              </li>
            ))}
          </ul>
        )}
      </Found>
    </Ask>
  );
}
