/** One job: how it is, and in tabs its runs, its schedule, its definition, and how that became. */

import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { Plot, type Point } from "../draw/plot";
import { spreadOf, WhereTimeGoes } from "../draw/shares";
import { type Chosen, TimeLine } from "../draw/timeline";
import { type Known, loadExpected, stateOfFire } from "../lib/expected";
import type { JobHealth, Job as JobShape } from "../lib/jobs";
import { useLoad } from "../lib/load";
import { go, to } from "../lib/router";
import { api, hasRole } from "../lib/session";
import { DAY, HOUR, MINUTE, now, rfc3339, span } from "../lib/time";
import { Card, Head, Problem, Text, Time, Waiting } from "../ui/parts";
import { Tabs } from "../ui/tabs";
import { JobActions } from "./job-actions";
import { Backfills, useBackfills } from "./job-backfill";
import { Definition, Revisions } from "./job-definition";
import { ClockChangeCard, NextTimes } from "./job-times";
import { Why } from "./job-why";
import { Wrong } from "./job-wrong";
import { HealthState } from "./jobs";
import { RunTable } from "./run-table";

const TABS = { "": "Runs", schedule: "Schedule", definition: "Definition", history: "History" };

export function Job({ id, tab }: { id: string; tab: string }): JSX.Element {
  const path = { job_id: id };
  // Both at once, so that nothing moves when the second comes.
  const found = useLoad(
    `job ${id}`,
    (signal) =>
      Promise.all([
        api().get("/v1/jobs/{job_id}", { path, signal }),
        api().get("/v1/jobs/{job_id}/health", { path, signal }),
      ]),
    10,
    true,
  );
  const [job, health] = found.data ?? [];
  if (!job) {
    return (
      <>
        <Head title={<span class="mono">{id}</span>} sub=" " />
        <Problem error={found.error} retry={found.reload} />
        {found.error ? <a href={to(["jobs"])}>All jobs</a> : <Waiting lines={12} />}
      </>
    );
  }
  const zone = job.schedule.timezone ?? undefined;
  return (
    <>
      <Head
        title={job.name ? <Text most={120}>{job.name}</Text> : <span class="mono">{id}</span>}
        sub={<Sub job={job} health={health} />}
      >
        <JobActions job={job} changed={found.reload} />
      </Head>
      <Problem error={found.error} retry={found.reload} />
      {job.state === "paused" ? (
        <div class="notice late" role="status">
          Paused{job.note ? ": " : "."} <Text most={500}>{job.note}</Text>
        </div>
      ) : null}
      <Wrong job={job} health={health} />
      <Tabs label="Parts of the job" path={["jobs", id]} tabs={TABS} current={tab} />
      {tab === "schedule" ? (
        <>
          <NextTimes job={job} />
          <div class="grid">
            <Why id={id} zone={zone} />
            <ClockChangeCard job={job} />
          </div>
        </>
      ) : null}
      {tab === "definition" ? <Definition job={job} /> : null}
      {tab === "history" ? <History job={job} /> : null}
      {tab === "" ? (
        <>
          <Strip job={job} />
          <RunsTab job={job} />
        </>
      ) : null}
    </>
  );
}

function History({ job }: { job: JobShape }): JSX.Element {
  if (hasRole("admin")) return <Revisions job={job} />;
  return (
    <Card>
      <p class="muted">
        It is revision {job.revision}, changed <Time at={job.updated_at} full />. Who changed what is shown to a key of
        the role admin.
      </p>
    </Card>
  );
}

function Sub({ job, health }: { job: JobShape; health: JobHealth | undefined }): JSX.Element {
  const late = health?.overdue?.late_s ?? 0;
  return (
    <>
      <HealthState job={job} found={health} />
      {job.name ? <span class="mono">{job.job_id}</span> : null}
      <Text>{job.schedule_words}</Text>
      <span>
        {late > 60 ? (
          <strong class="bad">late by {span(late)}</strong>
        ) : (
          <>
            next <Time at={job.next_fire_at} zone={job.schedule.timezone ?? undefined} />
          </>
        )}
      </span>
      {job.tags.map((tag) => (
        <a key={tag} class="tag" href={to(["jobs"], { tag })}>
          {tag}
        </a>
      ))}
    </>
  );
}

