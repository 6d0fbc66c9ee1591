/** What a job is, and how it became so: its revisions with their differences and what these changed. */

import type { Shapes } from "minute8-client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { consequences, diffOf, shortly } from "../lib/diff";
import type { Job } from "../lib/jobs";
import { useLoad } from "../lib/load";
import { to } from "../lib/router";
import { api } from "../lib/session";
import { Card, Code, Empty, Facts, Found, Linked, Problem, Text, Time, Waiting } from "../ui/parts";

// The compiler compares them with the API's shapes: a field that is only answered would be refused.
const NO_DEFINITION: Record<Exclude<keyof Job, keyof Shapes["NewJob"]> | "job_id" | "state" | "note", true> = {
  job_id: true,
  schedule_resolved: true,
  schedule_words: true,
  warnings: true,
  ends: true,
  state: true,
  note: true,
  revision: true,
  schedule_revision: true,
  created_at: true,
  updated_at: true,
  next_fire_at: true,
  next_due_at: true,
  function_timeout_s: true,
};

/** A job as a client writes it: without its id, and without what Minute8 adds. */
export function definitionOf(job: Job): Record<string, unknown> {
  return Object.fromEntries(Object.entries(job).filter(([name]) => !(name in NO_DEFINITION)));
}

/** The same without fields that are null, to be read. */
function compact(value: unknown): unknown {
  if (Array.isArray(value) || typeof value !== "object" || value === null) return value;
  const kept = Object.entries(value).filter(
    ([, member]) => member !== null && member !== "" && !(Array.isArray(member) && !member.length),
  );
  return Object.fromEntries(kept.map(([name, member]) => [name, compact(member)]));
}

function alertWords(alert: Job["alert"]): string {
  const { longer_than_s, shorter_than_s, no_success_for_s } = alert ?? {};
  return [
    longer_than_s ? `a run takes over ${longer_than_s} s` : "",
    shorter_than_s ? `a success takes under ${shorter_than_s} s` : "",
    no_success_for_s ? `no success for ${no_success_for_s} s` : "",
  ]
    .filter(Boolean)
    .join(", ");
}

export function Definition({ job }: { job: Job }): JSX.Element {
  const preview = useLoad(`warnings of ${job.job_id} ${job.schedule_revision}`, (signal) =>
    api().post("/v1/schedules/preview", {
      body: { schedule: job.schedule, count: 1, job_id: job.job_id },
      repeatable: true,
      signal,
    }),
  );
  const target = job.target;
  const { runbook, owner } = job;
  const alert = alertWords(job.alert);
  return (
    <Card title="Definition" side={`revision ${job.revision}`}>
      <Facts
        facts={[
          ["Schedule", <Text key="s">{job.schedule_words}</Text>],
          ["Target", <Text key="t">{`${target.kind} ${"url" in target ? target.url : target.arn}`}</Text>],
          [
            "Retries",
            job.retry.max_attempts === 1
              ? "none: one attempt"
              : `${job.retry.max_attempts} attempts, from ${job.retry.base_s} s, at most ${job.retry.cap_s} s apart`,
          ],
          ["Time limit", `${job.timeout_s} s`],
          ["Overlap", job.overlap],
          ["Catch-up", job.catch_up],
          ...(job.completion === "callback" ? [["Ends with", "a callback of the target"] as [string, string]] : []),
          ...(job.concurrency
            ? [
                [
                  "At a time",
                  <span key="k">
                    {job.concurrency.limit} of <a href={to(["permits", job.concurrency.key])}>{job.concurrency.key}</a>,
                    else {job.concurrency.when_full}
                  </span>,
                ] as [string, JSX.Element],
              ]
            : []),
          ...(alert ? [["Alert", <Text key="a">{alert}</Text>] as [string, JSX.Element]] : []),
          ...(owner ? [["Owner", <Text key="o">{owner}</Text>] as [string, JSX.Element]] : []),
          ...(runbook ? [["Runbook", <Linked key="r">{runbook}</Linked>] as [string, JSX.Element]] : []),
          ["Created", <Time key="c" at={job.created_at} full />],
          ["Changed", <Time key="u" at={job.updated_at} full />],
        ]}
      />
      {[...(job.warnings ?? []), ...(preview.data?.warnings ?? [])].map((warning) => (
        <p key={warning} class="notice late">
          <Text>{warning}</Text>
        </p>
      ))}
      <Code text={JSON.stringify(compact(definitionOf(job)), null, 2)} label="definition as JSON" />
    </Card>
  );
}

type Entry = Shapes["AuditEntry"];

