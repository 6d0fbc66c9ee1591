/** Runs in a table: of one job, or of all of them. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Run } from "../lib/jobs";
import { useLoad } from "../lib/load";
import { firstPages } from "../lib/pages";
import { place, setQuery, to } from "../lib/router";
import { api } from "../lib/session";
import { stateOfRun } from "../lib/states";
import { duration } from "../lib/time";
import { Card, Empty, Found, Head, More, State, Text, Time } from "../ui/parts";
import { type Column, List } from "../ui/table";
import { Select } from "./jobs";

export function RunTable(props: {
  runs: readonly Run[];
  zone?: string | undefined;
  jobs?: boolean;
}): JSX.Element | null {
  return (
    <List
      label="Runs"
      columns={columns(props.zone, props.jobs ?? false)}
      rows={props.runs}
      keyOf={(run) => run.execution_id}
      empty={<Empty title="No runs">Nothing has run in this range.</Empty>}
    />
  );
}

function columns(zone: string | undefined, jobs: boolean): Column<Run>[] {
  return [
    {
      name: "State",
      cell: (run) => (
        <a data-row href={to(["runs", run.execution_id])}>
          <State state={stateOfRun(run)} />
        </a>
      ),
    },
    ...(jobs ? [jobColumn<Run>("Job")] : []),
    {
      name: "Fire time",
      cell: (run) => (
        <>
          <Time at={run.fire_at} zone={zone} />
          {run.trigger === "schedule" ? null : <span class="muted small"> {run.trigger}</span>}
        </>
      ),
    },
    {
      name: "Late",
      class: "num",
      cell: ({ lateness_s: late }) =>
        late == null ? "–" : <span class={late > 10 ? "late" : ""}>{duration(late)}</span>,
    },
    { name: "Took", class: "num", cell: (run) => (run.duration_s == null ? "–" : duration(run.duration_s)) },
    { name: "Attempt", class: "num", cell: (run) => run.attempt || "–" },
    { name: "Why", class: "clip", cell: (run) => <Text most={120}>{whyOf(run)}</Text> },
  ];
}

/** The column of the job that a row is about. */
export function jobColumn<T extends { job_id: string }>(name = ""): Column<T> {
  return {
    name,
    class: "clip",
    cell: ({ job_id: id }) => (
      <a class="mono" href={to(["jobs", id])}>
        {id}
      </a>
    ),
  };
}

/** Why a run is as it is, in a few words. */
export function whyOf(
  run: { status: string } & Partial<Pick<Run, "reason" | "skipped_count" | "detail" | "error_type" | "error">>,
): string {
  if (run.status === "skipped") {
    const reason = (run.reason ?? "").replaceAll("_", " ") + (run.skipped_count ? ` × ${run.skipped_count}` : "");
    return [reason, run.detail].filter(Boolean).join(": ");
  }
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
      const all = job
        ? api().pages("/v1/jobs/{job_id}/runs", { path: { job_id: job }, query, signal })
        : api().pages("/v1/runs", { query, signal });
      const read = await firstPages<{ runs: Run[]; next_cursor: string | null }>(all, pages);
      return { runs: read.pages.flatMap((page) => page.runs), more: read.more };
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
      <Card>
        <Found found={found} lines={8}>
          {(read) => (
            <>
              <RunTable runs={read.runs} jobs={!job} />
              {read.more ? <More show={() => setMore({ key, pages: pages + 2 })}>Show older runs</More> : null}
            </>
          )}
        </Found>
      </Card>
    </>
  );
}

function isOneOf<T extends string>(of: readonly T[], value: string | undefined): value is T {
  return (of as readonly (string | undefined)[]).includes(value);
}
