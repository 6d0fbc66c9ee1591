/** Runs in a table. */

import type { JSX } from "preact";
import { LATE_S } from "../draw/shares";
import type { Run } from "../lib/jobs";
import { to } from "../lib/router";
import { stateOfRun } from "../lib/states";
import { duration } from "../lib/time";
import { Empty, State, Text, Time } from "../ui/parts";
import { type Column, List } from "../ui/table";
import { jobColumn } from "./job-column";

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
        late == null ? "–" : <span class={late > LATE_S ? "late" : ""}>{duration(late)}</span>,
    },
    { name: "Took", class: "num", cell: (run) => (run.duration_s == null ? "–" : duration(run.duration_s)) },
    { name: "Attempt", class: "num", cell: (run) => run.attempt || "–" },
    { name: "Why", class: "clip", cell: (run) => <Text most={120}>{whyOf(run)}</Text> },
  ];
}

/** Why a run is as it is, in a few words. */
export function whyOf(
  run: { status: string } & Partial<Pick<Run, "reason" | "skipped_count" | "detail" | "error_type" | "error">>,
): string {
  if (run.status === "skipped") {
    const reason = (run.reason ?? "").replaceAll("_", " ") + (run.skipped_count ? ` × ${run.skipped_count}` : "");
    return [reason, run.detail].filter(Boolean).join(": ");
  }
  // What goes on says what it waits for.
  return run.detail || [run.error_type, run.error].filter(Boolean).join(": ");
}
