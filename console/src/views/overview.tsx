/** The last and the next 24 hours of all jobs, and what needs attention first: one request. */

import type { Shapes } from "minute8-client";
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { Mark } from "../draw/bins";
import { type Cell, Heat } from "../draw/heat";
import { WhereTimeGoes } from "../draw/shares";
import { type Chosen, TimeLine } from "../draw/timeline";
import { keyOf } from "../lib/groups";
import { figureOf } from "../lib/health";
import { useLoad } from "../lib/load";
import { go, to } from "../lib/router";
import { api } from "../lib/session";
import { absolute, DAY, HOUR, MINUTE, now, rfc3339, span, zoneChoice, zoneOf } from "../lib/time";
import { counted } from "../lib/words";
import { lazily } from "../ui/lazy";
import { Card, Empty, Figure, Head, Problem, State, Text, Time, Waiting } from "../ui/parts";
import { type Column, List } from "../ui/table";
import { jobColumn } from "./job-column";

// Only a tenant without jobs needs them, and it goes on to the views that they come with.
const FirstSteps = lazily(() => import("./of-jobs").then((view) => view.FirstSteps));

type Look = Shapes["TenantOverview"];
type Past = NonNullable<Look["past"]>;

export function Overview(): JSX.Element {
  const found = useLoad("overview", (signal) => api().get("/v1/overview", { signal }), 15, true);
  const look = found.data;
  if (look?.job_counts?.total === 0) {
    return (
      <>
        <Head title="Overview" />
        <FirstSteps />
      </>
    );
  }
  const isMade = look && (!look.past || !look.job_counts);
  return (
    <>
      <Head title="Overview" sub="The last 24 hours and the next." />
      <Problem error={found.error} retry={found.reload} />
      <Figures look={look} />
      {isMade ? (
        <p class="hint" role="status">
          What is missing here is being counted for the first time. It comes by itself.
        </p>
      ) : null}
      <Card title="What ran, and what is due" side={<a href={to(["upcoming"])}>All that is coming</a>}>
        {look ? <Day look={look} /> : <Waiting lines={5} />}
      </Card>
      <div class="grid">
        <Attention look={look} />
        <Next look={look} />
      </div>
      <Card title="By hour">{look ? <Hours past={look.past ?? null} /> : <Waiting lines={2} />}</Card>
      {look?.past?.runs ? (
        <Card title="Where time goes" side={partWords(look.past, now.value) || "24 h"}>
          <WhereTimeGoes lateness={look.past.lateness_s} durations={look.past.duration_s} />
        </Card>
      ) : null}
    </>
  );
}

/** What was counted, if it is not the whole day until now. */
function partWords({ from_at, fresh_at }: Past, present: number): string {
  const zone = zoneOf(zoneChoice.value, undefined);
  const [from, until] = [Date.parse(from_at), Date.parse(fresh_at)];
  const shown = (at: number) => absolute(at, zone, present).slice(0, -3);
  const parts = [
    from > present - DAY + 10 * MINUTE ? `since ${shown(from)}` : "",
    until < present - 5 * MINUTE ? `until ${shown(until)}` : "",
  ];
  return parts.filter(Boolean).join(" ");
}

function Figures({ look }: { look: Look | undefined }): JSX.Element {
  const { job_counts: jobs, past, failing } = look ?? {};
  const part = past ? partWords(past, now.value) : "";
  const when = part || "24 h";
  const { failed = 0 } = past?.statuses ?? {};
  const rate = past?.success_rate == null ? null : 100 * past.success_rate;
  const late = past?.hours.reduce((sum, hour) => sum + hour.late, 0);
  return (
    <dl class="figures">
      <Figure
        name="Jobs"
        value={jobs ? jobs.total.toLocaleString("en") : "–"}
        hint={jobs ? `${jobs.paused.toLocaleString("en")} paused` : " "}
      />
      <Figure
        name="Failing"
        {...figureOf(failing?.count)}
        hint={failing?.muted ? `and ${failing.muted.toLocaleString("en")} muted` : "their last run failed"}
      />
      <Figure name="Stuck" {...figureOf(look?.open?.stuck)} hint="runs that should have gone on" />
      <Figure
        name={`Succeeded, ${when}`}
        value={rate === null ? "–" : `${rate > 99.9 && rate < 100 ? "99.9" : rate.toFixed(rate % 1 ? 1 : 0)} %`}
        tone={toneOfRate(rate)}
        hint={past ? `of ${past.due.toLocaleString("en")} that were due` : " "}
      />
      <Figure name={`Failed, ${when}`} {...figureOf(past ? failed : undefined)} hint="runs" />
      <Figure name={`Late, ${when}`} {...figureOf(late, "late")} hint="started over a second late" />
    </dl>
  );
}

