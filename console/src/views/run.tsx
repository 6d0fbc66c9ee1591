/** One run: its steps as a waterfall, what each attempt said, and what can be done about it. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Waterfall } from "../draw/waterfall";
import { cli, curl } from "../lib/commands";
import type { Job, Run as RunShape } from "../lib/jobs";
import { refresh, useLoad } from "../lib/load";
import { addressOfApi, to } from "../lib/router";
import { api, may } from "../lib/session";
import { stateOfRun } from "../lib/states";
import { duration, now } from "../lib/time";
import { Ask, Note, say } from "../ui/actions";
import { Card, Code, Facts, Head, Problem, State, Text, Time, Waiting } from "../ui/parts";
import { RunNow } from "./job-actions";
import { Answering } from "./job-wrong";

const GOES_ON = ["queued", "running", "dispatching", "retrying"];

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
        {run.data && may("write") ? <Actions run={run.data} job={job.data} /> : null}
      </Head>
      <Problem error={run.error} retry={run.reload} />
      {run.data ? <Shown run={run.data} job={job.data} isGone={Boolean(job.error)} /> : null}
      {!run.data && !run.error ? <Waiting /> : null}
    </>
  );
}

type Fact = [string, JSX.Element];

function Shown({ run, job, isGone }: { run: RunShape; job: Job | undefined; isGone: boolean }): JSX.Element {
  const zone = job?.schedule.timezone ?? undefined;
  const [first] = run.attempts;
  const last = run.attempts.at(-1);
  const address = `${addressOfApi(location.href)}/v1/runs/${encodeURIComponent(run.execution_id).replaceAll("%3A", ":")}`;
  return (
    <>
      {run.error || run.reason ? (
        <div class={`notice ${run.status === "failed" ? "bad" : "late"}`}>
          <strong>
            <Text>{run.reason ? `Skipped: ${run.reason}` : (run.error_type ?? "")}</Text>
          </strong>{" "}
          <Text most={2000}>{run.error ?? run.detail ?? ""}</Text>
          {job && run.status === "failed" ? <Answering job={job} /> : null}
        </div>
      ) : null}
      <Card title="Steps of this run">
        <Waterfall run={run} job={job} present={now.value} />
        {run.attempts.length ? null : <p class="muted">No attempt was made.</p>}
      </Card>
      <Attempts run={run} />
      <div class="grid">
        <Card title="Facts">
          <Facts
            facts={[
              ["Execution", <code key="e">{run.execution_id}</code>],
              ["Trace", <code key="t">{run.trace_id}</code>],
              ["Fire time", <Time key="f" at={run.fire_at} zone={zone} full />],
              ["Due", <Time key="d" at={run.due_at} zone={zone} full />],
              ["Started", <Time key="s" at={first?.started_at ?? run.started_at} zone={zone} full />],
              ...(run.waited_s ? [["Waited for its turn", <Text key="w">{duration(run.waited_s)}</Text>] as Fact] : []),
              ["Late by", run.lateness_s == null ? "–" : duration(run.lateness_s)],
              ...(last && last !== first
                ? [[`Attempt ${last.attempt} started`, <Time key="l" at={last.started_at} zone={zone} full />] as Fact]
                : []),
              ["Ended", <Time key="x" at={run.finished_at} zone={zone} full />],
              [
                run.attempts.length > 1 ? "The last attempt took" : "Took",
                run.duration_s == null ? "–" : duration(run.duration_s),
              ],
              ...(run.next_attempt_at
                ? [["Next attempt", <Time key="n" at={run.next_attempt_at} zone={zone} full />] as Fact]
                : []),
              ...signsOf(run, zone),
              ["Trigger", run.trigger],
              ...(run.detail ? [["Detail", <Text key="w">{run.detail}</Text>] as Fact] : []),
              ["Schedule’s revision", String(run.schedule_revision)],
            ]}
          />
        </Card>
        <PayloadCard run={run} job={job} isGone={isGone} />
      </div>
      <Card title="In a terminal">
        <Code text={`${cli("runs", "show", run.execution_id)}\n${curl("GET", address)}`} label="commands" />
      </Card>
    </>
  );
}

/** The payload that a run had, as far as that is known; undefined if it is not. Pure. */
export function payloadOf(run: RunShape, job: Job | undefined): { payload: unknown; isOwn: boolean } | undefined {
  if ("payload" in run) return { payload: run.payload, isOwn: true };
  const started = run.attempts[0]?.started_at ?? run.started_at;
  // What was changed later had another definition then.
  if (!job || (started && Date.parse(job.updated_at) > Date.parse(started))) return undefined;
  return { payload: job.payload ?? null, isOwn: false };
}

