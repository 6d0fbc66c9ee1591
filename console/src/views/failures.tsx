/** The failed runs of all jobs, grouped by job and error; a group can be retried at once, or muted. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { mostOf, Trend } from "../draw/trend";
import { throughAll } from "../lib/bulk";
import { type Group, keyOf, merged } from "../lib/groups";
import { refresh, useLoad } from "../lib/load";
import { place, setQuery, to } from "../lib/router";
import { api, may } from "../lib/session";
import { DAY, HOUR, now, rfc3339 } from "../lib/time";
import { counted } from "../lib/words";
import { Ask, Field, Note, say } from "../ui/actions";
import { Card, Empty, Head, Linked, Problem, Text, Time, Waiting } from "../ui/parts";
import { actions, type Column, List } from "../ui/table";
import { RunTable } from "./run-table";

const SINCE: [string, number][] = [
  ["24 h", 1],
  ["7 d", 7],
  ["30 d", 30],
];

export function Failures(): JSX.Element {
  const [retrying, setRetrying] = useState<Group>();
  const [muting, setMuting] = useState<Group>();
  const { days = "1", job } = place.value.query;
  const from = rfc3339(Math.floor(now.value / HOUR) * HOUR - Number(days) * DAY);
  const found = useLoad(
    `failures ${days} ${job}`,
    async (signal) => {
      const groups: Group[] = [];
      const query = { from_at: from, ...(job ? { job_id: job } : {}) };
      for await (const page of api().pages("/v1/failures/groups", { query, signal })) groups.push(...page.groups);
      return merged(groups);
    },
    15,
  );
  const groups = found.data ?? [];
  const shown = groups.filter((group) => !group.muted);
  const muted = groups.filter((group) => group.muted);
  const runs = groups.reduce((sum, group) => sum + group.count, 0);
  const table = { from: Date.parse(from), retry: setRetrying, mute: setMuting };
  return (
    <>
      <Head
        title="Failures"
        sub={
          found.data ? `${counted(runs, "failed run")} in ${counted(groups.length, "group")}${mutedWords(muted)}` : null
        }
      >
        {SINCE.map(([name, value]) => (
          <button
            key={name}
            type="button"
            class="quiet"
            aria-pressed={days === String(value)}
            onClick={() => setQuery({ days: String(value) })}
          >
            {name}
          </button>
        ))}
      </Head>
      <Problem error={found.error} retry={found.reload} />
      <Card>
        <Groups label="Failures by job and error" groups={shown} {...table} />
        {found.data && !shown.length ? (
          <Empty title={muted.length ? "Nothing else has failed" : "Nothing has failed"}>
            This page looks again by itself.
          </Empty>
        ) : null}
        {found.data ? null : <Waiting lines={6} />}
      </Card>
      {muted.length ? (
        <Card>
          <details class="fold">
            <summary>{counted(muted.length, "muted group")}</summary>
            <Groups label="Muted failures" groups={muted} {...table} />
          </details>
        </Card>
      ) : null}
      {retrying ? <Retry group={retrying} from={from} close={() => setRetrying(undefined)} /> : null}
      {muting ? <Mute group={muting} close={() => setMuting(undefined)} /> : null}
    </>
  );
}

function mutedWords(muted: Group[]): string {
  return muted.length ? `, ${muted.length} muted` : "";
}

interface Doing {
  from: number;
  retry: (group: Group) => void;
  mute: (group: Group) => void;
}

function Groups({ label, groups, ...doing }: { label: string; groups: Group[] } & Doing): JSX.Element | null {
  const [open, setOpen] = useState("");
  const toggle = (group: Group) => setOpen(open === keyOf(group) ? "" : keyOf(group));
  return (
    <List
      label={label}
      columns={columnsOf(groups, doing, open, toggle)}
      rows={groups}
      keyOf={keyOf}
      below={(group) => (open === keyOf(group) ? <RunsOf group={group} /> : null)}
    />
  );
}

function columnsOf(
  groups: readonly Group[],
  doing: Doing,
  open: string,
  toggle: (group: Group) => void,
): Column<Group>[] {
  const hoursOf = ({ hours }: Group) => ({ hours, from: doing.from, until: now.value });
  const most = mostOf(groups.map(hoursOf));
  return [
    { name: "Runs", class: "num", cell: (group) => <strong class="bad">{group.count}</strong> },
    {
      name: "Job",
      class: "clip",
      cell: (group) => (
        <a data-row class="mono" href={to(["jobs", group.job_id])}>
          {group.job_id}
        </a>
      ),
    },
    { name: "Error", class: "wrap", cell: (group) => <ErrorOf group={group} /> },
    {
      name: `When, bars to ${most.toLocaleString("en")}`,
      cell: (group) => <Trend {...hoursOf(group)} most={most} />,
    },
    { name: "First", cell: (group) => <Time at={group.first_at} /> },
    { name: "Last", cell: (group) => <Time at={group.last_at} /> },
    actions((group) => (
      <div class="actions">
        <button type="button" aria-expanded={open === keyOf(group)} onClick={() => toggle(group)}>
          {open === keyOf(group) ? "Hide" : "Runs"}
        </button>
        {may("write") ? (
          <>
            {group.muted ? (
              <Unmute group={group} />
            ) : (
              <button type="button" onClick={() => doing.mute(group)}>
                Mute
              </button>
            )}
            <button type="button" onClick={() => doing.retry(group)}>
              Retry
            </button>
          </>
        ) : null}
      </div>
    )),
  ];
}

function ErrorOf({ group }: { group: Group }): JSX.Element {
  const { muted } = group;
  return (
    <>
      <strong>
        <Text>{group.error_type || "failed"}</Text>
      </strong>{" "}
      <span class="muted">
        <Text>{group.error}</Text>
      </span>
      {muted ? (
        <div class="small">
          Muted until {muted.until_at ? <Time at={muted.until_at} /> : "it changes"}{" "}
          <span class="muted">
            <Linked>{muted.note}</Linked>
          </span>
        </div>
      ) : null}
    </>
  );
}

/** The newest failed runs of the group's job; the newest of the group is named first. */
function RunsOf({ group }: { group: Group }): JSX.Element {
  const found = useLoad(`failed ${keyOf(group)} ${group.last_at}`, (signal) =>
    api().get("/v1/jobs/{job_id}/runs", {
      path: { job_id: group.job_id },
      query: { status: "failed", limit: 20 },
      signal,
    }),
  );
  return (
    <>
      <p>
        The last one: <a href={to(["runs", group.last_execution_id])}>{group.last_execution_id}</a>
      </p>
      <Problem error={found.error} retry={found.reload} />
      {found.data ? <RunTable runs={found.data.runs} /> : <Waiting lines={2} />}
    </>
  );
}

