/** One run: its way as a waterfall, what each attempt said, and what can be done about it. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Waterfall } from "../draw/waterfall";
import { cli, curl } from "../lib/commands";
import type { Job, Run as RunShape } from "../lib/jobs";
import { refresh, useLoad } from "../lib/load";
import { to } from "../lib/router";
import { addressOfApi, api, may } from "../lib/session";
import { stateOfRun } from "../lib/states";
import { duration, now } from "../lib/time";
import { Ask, Note, say } from "../ui/actions";
import { Card, Code, Facts, Head, Problem, State, Text, Time, Waiting } from "../ui/parts";
import { Answering } from "./job-wrong";

const GOES_ON = ["queued", "running", "retrying"];

export function Run({ id }: { id: string }): JSX.Element {
  const path = { execution_id: id };
  const [isEnded, setEnded] = useState(false);
  const run = useLoad(
    `run ${id}`,
    async (signal) => {
      const found = await api().get("/v1/runs/{execution_id}", { path, signal });
      setEnded(!GOES_ON.includes(found.status));
      return found;
    },
    isEnded ? 30 : 1,
  );
  const jobId = id.split(":")[1] ?? "";
  const job = useLoad(`job of run ${jobId}`, (signal) =>
    api().get("/v1/jobs/{job_id}", { path: { job_id: jobId }, signal }),
  );
  const zone = job.data?.schedule.timezone ?? undefined;
  return (
    <>
      <Head
        title="Run"
        sub={
          <>
            <a class="mono" href={to(["jobs", jobId])}>
              {jobId}
            </a>
            {run.data ? <State state={stateOfRun(run.data)} /> : null}
            {run.data ? <Time at={run.data.fire_at} zone={zone} full /> : null}
          </>
        }
      >
        {run.data && may("write") ? <Actions run={run.data} /> : null}
      </Head>
      <Problem error={run.error} retry={run.reload} />
      {run.data ? <Shown run={run.data} job={job.data} isGone={Boolean(job.error)} /> : run.error ? null : <Waiting />}
    </>
  );
}

type Fact = [string, JSX.Element];

function Shown({ run, job, isGone }: { run: RunShape; job: Job | undefined; isGone: boolean }): JSX.Element {
  const zone = job?.schedule.timezone ?? undefined;
  const [last, ...earlier] = [...run.attempts].reverse();
  const address = `${addressOfApi(location.href)}/v1/runs/${encodeURIComponent(run.execution_id).replaceAll("%3A", ":")}`;
  return (
    <>
      {run.error || run.reason ? (
        <div class={`notice ${run.status === "failed" ? "bad" : "late"}`}>
          <strong>
            <Text>{run.reason ? `Skipped: ${run.reason}` : (run.error_type ?? "")}</Text>
          </strong>{" "}
          <Text most={1000}>{run.error ?? run.detail ?? ""}</Text>
          {job && run.status === "failed" ? <Answering job={job} /> : null}
        </div>
      ) : null}
      <Card title="The way of this execution">
        <Waterfall run={run} present={now.value} />
        {run.attempts.length ? null : <p class="muted">No attempt was made.</p>}
      </Card>
      {/* What went wrong last is looked for first. */}
      <Attempts attempts={last ? [last] : []} />
      <div class="grid">
        <Card title="Facts">
          <Facts
            facts={[
              ["Execution", <code key="e">{run.execution_id}</code>],
              ["Trace", <code key="t">{run.trace_id}</code>],
              ["Fire time", <Time key="f" at={run.fire_at} zone={zone} full />],
              ["Due", <Time key="d" at={run.due_at} zone={zone} full />],
              ["Started", <Time key="s" at={run.started_at} zone={zone} full />],
              ["Late by", run.lateness_s == null ? "–" : duration(run.lateness_s)],
              ["Ended", <Time key="x" at={run.finished_at} zone={zone} full />],
              ["Took", run.duration_s == null ? "–" : duration(run.duration_s)],
              ...(run.next_attempt_at
                ? [["Next attempt", <Time key="n" at={run.next_attempt_at} zone={zone} full />] as Fact]
                : []),
              ["Trigger", run.trigger],
              ...(run.detail ? [["Detail", <Text key="w">{run.detail}</Text>] as Fact] : []),
              ["Schedule’s revision", String(run.schedule_revision)],
            ]}
          />
        </Card>
        <Card title="Payload">
          {job ? (
            <>
              <Code text={JSON.stringify(job.payload ?? null, null, 2)} label="payload as JSON" />
              <p class="hint">
                The job’s present payload; placeholders are replaced for each run.
                {run.trigger === "manual" ? " A run by hand may have had its own." : ""}
              </p>
            </>
          ) : isGone ? (
            <p class="hint">The job cannot be read.</p>
          ) : (
            <Waiting lines={2} />
          )}
        </Card>
      </div>
      <Attempts attempts={earlier} />
      <Card title="In a terminal">
        <Code text={`${cli("runs", "show", run.execution_id)}\n${curl("GET", address)}`} label="commands" />
      </Card>
    </>
  );
}

function Attempts({ attempts }: { attempts: RunShape["attempts"] }): JSX.Element {
  return (
    <>
      {attempts.map((attempt) => (
        <Card
          key={attempt.attempt}
          title={`Attempt ${attempt.attempt}`}
          side={
            <>
              <State state={attempt.outcome} />
              {attempt.request_id ? (
                <span>
                  request <code>{attempt.request_id}</code>
                </span>
              ) : null}
            </>
          }
        >
          {attempt.error ? (
            <p>
              <strong class="bad">
                <Text>{attempt.error_type ?? "error"}</Text>
              </strong>{" "}
              <Text most={2000}>{attempt.error}</Text>
            </p>
          ) : null}
          {attempt.log_tail ? (
            <Code text={attempt.log_tail} label={`end of the log of attempt ${attempt.attempt}`} />
          ) : (
            <p class="muted">No log came with the answer.</p>
          )}
        </Card>
      ))}
    </>
  );
}

function Actions({ run }: { run: RunShape }): JSX.Element {
  const [cancelling, setCancelling] = useState(false);
  const [note, setNote] = useState("");
  const [error, setError] = useState<unknown>();
  const path = { execution_id: run.execution_id };
  const retry = async () => {
    setError(undefined);
    await api().post("/v1/runs/{execution_id}/retry", { path });
    say("One more attempt begins");
    refresh();
  };
  const cancel = async () => {
    await api().post("/v1/runs/{execution_id}/cancel", { path, body: { note } });
    say("The run is cancelled");
    refresh();
  };
  return (
    <>
      {run.status === "failed" ? (
        <button type="button" class="primary" onClick={() => retry().catch(setError)}>
          Retry
        </button>
      ) : null}
      {run.status === "queued" || run.status === "retrying" ? (
        <button type="button" class="danger" onClick={() => setCancelling(true)}>
          Cancel
        </button>
      ) : null}
      <Problem error={error} />
      {cancelling ? (
        <Ask title="Cancel this run" verb="Cancel the run" danger act={cancel} close={() => setCancelling(false)}>
          <p>It does not start, or is not tried again. An attempt that goes on is not stopped.</p>
          <Note note={note} set={setNote} />
        </Ask>
      ) : null}
    </>
  );
}