function toneOfRate(rate: number | null): "late" | "good" | undefined {
  if (rate === null) return undefined;
  return rate < 95 ? "late" : "good";
}

function Day({ look }: { look: Look }): JSX.Element {
  const hour = Math.floor(now.value / HOUR) * HOUR;
  const marks = useMemo<Mark[]>(
    () => [
      ...(look.past?.hours ?? []).flatMap(({ at, statuses }) =>
        Object.entries(statuses).map(([state, count]) => ({ at: Date.parse(at), state, count })),
      ),
      ...(look.ahead?.hours ?? []).map(({ at, executions: count }) => ({
        at: Date.parse(at),
        state: "to_come",
        count,
      })),
    ],
    [look],
  );
  const open = ({ from, until }: Chosen) => {
    const range = { from: rfc3339(from), until: rfc3339(until) };
    go([from > now.value ? "upcoming" : "runs"], range);
  };
  return (
    <>
      <TimeLine
        label="All jobs"
        marks={marks}
        from={hour - DAY}
        until={hour + DAY + HOUR}
        height={112}
        step={HOUR}
        open={open}
      />
      {look.ahead && !look.ahead.complete ? (
        <p class="hint">What is due is that of the first {look.ahead.jobs_counted.toLocaleString("en")} jobs.</p>
      ) : null}
    </>
  );
}

function Attention({ look }: { look: Look | undefined }): JSX.Element {
  const failing = look?.failing;
  const errors = look?.errors.filter((group) => !group.muted) ?? [];
  const muted = look?.errors.filter((group) => group.muted) ?? [];
  const more = failing && failing.count > failing.jobs.length;
  return (
    <Card
      title="Needs attention"
      side={more ? <a href={to(["jobs"], { failing: "yes" })}>All {failing.count.toLocaleString("en")}</a> : null}
    >
      {!look ? <Waiting lines={3} /> : null}
      {failing?.jobs.length ? (
        <List label="Failing jobs" columns={FAILING} rows={failing.jobs} keyOf={(job) => job.job_id} />
      ) : null}
      {failing && !failing.jobs.length && !look?.not_running?.count ? (
        <Empty title="No job is failing">
          {failing.muted
            ? `Without ${counted(failing.muted, "job")} whose error is muted.`
            : "No job’s last scheduled run failed."}
        </Empty>
      ) : null}
      {look?.not_running?.first.length ? (
        <>
          <h3>Not running</h3>
          <List label="Not running" columns={STOPPED} rows={look.not_running.first} keyOf={(each) => nameOf(each)} />
          {look.not_running.count > look.not_running.first.length ? (
            <p class="hint">
              <a href={to(["jobs"], { stopped: "yes" })}>All {look.not_running.count.toLocaleString("en")}</a>
            </p>
          ) : null}
        </>
      ) : null}
      {look?.open?.stuck_runs.length ? (
        <>
          <h3>Stuck runs</h3>
          <List label="Stuck runs" columns={STUCK} rows={look.open.stuck_runs} keyOf={(run) => run.execution_id} />
        </>
      ) : null}
      {errors.length ? (
        <>
          <h3>Latest errors</h3>
          <List label="Latest errors" columns={ERRORS} rows={errors} keyOf={keyOf} />
        </>
      ) : null}
      {muted.length ? (
        <details class="small">
          <summary>{counted(muted.length, "muted error")}</summary>
          <List label="Muted errors" columns={ERRORS} rows={muted} keyOf={keyOf} />
        </details>
      ) : null}
      {look?.errors.length ? (
        <p class="hint">
          <a href={to(["failures"])}>All failures</a>
        </p>
      ) : null}
    </Card>
  );
}

type Failing = Shapes["FailingJob"];

