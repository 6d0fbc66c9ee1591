/** The failed runs of all jobs, grouped by job and error; a group can be retried at once. */

import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { forEachOf } from "../lib/bulk";
import { type Group, grouped } from "../lib/failures";
import type { Run } from "../lib/jobs";
import { useLoad } from "../lib/load";
import { to } from "../lib/router";
import { api, may } from "../lib/session";
import { Ask, say } from "../ui/actions";
import { Card, Empty, Head, Problem, Text, Time, Waiting } from "../ui/parts";
import { RunTable } from "./runs";

const MOST_PAGES = 3;

export function Failures(): JSX.Element {
  const [open, setOpen] = useState("");
  const [retrying, setRetrying] = useState<Group>();
  const found = useLoad(
    "failures",
    async (signal) => {
      const runs: Run[] = [];
      let pages = 0;
      let isAll = true;
      for await (const page of api().pages("/v1/failures", { query: { limit: 200 }, signal })) {
        runs.push(...page.runs);
        isAll = !page.next_cursor;
        if (++pages >= MOST_PAGES) break;
      }
      return { runs, isAll };
    },
    15,
  );
  const groups = useMemo(() => grouped(found.data?.runs ?? []), [found.data]);
  return (
    <>
      <Head
        title="Failures"
        sub={
          found.data
            ? `${found.data.runs.length}${found.data.isAll ? "" : "+"} failed runs in ${groups.length} groups`
            : null
        }
      />
      <Problem error={found.error} retry={found.reload} />
      <Card>
        {found.data ? (
          groups.length ? (
            <div class="scroll">
              <table aria-label="Failures by job and error">
                <thead>
                  <tr>
                    <th scope="col" class="num">
                      Runs
                    </th>
                    <th scope="col">Job</th>
                    <th scope="col">Error</th>
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
                      key={group.key}
                      group={group}
                      isOpen={open === group.key}
                      toggle={() => setOpen(open === group.key ? "" : group.key)}
                      retry={() => setRetrying(group)}
                    />
                  ))}
                </tbody>
              </table>
            </div>
          ) : (
            <Empty title="Nothing has failed">No failed run is kept. This page looks again by itself.</Empty>
          )
        ) : (
          <Waiting lines={6} />
        )}
      </Card>
      {retrying ? <Retry group={retrying} close={() => setRetrying(undefined)} changed={found.reload} /> : null}
    </>
  );
}

function Row(props: { group: Group; isOpen: boolean; toggle: () => void; retry: () => void }): JSX.Element {
  const { group } = props;
  return (
    <>
      <tr>
        <td class="num bad">
          <strong>{group.runs.length}</strong>
        </td>
        <td class="clip">
          <a data-row class="mono" href={to(["jobs", group.jobId])}>
            {group.jobId}
          </a>
        </td>
        <td class="wrap">
          <strong>
            <Text>{group.errorType || "failed"}</Text>
          </strong>{" "}
          <span class="muted">
            <Text>{group.error}</Text>
          </span>
        </td>
        <td>
          <Time at={group.first} />
        </td>
        <td>
          <Time at={group.last} />
        </td>
        <td>
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
          <td colSpan={6}>
            <RunTable runs={group.runs.slice(0, 50)} />
          </td>
        </tr>
      ) : null}
    </>
  );
}

function Retry({ group, close, changed }: { group: Group; close: () => void; changed: () => void }): JSX.Element {
  const [done, setDone] = useState(0);
  const count = group.runs.length;
  const act = async () => {
    const outcome = await forEachOf(
      group.runs,
      (run) => api().post("/v1/runs/{execution_id}/retry", { path: { execution_id: run.execution_id } }),
      setDone,
    );
    changed();
    say(`${outcome.done} of ${count} runs are tried again`);
    const first = outcome.refused[0];
    if (first) throw new Error(`${outcome.refused.length} refused; ${first.item.execution_id}: ${first.because}`);
  };
  return (
    <Ask
      title={`Retry ${count} failed ${count === 1 ? "run" : "runs"}`}
      verb={done ? `${done} of ${count}` : "Retry"}
      act={act}
      close={close}
    >
      <p>
        Each run of <code>{group.jobId}</code> that failed with <Text>{group.errorType || "this error"}</Text> gets one
        more attempt.
      </p>
    </Ask>
  );
}
