/** What is wrong with a job: its last error, who answers for it, and what to do. */

import type { JSX } from "preact";
import { healthOf } from "../lib/health";
import type { Job, JobHealth } from "../lib/jobs";
import { to } from "../lib/router";
import { span } from "../lib/time";
import { Linked, Text } from "../ui/parts";
import { whyOf } from "./run-table";

export function Wrong({ job, health }: { job: Job; health: JobHealth | undefined }): JSX.Element | null {
  const { state, inRow, lateS } = healthOf(job, health);
  if (state !== "failing" && state !== "overdue") return null;
  const last = health?.last_run;
  return (
    <div class="notice bad" role="status">
      {state === "overdue" ? `Due ${span(lateS)} ago, and not started. ` : null}
      {inRow ? `The last ${inRow > 1 ? `${inRow} scheduled runs` : "scheduled run"} failed. ` : null}
      {last && hasFailed(last) ? (
        <a href={to(["runs", last.execution_id])}>
          <Text most={300}>{whyOf(last) || "The last run"}</Text>
        </a>
      ) : null}
      <Answering job={job} />
    </div>
  );
}

/** Whether a run has failed, for good or so far. */
export function hasFailed({ status }: { status: string }): boolean {
  return status === "failed" || status === "retrying";
}

/** Who answers for a job, and where it says what to do; nothing if it says neither. */
export function Answering({ job }: { job: Job }): JSX.Element | null {
  const { owner, runbook } = job;
  if (!owner && !runbook) return null;
  return (
    <p>
      {owner ? (
        <>
          Owner: <Text>{owner}</Text>{" "}
        </>
      ) : null}
      {runbook ? (
        <>
          Runbook: <Linked>{runbook}</Linked>
        </>
      ) : null}
    </p>
  );
}