function PayloadCard({ run, job, isGone }: { run: RunShape; job: Job | undefined; isGone: boolean }): JSX.Element {
  const found = payloadOf(run, job);
  return (
    <Card title="Payload">
      {found ? (
        <>
          <Code text={JSON.stringify(found.payload, null, 2)} label="payload as JSON" />
          <p class="hint">
            {found.isOwn ? "This run was started with a payload of its own. " : "The job’s, unchanged since this run. "}
            Placeholders are replaced for each run.
          </p>
        </>
      ) : (
        <NoPayload job={job} isGone={isGone} />
      )}
    </Card>
  );
}

function NoPayload({ job, isGone }: { job: Job | undefined; isGone: boolean }): JSX.Element {
  if (isGone) return <p class="hint">The job cannot be read.</p>;
  if (!job) return <Waiting lines={2} />;
  return (
    <p class="hint">
      The job has changed since this run started, so its payload may have been another one.{" "}
      <a href={to(["jobs", job.job_id, "history"])}>What has changed</a>
    </p>
  );
}

type Attempt = RunShape["attempts"][number];

/** Attempts that ended alike, one after the other, the last ones first. Pure. */
export function alike(attempts: readonly Attempt[]): [Attempt, ...Attempt[]][] {
  const groups: [Attempt, ...Attempt[]][] = [];
  for (const attempt of [...attempts].reverse()) {
    const group = groups.at(-1);
    const same = (["outcome", "error_type", "error"] as const).every((name) => group?.[0][name] === attempt[name]);
    if (group && same) group.push(attempt);
    else groups.push([attempt]);
  }
  return groups;
}

function Attempts({ run }: { run: RunShape }): JSX.Element {
  return (
    <>
      {alike(run.attempts).map(([last, ...others]) => (
        <Card
          key={last.attempt}
          title={
            others.length ? `Attempts ${others.at(-1)?.attempt} to ${last.attempt}, alike` : `Attempt ${last.attempt}`
          }
          side={<State state={last.outcome} />}
        >
          {/* Above, the run says what its last attempt says. */}
          {last.error && last.error !== run.error ? (
            <p>
              <strong class="bad">
                <Text>{last.error_type ?? "error"}</Text>
              </strong>{" "}
              <Text most={2000}>{last.error}</Text>
            </p>
          ) : null}
          <Log attempt={last} />
          {others.length ? (
            <details>
              <summary>Logs of the {others.length === 1 ? "other attempt" : `${others.length} other attempts`}</summary>
              {others.map((attempt) => (
                <Log key={attempt.attempt} attempt={attempt} />
              ))}
            </details>
          ) : null}
        </Card>
      ))}
    </>
  );
}

function Log({ attempt }: { attempt: Attempt }): JSX.Element {
  return (
    <>
      <p class="hint">
        Attempt {attempt.attempt}
        {attempt.duration_s == null ? "" : `, ${duration(attempt.duration_s)}`}
        {attempt.request_id ? (
          <>
            , request <code>{attempt.request_id}</code>
          </>
        ) : null}
      </p>
      {attempt.log_tail ? (
        <Code text={attempt.log_tail} label={`end of the log of attempt ${attempt.attempt}`} />
      ) : (
        <p class="muted">No log came with the answer.</p>
      )}
    </>
  );
}

/** Whether a person can cancel the run: it has not ended, or what it started in AWS can be stopped. Pure. */
export function canStop(run: RunShape, job: Job | undefined): boolean {
  if (run.status === "queued" || run.status === "retrying") return true;
  if (run.status === "running") return (run.callback_until ?? run.look_at) != null && !run.stop;
  const inAws = job?.target.kind === "step_functions" || job?.target.kind === "aws_operation";
  return run.status === "dispatched" && inAws;
}

