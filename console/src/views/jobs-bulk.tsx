import type { Shapes } from "minute8-client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { type BulkVerb, forEachOf, type ManyFilter, throughAll, VERBS } from "../lib/bulk";
import type { Job } from "../lib/jobs";
import { refresh, useLoad } from "../lib/load";
import { api } from "../lib/session";
import { counted } from "../lib/words";
import { Ask, Input, Note, say } from "../ui/actions";
import { Problem, Waiting } from "../ui/parts";

const WHY = "Why; everybody who looks at the jobs reads it.";
// Before so many jobs are deleted, their number has to be typed.
const TYPED_FROM = 2;

/** Ask before many jobs are changed: how many, and which come first. */
export function BulkAsk(props: { verb: BulkVerb; jobs: readonly Job[]; close: () => void }): JSX.Element {
  const [note, setNote] = useState("");
  const [done, setDone] = useState(0);
  const { verb } = props;
  // What is in this state already is left alone.
  const jobs = props.jobs.filter((job) => !isThere(verb, job));
  const [typed, setTyped] = useState("");
  const act = async () => {
    const outcome = await forEachOf(jobs, (job) => change(verb, job, note), setDone);
    refresh();
    say(`${VERBS[verb]}: ${outcome.done} of ${counted(jobs.length, "job")}`);
    const first = outcome.refused[0];
    if (first) throw new Error(`${outcome.refused.length} refused; ${first.item.job_id}: ${first.because}`);
  };
  return (
    <Ask
      title={titleOf(verb, jobs.length)}
      verb={done ? `${done} of ${jobs.length}` : VERBS[verb]}
      disabled={!jobs.length || !isTyped(verb, jobs.length, typed)}
      danger={verb === "delete"}
      act={act}
      close={props.close}
    >
      <First ids={jobs.map((job) => job.job_id)} verb={verb} />
      {verb === "pause" ? <Note note={note} set={setNote} hint={WHY} /> : null}
      {verb === "delete" ? <Sure count={jobs.length} typed={typed} set={setTyped} /> : null}
    </Ask>
  );
}

/** The same for all jobs that a filter takes, also those that the list has not loaded: the API counts them first. */
export function FilterAsk(props: { verb: BulkVerb; filter: ManyFilter; close: () => void }): JSX.Element {
  const { verb, filter } = props;
  const [note, setNote] = useState("");
  const [typed, setTyped] = useState("");
  const [done, setDone] = useState(0);
  // One for all requests, also for those after an error: each job runs once.
  const [nonce] = useState(() => crypto.randomUUID().replaceAll("-", ""));
  const count = useLoad(`count ${verb} ${nonce}`, (signal) =>
    throughAll((cursor) => changeMany(verb, { ...filter, dry_run: true, ...cursor }, signal)),
  );
  const matched = count.data?.matched ?? 0;
  const more = { ...(verb === "pause" ? { note } : {}), ...(verb === "run" ? { nonce } : {}) };
  const act = async () => {
    const sum = await throughAll(
      (cursor) => changeMany(verb, { ...filter, ...more, ...cursor }),
      (soFar) => setDone(soFar.done),
    ).finally(refresh);
    say(`${VERBS[verb]}: ${sum.done} of ${counted(sum.matched, "job")}`);
    const first = sum.refused[0];
    if (first) throw new Error(`${sum.refused.length} refused; ${first.id}: ${first.detail}`);
  };
  return (
    <Ask
      title={count.data ? titleOf(verb, matched) : VERBS[verb]}
      verb={done ? `${done} of ${matched}` : VERBS[verb]}
      disabled={!matched || !isTyped(verb, matched, typed)}
      danger={verb === "delete"}
      act={act}
      close={props.close}
    >
      <p>
        Every {filter.state ?? ""} job{filter.tag ? " with the tag " : ""}
        {filter.tag ? <code class="tag">{filter.tag}</code> : null}
      </p>
      <Problem error={count.error} retry={count.reload} />
      {count.data ? <First ids={count.data.ids} verb={verb} /> : null}
      {!count.data && !count.error ? <Waiting lines={1} /> : null}
      {verb === "pause" ? <Note note={note} set={setNote} hint={WHY} /> : null}
      {verb === "delete" ? <Sure count={matched} typed={typed} set={setTyped} /> : null}
    </Ask>
  );
}

/** Whether a job is as the verb would make it. */
function isThere(verb: BulkVerb, job: Job): boolean {
  if (verb === "pause") return job.state === "paused";
  return verb === "resume" && job.state !== "paused";
}

function isTyped(verb: BulkVerb, count: number, typed: string): boolean {
  return verb !== "delete" || count < TYPED_FROM || typed.replaceAll(",", "").trim() === String(count);
}

function Sure(props: { count: number; typed: string; set: (typed: string) => void }): JSX.Element {
  return (
    <>
      <p>They stop at once. Their runs stay until they expire. This cannot be undone.</p>
      {props.count < TYPED_FROM ? null : (
        <Input
          label="How many jobs are deleted"
          hint={`Type ${props.count} to delete them.`}
          value={props.typed}
          set={props.set}
        />
      )}
    </>
  );
}

function titleOf(verb: BulkVerb, count: number): string {
  return `${VERBS[verb]}: ${counted(count, "job")}`;
}

const NONE: Record<BulkVerb, string> = {
  pause: "All are paused already.",
  resume: "All are active already.",
  run: "No job is left.",
  delete: "No job is left.",
};

function First({ ids, verb }: { ids: readonly string[]; verb: BulkVerb }): JSX.Element {
  return (
    <p>
      {ids.slice(0, 8).map((id) => (
        <code key={id} class="tag">
          {id}
        </code>
      ))}
      {ids.length > 8 ? `and ${(ids.length - 8).toLocaleString("en")} more` : null}
      {ids.length ? null : NONE[verb]}
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
  if (verb === "delete") return api().post("/v1/jobs/_all/delete", options);
  return api().post("/v1/jobs/_all/run", options);
}

function change(verb: BulkVerb, job: Job, note: string): Promise<unknown> {
  const path = { job_id: job.job_id };
  if (verb === "pause") return api().post("/v1/jobs/{job_id}/pause", { path, body: { note }, repeatable: true });
  if (verb === "resume") return api().post("/v1/jobs/{job_id}/resume", { path, repeatable: true });
  if (verb === "delete") return api().delete("/v1/jobs/{job_id}", { path });
  return api().post("/v1/jobs/{job_id}/run", { path, body: {} });
}
