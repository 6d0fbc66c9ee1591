/** The failed runs of all jobs, grouped by job and error; a group can be retried at once. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Trend } from "../draw/trend";
import { throughAll } from "../lib/bulk";
import { type Group, keyOf, merged } from "../lib/groups";
import { refresh, useLoad } from "../lib/load";
import { place, setQuery, to } from "../lib/router";
import { api, may } from "../lib/session";
import { DAY, HOUR, now, rfc3339 } from "../lib/time";
import { counted } from "../lib/words";
import { Ask, say } from "../ui/actions";
import { Card, Empty, Head, Problem, Text, Time, Waiting } from "../ui/parts";
import { Scroll } from "../ui/table";
import { RunTable } from "./run-table";

const SINCE: [string, number][] = [
  ["24 h", 1],
  ["7 d", 7],
  ["30 d", 30],
];

export function Failures(): JSX.Element {
  const [open, setOpen] = useState("");
  const [retrying, setRetrying] = useState<Group>();
  const { days = "1", job } = place.value.query;
  const from = rfc3339(Math.floor(now.value / HOUR) * HOUR - Number(days) * DAY);
  const found = useLoad(
    `failures ${days} ${job}`,
    async (signal) => {
      const groups: Group[] = [];
      const query = { from_at: from, ...(job ? { job_id: job } : {}) };
      for await (const page of api().pages("/v1/failures/groups", { query, signal })) groups.push(...page.groups);
      return merged(groups);
    },
    15,
  );
  const groups = found.data ?? [];
  const runs = groups.reduce((sum, group) => sum + group.count, 0);
  return (
    <>
      <Head
        title="Failures"
        sub={found.data ? `${counted(runs, "failed run")} in ${counted(groups.length, "group")}` : null}
      >
        {SINCE.map(([name, value]) => (
          <button
            key={name}
            type="button"
            class="quiet"
            aria-pressed={days === String(value)}
            onClick={() => setQuery({ days: String(value) })}
          >
            {name}
          </button>
        ))}
      </Head>
      <Problem error={found.error} retry={found.reload} />
      <Card>
        {groups.length ? (
          <Scroll label="Failures by job and error">
            <table aria-label="Failures by job and error">
              <thead>
                <tr>
                  <th scope="col" class="num">
                    Runs
                  </th>
                  <th scope="col">Job</th>
                  <th scope="col">Error</th>
                  <th scope="col">When</th>
                  <th scope="col">First</th>
                  <th scope="col">Last</th>
                  <th scope="col">
                    <span class="sr">Actions</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {groups.map((group) => (
                  <Row
                    key={keyOf(group)}
                    group={group}
                    from={Date.parse(from)}
                    isOpen={open === keyOf(group)}
                    toggle={() => setOpen(open === keyOf(group) ? "" : keyOf(group))}
                    retry={() => setRetrying(group)}
                  />
                ))}
              </tbody>
            </table>
          </Scroll>
        ) : null}
        {found.data && !groups.length ? (
          <Empty title="Nothing has failed">This page looks again by itself.</Empty>
        ) : null}
        {found.data ? null : <Waiting lines={6} />}
      </Card>
      {retrying ? <Retry group={retrying} from={from} close={() => setRetrying(undefined)} /> : null}
    </>
  );
}

function Row(props: {
  group: Group;
  from: number;
  isOpen: boolean;
  toggle: () => void;
  retry: () => void;
}): JSX.Element {
  const { group } = props;
  return (
    <>
      <tr>
        <td class="num bad">
          <strong>{group.count}</strong>
        </td>
        <td class="clip">
          <a data-row class="mono" href={to(["jobs", group.job_id])}>
            {group.job_id}
          </a>
        </td>
        <td class="wrap">
          <strong>
            <Text>{group.error_type || "failed"}</Text>
          </strong>{" "}
          <span class="muted">
            <Text>{group.error}</Text>
          </span>
        </td>
        <td>
          <Trend hours={group.hours} from={props.from} until={now.value} />
        </td>
        <td>
          <Time at={group.first_at} />
        </td>
        <td>
          <Time at={group.last_at} />
        </td>
        <td class="end">
          <div class="actions">
            <button type="button" class="quiet" aria-expanded={props.isOpen} onClick={props.toggle}>
              {props.isOpen ? "Hide" : "Runs"}
            </button>
            {may("write") ? (
              <button type="button" onClick={props.retry}>
                Retry
              </button>
            ) : null}
          </div>
        </td>
      </tr>
      {props.isOpen ? (
        <tr>
          <td colSpan={7}>
            <RunsOf group={group} />
          </td>
        </tr>
      ) : null}
    </>
  );
}

/** The newest failed runs of the group's job; the newest of the group is named first. */
function RunsOf({ group }: { group: Group }): JSX.Element {
  const found = useLoad(`failed ${keyOf(group)} ${group.last_at}`, (signal) =>
    api().get("/v1/jobs/{job_id}/runs", {
      path: { job_id: group.job_id },
      query: { status: "failed", limit: 20 },
      signal,
    }),
  );
  return (
    <>
      <p>
        The last one: <a href={to(["runs", group.last_execution_id])}>{group.last_execution_id}</a>
      </p>
      <Problem error={found.error} />
      {found.data ? <RunTable runs={found.data.runs} /> : <Waiting lines={2} />}
    </>
  );
}

function Retry(props: { group: Group; from: string; close: () => void }): JSX.Element {
  const { group } = props;
  const [done, setDone] = useState(0);
  const act = async () => {
    const body = { job_id: group.job_id, fingerprint: group.fingerprint, from_at: props.from };
    const sum = await throughAll(
      (cursor) => api().post("/v1/runs/_all/retry", { body: { ...body, ...cursor } }),
      (soFar) => setDone(soFar.done),
    );
    refresh();
    say(`${counted(sum.done, "run")} ${sum.done === 1 ? "is" : "are"} tried again`);
    const first = sum.refused[0];
    if (first) throw new Error(`${sum.refused.length} refused; ${first.id}: ${first.detail}`);
  };
  return (
    <Ask
      title={`Retry ${counted(group.count, "failed run")}`}
      verb={done ? `${done} of ${group.count}` : "Retry"}
      act={act}
      close={props.close}
    >
      <p>
        Each run of <code>{group.job_id}</code> that failed with <Text>{group.error_type || "this error"}</Text> gets
        one more attempt.
      </p>
    </Ask>
  );
}
