/** Executions that were enqueued and have no record: what ticks have found; an operator sends them again. */

import type { Shapes } from "minute8-client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useLoad } from "../lib/load";
import { to } from "../lib/router";
import { api } from "../lib/session";
import { DAY, rfc3339 } from "../lib/time";
import { Ask, say } from "../ui/actions";
import { Card, Empty, Problem, Text, Time, Waiting } from "../ui/parts";

type Lost = Shapes["WithoutRecord"];

const SHOWN = 50;

export function Unrecorded(): JSX.Element {
  const [asked, ask] = useState<readonly Lost[]>();
  const found = useLoad(
    "unrecorded",
    async (signal) => {
      const query = { limit: SHOWN, from_at: rfc3339(Date.now() - 2 * DAY) };
      const executions: Lost[] = [];
      for await (const page of api().pages("/v1/platform/unrecorded", { query, signal })) {
        executions.push(...page.executions);
        if (executions.length >= SHOWN) return { executions, more: Boolean(page.next_cursor) };
      }
      return { executions, more: false };
    },
    60,
  );
  const lost = found.data?.executions ?? [];
  return (
    <Card title="No record, 48 h">
      <Problem error={found.error} retry={found.reload} />
      {!found.data ? (
        found.error ? null : (
          <Waiting lines={1} />
        )
      ) : lost.length ? (
        <>
          <div class="actions">
            <strong class="alarm">
              {lost.length}
              {found.data.more ? "+" : ""} executions
            </strong>
            <button type="button" onClick={() => ask(lost)}>
              Send these again
            </button>
          </div>
          <div class="scroll">
            <table aria-label="Executions without a record">
              <tbody>
                {lost.map((one) => (
                  <tr key={one.execution_id}>
                    <td>
                      <Time at={one.due_at} />
                    </td>
                    <td>
                      <a href={to(["tenants", one.tenant_id])}>{one.tenant_id}</a>
                    </td>
                    <td class="wrap mono">
                      <Text>{one.execution_id}</Text>
                    </td>
                    <td class="muted">
                      {one.sent_at ? (
                        <>
                          sent again <Time at={one.sent_at} />
                        </>
                      ) : null}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </>
      ) : (
        <Empty title="Every execution has a record">Ticks compare what they enqueued with what ran.</Empty>
      )}
      {asked ? <Sure lost={asked} close={() => ask(undefined)} changed={found.reload} /> : null}
    </Card>
  );
}

function Sure(props: { lost: readonly Lost[]; close: () => void; changed: () => void }): JSX.Element {
  const act = async () => {
    const body = { execution_ids: props.lost.map((one) => one.execution_id) };
    const done = await api().post("/v1/platform/unrecorded/run", { body });
    say(`${done.sent.length} are sent again, ${done.recorded.length} have a record meanwhile`);
    props.changed();
  };
  return (
    <Ask title="Send again" verb={`Send ${props.lost.length} again`} act={act} close={props.close}>
      <p>Each runs late, and once: what has a record meanwhile is left out.</p>
    </Ask>
  );
}