export function Revisions({ job }: { job: Job }): JSX.Element {
  const audit = useLoad(`audit of ${job.job_id} ${job.revision}`, (signal) =>
    api().get("/v1/audit", { query: { subject: job.job_id, action: "job", limit: 12 }, signal }),
  );
  return (
    <Card title="Revisions">
      <Found found={audit}>
        {({ entries }) =>
          entries.length ? (
            <ul class="revisions">
              {entries.map((entry) => (
                <Revision key={entry.entry_id} entry={entry} job={job} />
              ))}
            </ul>
          ) : (
            <Empty title="No change is recorded" />
          )
        }
      </Found>
    </Card>
  );
}

function Revision({ entry, job }: { entry: Entry; job: Job }): JSX.Element {
  const changes = diffOf(entry.before, entry.after);
  const schedules = [entry.before.schedule, entry.after.schedule];
  return (
    <li>
      <div class="row">
        <strong>{entry.action.replace("job.", "")}</strong>
        <span class="muted">
          <Time at={entry.at} /> by <Text most={60}>{entry.by_name || entry.by}</Text>
        </span>
      </div>
      <Changes changes={changes} />
      {entry.action === "job.changed" && schedules.every(isSchedule) ? (
        <Consequences
          job={job}
          before={schedules[0] as Shapes["ScheduleDefinition"]}
          after={schedules[1] as Shapes["ScheduleDefinition"]}
        />
      ) : null}
    </li>
  );
}

const MANY = 5;

export function Changes({ changes }: { changes: ReturnType<typeof diffOf> }): JSX.Element | null {
  if (!changes.length) return null;
  // What is created or deleted has all of its fields, which hide the changes around it.
  const isWhole = (["before", "after"] as const).some((side) => changes.every((change) => change[side] === null));
  const told = isWhole ? changes.filter(({ before, after }) => !isNothing(before) || !isNothing(after)) : changes;
  if (told.length > MANY && isWhole) {
    return (
      <details>
        <summary>{told.length} fields</summary>
        <Changed changes={told} />
      </details>
    );
  }
  return <Changed changes={told} />;
}

/** Whether a field has no value that could be shown. */
function isNothing(value: unknown): boolean {
  return value === null || value === "";
}

function Changed({ changes }: { changes: ReturnType<typeof diffOf> }): JSX.Element {
  return (
    <dl class="changes">
      {changes.map((change) => (
        <div key={change.field}>
          <dt>
            <code>{change.field}</code>
          </dt>
          <dd>
            {isNothing(change.before) ? null : (
              <del>
                <Text>{shortly(change.before)}</Text>
              </del>
            )}{" "}
            {isNothing(change.after) ? null : (
              <ins>
                <Text>{shortly(change.after)}</Text>
              </ins>
            )}
          </dd>
        </div>
      ))}
    </dl>
  );
}

function isSchedule(value: unknown): value is Shapes["ScheduleDefinition"] {
  return typeof value === "object" && value !== null && ["cron", "every", "at"].some((name) => name in value);
}

/** Which of the next fire times vanish with a change, and which appear. */
export function Consequences(props: {
  job: { job_id: string };
  before: Shapes["ScheduleDefinition"];
  after: Shapes["ScheduleDefinition"];
}): JSX.Element {
  const [asked, ask] = useState(false);
  return asked ? (
    <ConsequencesOf {...props} />
  ) : (
    <button type="button" class="quiet" onClick={() => ask(true)}>
      What it changed
    </button>
  );
}

const COUNT = 50;

export function ConsequencesOf(props: {
  job: { job_id: string };
  before: Shapes["ScheduleDefinition"];
  after: Shapes["ScheduleDefinition"];
}): JSX.Element {
  const key = JSON.stringify([props.before, props.after]);
  const both = useLoad(key, (signal) =>
    Promise.all(
      [props.before, props.after].map((schedule) =>
        api().post("/v1/schedules/preview", {
          body: { schedule, count: COUNT, ...(props.job.job_id ? { job_id: props.job.job_id } : {}) },
          repeatable: true,
          signal,
        }),
      ),
    ),
  );
  if (!both.data) return both.error ? <Problem error={both.error} retry={both.reload} /> : <Waiting lines={1} />;
  const [before, after] = both.data.map((preview) => preview.fires.map((fire) => fire.fire_at));
  const found = consequences(before ?? [], after ?? []);
  return (
    <div class="consequences small">
      Of the next {COUNT} fire times, {found.stay} stay.
      <Instants title="vanish" tone="bad" instants={found.vanish} />
      <Instants title="appear" tone="good" instants={found.appear} />
    </div>
  );
}

function Instants({ title, tone, instants }: { title: string; tone: string; instants: string[] }): JSX.Element | null {
  if (!instants.length) return null;
  return (
    <div>
      <strong class={tone}>
        {tone === "good" ? "+" : "−"}
        {instants.length} {title}
      </strong>{" "}
      {instants.slice(0, 6).map((at) => (
        <span key={at} class="tag">
          <Time at={at} full />
        </span>
      ))}
      {instants.length > 6 ? "…" : ""}
    </div>
  );
}