type Range = readonly [back: number, ahead: number];
const RANGES: readonly (readonly [string, Range])[] = [
  ["1 h", [HOUR, 20 * MINUTE]],
  ["6 h", [6 * HOUR, 2 * HOUR]],
  ["24 h", [DAY, 8 * HOUR]],
  ["7 d", [7 * DAY, 2 * DAY]],
];
const DAY_RANGE = 2;

function Strip({ job }: { job: JobShape }): JSX.Element {
  const { job_id: id } = job;
  const zone = job.schedule.timezone ?? undefined;
  // A job that runs every few seconds fills a picture within an hour.
  const [chosen, choose] = useState(() => (/seconds?\b/i.test(job.schedule_words) ? 0 : DAY_RANGE));
  const range = RANGES[chosen]?.[1] ?? [DAY, DAY];
  // The range moves on by whole minutes, so that a moving present does not load it again.
  const present = Math.floor(now.value / MINUTE) * MINUTE;
  const found = useLoad<Known>(
    `expected ${id} ${chosen} ${job.schedule_revision} ${job.state}`,
    (signal, _, before) => loadExpected(id, range, signal, before),
    15,
    true,
  );
  const { data } = found;
  const marks = useMemo(
    () => (data?.fires ?? []).map((fire) => ({ at: Date.parse(fire.fire_at), state: stateOfFire(fire) })),
    [data],
  );
  const open = ({ from, until }: Chosen) => {
    const at = { from: rfc3339(from), until: rfc3339(until) };
    if (from > now.value) go(["upcoming"], at);
    else go(["runs"], { job: id, ...at });
  };
  return (
    <Card
      title="Expected against actual"
      side={
        <span class="actions">
          {RANGES.map(([name], n) => (
            <button key={name} type="button" class="quiet" aria-pressed={n === chosen} onClick={() => choose(n)}>
              {name}
            </button>
          ))}
        </span>
      }
    >
      <Problem error={found.error} retry={found.reload} />
      <div class="strip">
        {data || found.error ? (
          <TimeLine
            label="Expected against actual"
            marks={marks}
            from={beginOf(job, present, range)}
            until={present + range[1]}
            zone={zone}
            open={open}
          />
        ) : (
          <Waiting lines={4} />
        )}
      </div>
      {data && !data.complete ? <p class="hint">Only the first instants of this range are shown.</p> : null}
    </Card>
  );
}

/** The begin (ms) of a job's picture: what was before the job was no empty day of it. Pure. */
export function beginOf(job: { created_at: string }, present: number, [back]: Range): number {
  const created = Math.floor(Date.parse(job.created_at) / MINUTE) * MINUTE;
  return Math.min(present - MINUTE, Math.max(present - back, created));
}

function RunsTab({ job }: { job: JobShape }): JSX.Element {
  const backfills = useBackfills(job.job_id);
  // What stands above the runs is there before them, so that they do not move.
  if (!backfills.data && !backfills.error) return <Waiting lines={8} />;
  return (
    <>
      <Backfills job={job} found={backfills} />
      <Runs id={job.job_id} zone={job.schedule.timezone ?? undefined} />
    </>
  );
}

function Runs({ id, zone }: { id: string; zone: string | undefined }): JSX.Element {
  const runs = useLoad(
    `runs of ${id}`,
    (signal) => api().get("/v1/jobs/{job_id}/runs", { path: { job_id: id }, query: { limit: 60 }, signal }),
    5,
    true,
  );
  const points: Point[] = (runs.data?.runs ?? []).flatMap((run) =>
    run.duration_s != null && run.started_at
      ? [{ at: Date.parse(run.started_at), seconds: run.duration_s, failed: run.status === "failed" }]
      : [],
  );
  const values = (name: "lateness_s" | "duration_s") =>
    (runs.data?.runs ?? []).flatMap((run) => (run[name] == null ? [] : [run[name]]));
  return (
    <Card title="Runs" side={<a href={to(["runs"], { job: id })}>All</a>}>
      <Problem error={runs.error} retry={runs.reload} />
      {points.length > 1 ? (
        <Plot label={`Durations of the last ${points.length} runs`} points={points} zone={zone} />
      ) : null}
      <WhereTimeGoes lateness={spreadOf(values("lateness_s"))} durations={spreadOf(values("duration_s"))} />
      {runs.data ? <RunTable runs={runs.data.runs.slice(0, 12)} zone={zone} /> : <Waiting lines={8} />}
    </Card>
  );
}