/** What a target that calls back has told, and whether a person wants it to stop. */
function signsOf(run: RunShape, zone: string | undefined): Fact[] {
  const { progress, stop, work_until: until } = run;
  const facts: Fact[] = [];
  if (run.callback_until)
    facts.push(["Waits for its target until", <Time key="u" at={run.callback_until} zone={zone} full />]);
  for (const arn of run.started ?? []) facts.push(["Started", <Text key={arn}>{arn}</Text>]);
  if (run.look_at) facts.push(["Next check whether it has ended", <Time key="l" at={run.look_at} zone={zone} full />]);
  if (run.look_problem) facts.push(["Its end cannot be read", <Text key="q">{run.look_problem}</Text>]);
  if (progress) {
    const percent = progress.percent == null ? "" : `${progress.percent} % `;
    facts.push(["Progress", <Text key="p">{`${percent}${progress.text ?? ""}`}</Text>]);
    facts.push(["Reported", <Time key="a" at={progress.at} zone={zone} full />]);
  }
  if (stop) facts.push(["Ended by hand", <Text key="s">{stop.problem ?? (stop.note || "without a reason")}</Text>]);
  if (until) facts.push(["Its work may go on until", <Time key="w" at={until} zone={zone} full />]);
  return facts;
}

function Actions({ run, job }: { run: RunShape; job: Job | undefined }): JSX.Element {
  const [replaying, setReplaying] = useState(false);
  const [cancelling, setCancelling] = useState(false);
  const [ending, setEnding] = useState(false);
  const [erasing, setErasing] = useState(false);
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
    say("The run has ended");
    refresh();
  };
  const erase = async () => {
    const { not_covered: others } = await api().delete("/v1/runs/{execution_id}/details", { path });
    say(`Erased. Not covered: ${others.join(", ")}`);
    refresh();
  };
  return (
    <>
      {run.status === "failed" ? (
        <button type="button" class="primary" onClick={() => retry().catch(setError)}>
          Retry
        </button>
      ) : null}
      {canStop(run, job) ? (
        <button type="button" class="danger" onClick={() => setCancelling(true)}>
          Cancel
        </button>
      ) : null}
      {may("admin") && (run.work_until || canStop(run, job)) ? (
        <button type="button" class="danger" onClick={() => setEnding(true)}>
          End by force
        </button>
      ) : null}
      {job ? (
        <button type="button" onClick={() => setReplaying(true)}>
          Run again
        </button>
      ) : null}
      {may("admin") && !canStop(run, job) ? (
        <button type="button" class="danger" onClick={() => setErasing(true)}>
          Erase texts
        </button>
      ) : null}
      <Problem error={error} />
      {erasing ? (
        <Ask title="Erase this run’s texts" verb="Erase" danger act={erase} close={() => setErasing(false)}>
          <p>Payload, answer, log and error texts go. The record and its outcome stay.</p>
        </Ask>
      ) : null}
      {replaying && job ? (
        <RunNow job={job} payload={payloadOf(run, job)?.payload} close={() => setReplaying(false)} />
      ) : null}
      {cancelling ? (
        <Ask title="Cancel this run" verb="Cancel the run" danger act={cancel} close={() => setCancelling(false)}>
          <p>
            Its record ends at once. What it started in AWS is stopped, and a target that calls back hears it with its
            next sign. Another call may go on, and keeps its permits until then.
          </p>
          <Note note={note} set={setNote} />
        </Ask>
      ) : null}
      {ending ? <EndByForce id={run.execution_id} close={() => setEnding(false)} /> : null}
    </>
  );
}

export function EndByForce({ id, close }: { id: string; close: () => void }): JSX.Element {
  const [note, setNote] = useState("");
  const act = async () => {
    const path = { execution_id: id };
    const { freed } = await api().post("/v1/runs/{execution_id}/end", { path, body: { note } });
    say(freed.length ? `The run has ended; freed: ${freed.join(", ")}` : "The run has ended; it held nothing");
    refresh();
  };
  return (
    <Ask title="End this run by force" verb="End the run" danger act={act} close={close}>
      <p>Its permits are free at once. If its work goes on, the next run runs beside it.</p>
      <Note note={note} set={setNote} />
    </Ask>
  );
}
