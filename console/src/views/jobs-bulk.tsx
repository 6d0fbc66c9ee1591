import type { Shapes } from "minute8-client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { type BulkVerb, forEachOf, type ManyFilter, throughAll } from "../lib/bulk";
import { type Job, loadJobs } from "../lib/jobs";
import { useLoad } from "../lib/load";
import { api } from "../lib/session";
import { counted } from "../lib/words";
import { Ask, Note, say } from "../ui/actions";
import { Problem, Waiting } from "../ui/parts";

const WHY = "Why; everybody who looks at the jobs reads it.";
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
      title={titleOf(verb, jobs.length)}
      verb={done ? `${done} of ${jobs.length}` : TITLES[verb]}
      disabled={!jobs.length}
      act={act}
      close={props.close}
    >
      <First ids={jobs.map((job) => job.job_id)} verb={verb} />
      {verb === "pause" ? <Note note={note} set={setNote} hint={WHY} /> : null}
    </Ask>
  );
}

/** The same for all jobs that a filter takes, also those that the list has not loaded: the API counts them first. */
export function FilterAsk(props: { verb: BulkVerb; filter: ManyFilter; close: () => void }): JSX.Element {
  const { verb, filter } = props;
  const [note, setNote] = useState("");
  const [done, setDone] = useState(0);
  // One for all requests, also for those after an error: each job runs once.
  const [nonce] = useState(() => crypto.randomUUID().replaceAll("-", ""));
  const count = useLoad(`count ${verb} ${nonce}`, (signal) =>
    throughAll((cursor) => changeMany(verb, { ...filter, dry_run: true, ...cursor }, signal)),
  );
  const matched = count.data?.matched ?? 0;
  const more = verb === "pause" ? { note } : verb === "run" ? { nonce } : {};
  const act = async () => {
    const sum = await throughAll(
      (cursor) => changeMany(verb, { ...filter, ...more, ...cursor }),
      (soFar) => setDone(soFar.done),
    ).finally(() => void loadJobs());
    say(`${TITLES[verb]}: ${sum.done} of ${sum.matched} jobs`);
    const first = sum.refused[0];
    if (first) throw new Error(`${sum.refused.length} refused; ${first.id}: ${first.detail}`);
  };
  return (
    <Ask
      title={count.data ? titleOf(verb, matched) : TITLES[verb]}
      verb={done ? `${done} of ${matched}` : TITLES[verb]}
      disabled={!matched}
      act={act}
      close={props.close}
    >
      <p>
        Every {filter.state ?? ""} job{filter.tag ? " with the tag " : ""}
        {filter.tag ? <code class="tag">{filter.tag}</code> : null}
      </p>
      <Problem error={count.error} retry={count.reload} />
      {count.data ? <First ids={count.data.ids} verb={verb} /> : count.error ? null : <Waiting lines={1} />}
      {verb === "pause" ? <Note note={note} set={setNote} hint={WHY} /> : null}
    </Ask>
  );
}

function titleOf(verb: BulkVerb, count: number): string {
  return `${TITLES[verb]}: ${counted(count, "job")}`;
}

function First({ ids, verb }: { ids: readonly string[]; verb: BulkVerb }): JSX.Element {
  return (
    <p>
      {ids.slice(0, 8).map((id) => (
        <code key={id} class="tag">
          {id}
        </code>
      ))}
      {ids.length > 8 ? `and ${(ids.length - 8).toLocaleString("en")} more` : null}
      {ids.length
        ? null
        : verb === "run"
          ? "There is none."
          : `All are ${verb === "pause" ? "paused" : "active"} already.`}
    </p>
  );
}

function changeMany(
  verb: BulkVerb,
  body: Shapes["ManyJobs"] & { note?: string; nonce?: string },
  signal?: AbortSignal,
): Promise<Shapes["ManyDone"]> {
  const options = { body, repeatable: true, ...(signal ? { signal } : {}) };
  if (verb === "pause") return api().post("/v1/jobs/_all/pause", options);
  if (verb === "resume") return api().post("/v1/jobs/_all/resume", options);
  return api().post("/v1/jobs/_all/run", options);
}

function change(verb: BulkVerb, job: Job, note: string): Promise<unknown> {
  const path = { job_id: job.job_id };
  if (verb === "pause") return api().post("/v1/jobs/{job_id}/pause", { path, body: { note }, repeatable: true });
  if (verb === "resume") return api().post("/v1/jobs/{job_id}/resume", { path, repeatable: true });
  return api().post("/v1/jobs/{job_id}/run", { path, body: {} });
}
