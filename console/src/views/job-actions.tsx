/** What can be done with a job: run it, pause it, run a past range again, edit it, delete it. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Job } from "../lib/jobs";
import { refresh } from "../lib/load";
import { go, to } from "../lib/router";
import { api, may } from "../lib/session";
import { Ask, Input, Note, say, sayWhy } from "../ui/actions";
import { Text } from "../ui/parts";
import { Backfill } from "./job-backfill";

type Dialog = "run" | "skip" | "pause" | "backfill" | "delete";

export function JobActions({ job, changed }: { job: Job; changed: () => void }): JSX.Element | null {
  const [dialog, setDialog] = useState<Dialog>();
  if (!may("write")) return null;
  const close = () => setDialog(undefined);
  const path = { job_id: job.job_id };
  const resume = async () => {
    await api().post("/v1/jobs/{job_id}/resume", { path, repeatable: true });
    changed();
    say(`${job.job_id} is active again`);
  };
  return (
    <>
      <button type="button" onClick={() => setDialog("run")}>
        Run now
      </button>
      {job.state === "paused" ? null : (
        <button type="button" onClick={() => setDialog("skip")}>
          Skip next
        </button>
      )}
      {job.state === "paused" ? (
        <button type="button" class="primary" onClick={() => resume().catch(sayWhy)}>
          Resume
        </button>
      ) : (
        <button type="button" onClick={() => setDialog("pause")}>
          Pause
        </button>
      )}
      <button type="button" onClick={() => setDialog("backfill")}>
        Backfill
      </button>
      <a class="button" href={to(["jobs", job.job_id, "edit"])}>
        Edit
      </a>
      <button type="button" class="danger" onClick={() => setDialog("delete")}>
        Delete
      </button>
      {dialog === "run" ? <RunNow job={job} close={close} /> : null}
      {dialog === "skip" ? <Skip job={job} close={close} changed={changed} /> : null}
      {dialog === "pause" ? <Pause job={job} changed={changed} close={close} /> : null}
      {dialog === "backfill" ? <Backfill job={job} close={close} /> : null}
      {dialog === "delete" ? <Delete job={job} close={close} /> : null}
    </>
  );
}

/** Run a job once, with its own payload or with another one, which `payload` begins with. */
export function RunNow({
  job,
  close,
  payload: given,
}: {
  job: Job;
  close: () => void;
  payload?: unknown;
}): JSX.Element {
  const own = JSON.stringify(job.payload ?? null, null, 2);
  const [payload, setPayload] = useState(given === undefined ? own : JSON.stringify(given, null, 2));
  const act = async () => {
    const body = payload === own ? {} : { payload: JSON.parse(payload) };
    const run = await api().post("/v1/jobs/{job_id}/run", { path: { job_id: job.job_id }, body });
    go(["runs", run.execution_id]);
  };
  return (
    <Ask title="Run now" verb="Run now" act={act} close={close}>
      <p>
        <code>{job.job_id}</code> runs once, now{job.state === "paused" ? ", although it is paused" : ""}. Its schedule
        stays as it is.
      </p>
      <Input
        label="Payload of this run"
        hint="JSON. The job keeps its own."
        wide
        rows={6}
        value={payload}
        set={setPayload}
      />
    </Ask>
  );
}

function Skip({ job, close, changed }: { job: Job; close: () => void; changed: () => void }): JSX.Element {
  const [count, setCount] = useState(1);
  const [note, setNote] = useState("");
  const act = async () => {
    await api().post("/v1/jobs/{job_id}/skip", { path: { job_id: job.job_id }, body: { count, note } });
    changed();
    refresh();
    say(`The next ${count === 1 ? "fire time is" : `${count} fire times are`} skipped`);
  };
  return (
    <Ask title="Skip the next fire times" verb="Skip" act={act} close={close}>
      <p>These fire times are cancelled. The job stays active.</p>
      <Input label="How many" type="number" min={1} max={50} value={count} set={(value) => setCount(Number(value))} />
      <Note note={note} set={setNote} />
    </Ask>
  );
}

function Pause(props: { job: Job; changed: () => void; close: () => void }): JSX.Element {
  const [note, setNote] = useState("");
  const path = { job_id: props.job.job_id };
  const act = async () => {
    await api().post("/v1/jobs/{job_id}/pause", { path, body: { note }, repeatable: true });
    props.changed();
    say(`${props.job.job_id} is paused`);
  };
  return (
    <Ask title="Pause" verb="Pause" act={act} close={props.close}>
      <p>Nothing of it starts until it is resumed. What is queued is skipped.</p>
      <Note note={note} set={setNote} hint="Why; everybody who looks at the job reads it." />
    </Ask>
  );
}

function Delete({ job, close }: { job: Job; close: () => void }): JSX.Element {
  const [typed, setTyped] = useState("");
  const act = async () => {
    await api().delete("/v1/jobs/{job_id}", { path: { job_id: job.job_id } });
    say(`${job.job_id} is deleted`);
    go(["jobs"]);
  };
  return (
    <Ask title="Delete" verb="Delete" danger disabled={typed !== job.job_id} act={act} close={close}>
      <p>
        The job stops at once. Its runs stay until they expire. Type <Text>{job.job_id}</Text> to delete it.
      </p>
      <Input label="The job’s id" wide value={typed} set={setTyped} />
    </Ask>
  );
}