function Retry(props: { group: Group; from: string; close: () => void }): JSX.Element {
  const { group } = props;
  const [done, setDone] = useState(0);
  const act = async () => {
    const body = { job_id: group.job_id, fingerprint: group.fingerprint, from_at: props.from };
    const sum = await throughAll(
      (cursor) => api().post("/v1/runs/_all/retry", { body: { ...body, ...cursor } }),
      (soFar) => setDone(soFar.done),
    );
    refresh();
    say(`${counted(sum.done, "run")} ${sum.done === 1 ? "is" : "are"} tried again`);
    const first = sum.refused[0];
    if (first) throw new Error(`${sum.refused.length} refused; ${first.id}: ${first.detail}`);
  };
  return (
    <Ask
      title={`Retry ${counted(group.count, "failed run")}`}
      verb={done ? `${done} of ${group.count}` : "Retry"}
      act={act}
      close={props.close}
    >
      <p>
        Each run of <code>{group.job_id}</code> that failed with <Text>{group.error_type || "this error"}</Text> gets
        one more attempt.
      </p>
    </Ask>
  );
}

const LASTS: [days: string, name: string][] = [
  ["", "Until it changes"],
  ["1", "For a day"],
  ["7", "For 7 days"],
  ["30", "For 30 days"],
];

function Mute({ group, close }: { group: Group; close: () => void }): JSX.Element {
  const [note, setNote] = useState("");
  const [days, setDays] = useState("");
  const act = async () => {
    const { job_id, fingerprint } = group;
    const until = days ? { until_at: rfc3339(Date.now() + Number(days) * DAY - HOUR / 60) } : {};
    const path = { job_id, fingerprint };
    await api().put("/v1/failures/groups/{job_id}/{fingerprint}/mute", { path, body: { note, ...until } });
    refresh();
    say(`${group.error_type || "The error"} of ${job_id} is muted`);
  };
  return (
    <Ask title="Mute these failures" verb="Mute" act={act} close={close}>
      <p>
        <code>{group.job_id}</code> with <Text>{group.error_type || "this error"}</Text> counts no more as one that
        needs attention, and subscriptions are silent about it. Another error of the job is not muted.
      </p>
      <Field label="How long" hint="It changes when the job, having succeeded or having been changed, fails again.">
        {(attributes) => (
          <select {...attributes} value={days} onChange={(event) => setDays(event.currentTarget.value)}>
            {LASTS.map(([value, name]) => (
              <option key={value} value={value}>
                {name}
              </option>
            ))}
          </select>
        )}
      </Field>
      <Note note={note} set={setNote} hint="Why; everybody who looks at the failures reads it." />
    </Ask>
  );
}

function Unmute({ group }: { group: Group }): JSX.Element {
  const [error, setError] = useState<unknown>();
  const act = async () => {
    const { job_id, fingerprint } = group;
    try {
      await api().delete("/v1/failures/groups/{job_id}/{fingerprint}/mute", { path: { job_id, fingerprint } });
      refresh();
      say(`${group.error_type || "The error"} of ${job_id} is not muted any more`);
    } catch (problem) {
      setError(problem);
    }
  };
  return (
    <>
      <Problem error={error} />
      <button type="button" onClick={act}>
        Unmute
      </button>
    </>
  );
}
