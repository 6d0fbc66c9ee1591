/** One job: expected against actual, its runs, its next times, its clock change, its definition and how that became. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Plot, type Point } from "../draw/plot";
import { TimeLine } from "../draw/timeline";
import { type Expectation, loadExpected, stateOfFire } from "../lib/expected";
import type { JobHealth, Job as JobShape } from "../lib/jobs";
import { useLoad } from "../lib/load";
import { to } from "../lib/router";
import { api, hasRole } from "../lib/session";
import { DAY, HOUR, now, rfc3339, span } from "../lib/time";
import { Card, Head, Problem, Text, Time, Waiting } from "../ui/parts";
import { JobActions } from "./job-actions";
import { Backfills, useBackfills } from "./job-backfill";
import { Definition, Revisions } from "./job-definition";
import { ClockChangeCard, NextTimes } from "./job-times";
import { Why } from "./job-why";
import { Wrong } from "./job-wrong";
import { HealthState } from "./jobs";
import { RunTable } from "./runs";

const RANGES: [string, number, number][] = [
  ["6 h", 6 * HOUR, 2 * HOUR],
  ["24 h", DAY, 8 * HOUR],
  ["7 d", 7 * DAY, 2 * DAY],
];

export function Job({ id }: { id: string }): JSX.Element {
  const path = { job_id: id };
  const job = useLoad(`job ${id}`, (signal) => api().get("/v1/jobs/{job_id}", { path, signal }), 10);
  const health = useLoad(`health ${id}`, (signal) => api().get("/v1/jobs/{job_id}/health", { path, signal }), 10);
  const backfills = useBackfills(id);
  if (!job.data) {
    return (
      <>
        <Head title={<span class="mono">{id}</span>} />
        <Problem error={job.error} retry={job.reload} />
        {job.error ? <a href={to(["jobs"])}>All jobs</a> : <Waiting />}
      </>
    );
  }
  const zone = job.data.schedule.timezone ?? undefined;
  return (
    <>
      <Head title={<span class="mono">{id}</span>} sub={<Sub job={job.data} health={health.data} />}>
        <JobActions job={job.data} changed={job.reload} />
      </Head>
      <Problem error={job.error} retry={job.reload} />
      {job.data.state === "paused" ? (
        <div class="notice late" role="status">
          Paused{job.data.note ? ": " : "."} <Text most={500}>{job.data.note}</Text>
        </div>
      ) : null}
      <Wrong job={job.data} health={health.data} />
      {backfills.isTopical ? <Backfills job={job.data} found={backfills} /> : null}
      <Strip id={id} zone={zone} />
      <div class="grid">
        <Runs id={id} zone={zone} />
        <NextTimes job={job.data} />
      </div>
      <div class="grid">
        <Why id={id} zone={zone} />
        <ClockChangeCard job={job.data} />
      </div>
      <div class="grid">
        <Definition job={job.data} />
        {hasRole("admin") ? <Revisions job={job.data} /> : null}
      </div>
      {backfills.isTopical ? null : <Backfills job={job.data} found={backfills} />}
    </>
  );
}

function Sub({ job, health }: { job: JobShape; health: JobHealth | undefined }): JSX.Element {
  const late = health?.overdue?.late_s ?? 0;
  return (
    <>
      <HealthState job={job} found={health} />
      {job.name ? <Text>{job.name}</Text> : null}
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

function Strip({ id, zone }: { id: string; zone: string | undefined }): JSX.Element {
  const [chosen, choose] = useState(1);
  const [, back, ahead] = RANGES[chosen] ?? ["", DAY, DAY];
  // The range moves on by whole minutes, so that a moving present does not load it again.
  const present = Math.floor(now.value / 60_000) * 60_000;
  const [from, until] = [present - back, present + ahead];
  const found = useLoad<Expectation>(
    `expected ${id} ${chosen}`,
    (signal) => loadExpected(id, { from_at: rfc3339(from), until_at: rfc3339(until) }, signal),
    10,
  );
  const fires = found.data?.fires ?? [];
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
      {found.data || found.error ? (
        <TimeLine
          label="Expected against actual"
          marks={fires.map((fire) => ({ at: Date.parse(fire.fire_at), state: stateOfFire(fire) }))}
          from={from}
          until={until}
          zone={zone}
        />
      ) : (
        <Waiting lines={2} />
      )}
      {found.data && !found.data.complete ? <p class="hint">Only the first instants of this range are shown.</p> : null}
    </Card>
  );
}

function Runs({ id, zone }: { id: string; zone: string | undefined }): JSX.Element {
  const runs = useLoad(
    `runs of ${id}`,
    (signal) => api().get("/v1/jobs/{job_id}/runs", { path: { job_id: id }, query: { limit: 60 }, signal }),
    5,
  );
  const points: Point[] = (runs.data?.runs ?? []).flatMap((run) =>
    run.duration_s != null && run.started_at
      ? [{ at: Date.parse(run.started_at), seconds: run.duration_s, failed: run.status === "failed" }]
      : [],
  );
  return (
    <Card title="Runs" side={<a href={to(["runs"], { job: id })}>All</a>}>
      <Problem error={runs.error} retry={runs.reload} />
      {points.length > 1 ? (
        <Plot label={`Durations of the last ${points.length} runs`} points={points} zone={zone} />
      ) : null}
      {runs.data ? <RunTable runs={runs.data.runs.slice(0, 12)} zone={zone} /> : <Waiting />}
    </Card>
  );
}