const FAILING: Column<Failing>[] = [
  {
    name: "",
    class: "wrap",
    cell: (job) => (
      <>
        <a data-row class="mono" href={to(["jobs", job.job_id])}>
          {job.job_id}
        </a>{" "}
        <span class="muted">
          <Text most={60}>{job.name}</Text>
        </span>
      </>
    ),
  },
  {
    name: "",
    cell: ({ failures_in_row: inRow }) => <State state="failed" more={inRow > 1 ? `${inRow} in a row` : undefined} />,
  },
];

type Stopped = Shapes["Stopped"];
const nameOf = (each: Stopped) => each.job_id ?? each.subscription ?? "";

const STOPPED: Column<Stopped>[] = [
  {
    name: "",
    class: "wrap",
    cell: (each) => (
      <>
        <a data-row class="mono" href={to(each.job_id ? ["jobs", each.job_id] : ["subscriptions"])}>
          {nameOf(each)}
        </a>{" "}
        <span class="muted">
          <Text most={160}>{`${each.reason.replaceAll("_", " ")}: ${each.detail}`}</Text>
        </span>
      </>
    ),
  },
  { name: "", class: "num", cell: (each) => <Time at={each.since_at} /> },
];

const STUCK: Column<Shapes["StuckRun"]>[] = [
  {
    name: "",
    cell: (run) => (
      <a data-row href={to(["runs", run.execution_id])}>
        <State state={run.status} />
      </a>
    ),
  },
  jobColumn(),
  { name: "", class: "num", cell: (run) => span(Math.max(0, (now.value - Date.parse(run.since_at)) / 1000)) },
];

const ERRORS: Column<Look["errors"][number]>[] = [
  {
    name: "",
    class: "wrap",
    cell: (group) => (
      <>
        <a data-row href={to(["runs", group.last_execution_id])}>
          <Text most={160}>{[group.error_type, group.error].filter(Boolean).join(": ") || "failed"}</Text>
        </a>{" "}
        <span class="muted mono small">{group.job_id}</span>
      </>
    ),
  },
  { name: "", class: "num", cell: (group) => `× ${group.count.toLocaleString("en")}` },
  { name: "", class: "num", cell: (group) => <Time at={group.last_at} /> },
];

function Next({ look }: { look: Look | undefined }): JSX.Element {
  const ahead = look?.ahead;
  return (
    <Card title="Next" side={ahead ? `${counted(ahead.total, "execution", !ahead.complete)} in 24 h` : null}>
      {ahead ? (
        <List
          label="Next jobs"
          columns={NEXT}
          rows={ahead.jobs}
          keyOf={(execution) => execution.job_id}
          empty={<Empty title="Nothing is due" />}
        />
      ) : (
        <Waiting lines={4} />
      )}
    </Card>
  );
}

const NEXT: Column<Shapes["JobAhead"]>[] = [
  { name: "", cell: (execution) => <Time at={execution.fire_at} /> },
  jobColumn(),
  {
    name: "",
    class: "num muted",
    cell: (execution) => {
      const left = (Date.parse(execution.fire_at) - now.value) / 1000;
      return left > 0 ? span(left) : "now";
    },
  },
];

function Hours({ past }: { past: Past | null }): JSX.Element {
  const first = Math.floor(now.value / HOUR) * HOUR - DAY + HOUR;
  const byHour = new Map((past?.hours ?? []).map((hour) => [Date.parse(hour.at), hour]));
  const hours = Array.from({ length: 24 }, (_, n) => ({ at: first + n * HOUR, hour: byHour.get(first + n * HOUR) }));
  const success: Cell[] = hours.map(({ at, hour }) => {
    const rate = hour?.success_rate ?? null;
    const text = rate === null ? "" : String(Math.floor(100 * rate));
    return { at, badness: rate === null ? null : 1 - rate, text, title: `of ${hour?.due ?? 0} due` };
  });
  const lateness: Cell[] = hours.map(({ at, hour }) => ({
    at,
    badness: hour?.started ? hour.late / hour.started : null,
    text: hour?.late ? String(hour.late) : "",
    title: `${hour?.late ?? 0} of ${hour?.started ?? 0} started over a second late`,
  }));
  return (
    <Heat
      rows={[
        { name: "Succeeded, %", cells: success },
        { name: "Started late", cells: lateness },
      ]}
    />
  );
}
