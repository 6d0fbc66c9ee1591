import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { forEachOf } from "../lib/bulk";
import { type Job, loadJobs } from "../lib/jobs";
import { api } from "../lib/session";
import { Ask, Field, say } from "../ui/actions";

export type BulkVerb = "pause" | "resume" | "run";

const TITLES: Record<BulkVerb, string> = { pause: "Pause", resume: "Resume", run: "Run now" };

/** Ask before many jobs are changed: how many, and which come first. */
export function BulkAsk(props: { verb: BulkVerb; jobs: readonly Job[]; close: () => void }): JSX.Element {
  const [note, setNote] = useState("");
  const [done, setDone] = useState(0);
  const { verb } = props;
  // What is in this state already is left alone.
  const jobs = props.jobs.filter((job) => verb === "run" || (job.state === "paused") !== (verb === "pause"));
  const act = async () => {
    const outcome = await forEachOf(jobs, (job) => change(verb, job, note), setDone);
    void loadJobs();
    say(`${TITLES[verb]}: ${outcome.done} of ${jobs.length} jobs`);
    const first = outcome.refused[0];
    if (first) throw new Error(`${outcome.refused.length} refused; ${first.item.job_id}: ${first.because}`);
  };
  return (
    <Ask
      title={`${TITLES[verb]}: ${jobs.length} ${jobs.length === 1 ? "job" : "jobs"}`}
      verb={done ? `${done} of ${jobs.length}` : TITLES[verb]}
      disabled={!jobs.length}
      act={act}
      close={props.close}
    >
      <p>
        {jobs.slice(0, 8).map((job) => (
          <code key={job.job_id} class="tag">
            {job.job_id}
          </code>
        ))}
        {jobs.length > 8 ? `and ${jobs.length - 8} more` : null}
        {jobs.length ? null : `All of them are ${verb === "pause" ? "paused" : "active"} already.`}
      </p>
      {verb === "pause" ? (
        <Field label="Note" hint="Why; everybody who looks at the jobs reads it." wide>
          {(attributes) => (
            <input
              {...attributes}
              maxLength={500}
              value={note}
              onInput={(event) => setNote(event.currentTarget.value)}
            />
          )}
        </Field>
      ) : null}
    </Ask>
  );
}

function change(verb: BulkVerb, job: Job, note: string): Promise<unknown> {
  const path = { job_id: job.job_id };
  if (verb === "pause") return api().post("/v1/jobs/{job_id}/pause", { path, body: { note }, repeatable: true });
  if (verb === "resume") return api().post("/v1/jobs/{job_id}/resume", { path, repeatable: true });
  return api().post("/v1/jobs/{job_id}/run", { path, body: {} });
}
