/** Runs in a table: of one job, or of all of them. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Run } from "../lib/jobs";
import { useLoad } from "../lib/load";
import { place, setQuery, to } from "../lib/router";
import { api } from "../lib/session";
import { stateOfRun } from "../lib/states";
import { duration } from "../lib/time";
import { Card, Empty, Head, Problem, State, Text, Time, Waiting } from "../ui/parts";
import { Select } from "./jobs";

export function RunTable(props: { runs: readonly Run[]; zone?: string | undefined; jobs?: boolean }): JSX.Element {
  if (!props.runs.length) return <Empty title="No runs">Nothing has run in this range.</Empty>;
  return (
    <div class="scroll">
      <table aria-label="Runs">
        <thead>
          <tr>
            <th scope="col">State</th>
            {props.jobs ? <th scope="col">Job</th> : null}
            <th scope="col">Fire time</th>
            <th scope="col" class="num">
              Late
            </th>
            <th scope="col" class="num">
              Took
            </th>
            <th scope="col" class="num">
              Attempt
            </th>
            <th scope="col">Why</th>
          </tr>
        </thead>
        <tbody>
          {props.runs.map((run) => (
            <tr key={run.execution_id}>
              <td>
                <a data-row href={to(["runs", run.execution_id])}>
                  <State state={stateOfRun(run)} />
                </a>
              </td>
              {props.jobs ? (
                <td class="clip">
                  <a href={to(["jobs", run.job_id])} class="mono">
                    {run.job_id}
                  </a>
                </td>
              ) : null}
              <td>
                <Time at={run.fire_at} zone={props.zone} />
                {run.trigger === "schedule" ? null : <span class="muted small"> {run.trigger}</span>}
              </td>
              <td class={`num ${(run.lateness_s ?? 0) > 10 ? "late" : ""}`}>
                {run.lateness_s == null ? "–" : duration(run.lateness_s)}
              </td>
              <td class="num">{run.duration_s == null ? "–" : duration(run.duration_s)}</td>
              <td class="num">{run.attempt || "–"}</td>
              <td class="clip">
                <Text most={120}>{whyOf(run)}</Text>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Why a run is as it is, in a few words. */
export function whyOf(run: Run): string {
  if (run.status === "skipped")
    return `${run.reason ?? ""}${run.skipped_count ? ` × ${run.skipped_count}` : ""} ${run.detail ?? ""}`.trim();
  return [run.error_type, run.error].filter(Boolean).join(": ");
}

const STATUSES = ["queued", "running", "dispatched", "succeeded", "failed", "retrying", "skipped"] as const;
const TRIGGERS = ["schedule", "manual", "retry", "backfill"] as const;

export function Runs(): JSX.Element {
  const { job, status, trigger } = place.value.query;
  const [more, setMore] = useState<{ key: string; pages: number }>({ key: "", pages: 1 });
  const key = `runs ${job} ${status} ${trigger}`;
  const pages = more.key === key ? more.pages : 1;
  const found = useLoad(
    `${key} ${pages}`,
    async (signal) => {
      const query = {
        limit: job ? 100 : 200,
        ...(isOneOf(STATUSES, status) ? { status } : {}),
        ...(isOneOf(TRIGGERS, trigger) ? { trigger } : {}),
      };
      const runs: Run[] = [];
      let read = 0;
      let isAll = true;
      const all = job
        ? api().pages("/v1/jobs/{job_id}/runs", { path: { job_id: job }, query, signal })
        : api().pages("/v1/runs", { query, signal });
      for await (const page of all) {
        runs.push(...page.runs);
        isAll = !page.next_cursor;
        if (++read >= pages) break;
      }
      return { runs, isAll };
    },
    job ? 10 : 30,
  );
  return (
    <>
      <Head
        title="Runs"
        sub={
          job ? (
            <>
              of <code>{job}</code> <a href={to(["runs"])}>All jobs</a>
            </>
          ) : (
            "of all jobs, of the last 24 hours"
          )
        }
      />
      <search class="filters" aria-label="Filter runs">
        <Select label="State" value={status} of={STATUSES} set={(value) => setQuery({ status: value })} />
        <Select label="Trigger" value={trigger} of={TRIGGERS} set={(value) => setQuery({ trigger: value })} />
      </search>
      <Problem error={found.error} retry={found.reload} />
      <Card>
        {found.data ? <RunTable runs={found.data.runs} jobs={!job} /> : <Waiting lines={8} />}
        {found.data && !found.data.isAll ? (
          <div class="more">
            <button type="button" onClick={() => setMore({ key, pages: pages + 2 })}>
              Show older runs
            </button>
          </div>
        ) : null}
      </Card>
    </>
  );
}

function isOneOf<T extends string>(of: readonly T[], value: string | undefined): value is T {
  return (of as readonly (string | undefined)[]).includes(value);
}
