/** The last and the next 24 hours of all jobs, what needs somebody first, and lateness and success by hour. */

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { type Cell, Heat } from "../draw/heat";
import { TimeLine } from "../draw/timeline";
import { type Coming, type Execution, loadDensity, loadNext } from "../lib/coming";
import { byHour, countStates, type Expectation, type Fire, loadPast, stateOfFire } from "../lib/expected";
import { figureOf, healthOf, type Known, knownHealth, MOST_HEALTHS } from "../lib/health";
import { complete, healths, healthsKnown, type Job, jobs, jobsError, loadJobs, useJobs } from "../lib/jobs";
import { type Loaded, useLoad } from "../lib/load";
import { to } from "../lib/router";
import { may } from "../lib/session";
import { DAY, HOUR, MINUTE, now, span } from "../lib/time";
import { counted } from "../lib/words";
import { Card, Empty, Figure, Found, Head, Problem, Text, Time, Waiting } from "../ui/parts";
import { type Column, List } from "../ui/table";
import { hasFailed } from "./job-wrong";
import { HealthKnown, HealthState } from "./jobs";
import { ClockChanges } from "./overview-clock";
import { jobColumn, whyOf } from "./runs";

export function Overview(): JSX.Element {
  useJobs();
  const present = Math.floor(now.value / MINUTE) * MINUTE;
  const found = useLoad("past", loadPast, 30, true);
  const coming = useLoad("density", loadDensity, 180, true);
  const fires = found.data?.fires;
  const marks = useMemo(
    () => [
      ...(fires ?? []).map((fire) => ({ at: Date.parse(fire.fire_at), state: stateOfFire(fire) })),
      // What was to come when it was counted may be over.
      ...(coming.data?.minutes ?? [])
        .filter(([at]) => at >= present)
        .map(([at, count]) => ({ at, state: "to_come", count })),
    ],
    [fires, coming.data, present],
  );
  const all = jobs.value;
  if (complete.value && !all.length) {
    return (
      <>
        <Head title="Overview" />
        <Empty title="No jobs yet">
          {may("write") ? (
            <a href={to(["new-job"])}>Create the first one</a>
          ) : (
            "A key of the role write can create one."
          )}
        </Empty>
      </>
    );
  }
  return (
    <>
      <Head title="Overview" sub="The last 24 hours and the next." />
      <Problem error={jobsError.value} retry={loadJobs} />
      <Problem error={found.error} retry={found.reload} />
      <Problem error={coming.error} retry={coming.reload} />
      <Figures found={found.data} />
      <Card title="What was due, and what will be">
        {fires || coming.data ? (
          <TimeLine label="All jobs" marks={marks} from={present - DAY} until={present + DAY} height={112} />
        ) : (
          <Waiting lines={3} />
        )}
        {found.data && !found.data.complete ? (
          <p class="hint">
            {found.data.reading !== undefined
              ? `The past of ${counted(found.data.reading, "job")} is read. That of the others follows.`
              : "There is more than one picture holds: only the first jobs are shown."}
          </p>
        ) : null}
      </Card>
      <div class="grid">
        <Attention />
        <Next coming={coming} />
      </div>
      <ClockChanges />
      <Card title="By hour">{fires ? <Hours fires={fires} present={present} /> : <Waiting lines={2} />}</Card>
    </>
  );
}

function Figures({ found }: { found: Expectation | undefined }): JSX.Element {
  const fires = found?.fires;
  const counts = useMemo(() => countStates(fires ?? []), [fires]);
  const all = jobs.value;
  const states = all.map((job) => healthOf(job, healths.value.get(job.job_id)).state);
  const count = (state: string) => states.filter((one) => one === state).length;
  // A zero that is not known yet would be read as good news.
  const known = <T,>(is: boolean, value: T) => (is ? value : "–");
  const isWhole = complete.value;
  const ofHealth = knownHealth(healthsKnown.value, all.length);
  const ofFires: Known = found ? (found.complete ? "all" : "part") : "nothing";
  const failed = counts.get("failed") ?? 0;
  const succeeded = (fires ?? []).filter((fire) => fire.run?.status === "succeeded").length;
  // A rate of a part says nothing about the whole.
  const rate = found?.complete && succeeded + failed ? (100 * succeeded) / (succeeded + failed) : null;
  return (
    <dl class="figures">
      <Figure
        name="Jobs"
        value={known(isWhole || all.length > 0, `${all.length.toLocaleString("en")}${isWhole ? "" : "+"}`)}
        hint={known(isWhole, `${count("paused")} paused`)}
      />
      <Figure name="Failing" {...figureOf(count("failing"), ofHealth)} hint="their last run failed" />
      <Figure name="Overdue" {...figureOf(count("overdue"), ofHealth)} hint="due, and not started" />
      <Figure
        name="Succeeded, 24 h"
        value={rate === null ? "–" : `${rate.toFixed(rate > 99.9 || rate === 0 ? 0 : 1)} %`}
        tone={toneOfRate(rate)}
        hint={known(found !== undefined, `${failed.toLocaleString("en")}${found?.complete ? "" : "+"} failed`)}
      />
      <Figure name="Late, 24 h" {...figureOf(counts.get("late") ?? 0, ofFires, "late")} hint="started over 10 s late" />
      <Figure name="No record" {...figureOf(counts.get("no_record") ?? 0, ofFires)} hint="must always be 0" />
    </dl>
  );
}

function toneOfRate(rate: number | null): "late" | "good" | undefined {
  if (rate === null) return undefined;
  return rate < 95 ? "late" : "good";
}

function Attention(): JSX.Element {
  const all = jobs.value;
  const wrong = all
    .map((job) => ({ job, health: healthOf(job, healths.value.get(job.job_id)) }))
    .filter(({ health }) => health.state === "overdue" || health.state === "failing")
    .sort((one, other) => other.health.lateS - one.health.lateS || other.health.inRow - one.health.inRow);
  const isPart = all.length > MOST_HEALTHS;
  return (
    <Card title="Needs somebody" side={wrong.length > 10 ? <a href={to(["jobs"])}>All {wrong.length}</a> : null}>
      {wrong.length ? (
        <List
          label="Failing and overdue jobs"
          columns={WRONG}
          rows={wrong.slice(0, 10)}
          keyOf={({ job }) => job.job_id}
        />
      ) : healthsKnown.value ? (
        <Empty title={isPart ? "Nothing found yet that is failing or overdue" : "Nothing is failing or overdue"}>
          {isPart ? null : "No job’s last scheduled run failed."}
        </Empty>
      ) : (
        <Waiting lines={3} />
      )}
      {isPart ? <HealthKnown /> : null}
    </Card>
  );
}

const WRONG: Column<{ job: Job }>[] = [
  {
    name: "",
    class: "wrap",
    cell: ({ job }) => (
      <>
        <a data-row class="mono" href={to(["jobs", job.job_id])}>
          {job.job_id}
        </a>
        <LastError job={job} />
      </>
    ),
  },
  { name: "", cell: ({ job }) => <HealthState job={job} /> },
];

function LastError({ job }: { job: Job }): JSX.Element | null {
  const last = healths.value.get(job.job_id)?.last_run;
  if (!last || !hasFailed(last)) return null;
  return (
    <div>
      <a class="small" href={to(["runs", last.execution_id])}>
        <Text most={160}>{whyOf(last) || "failed"}</Text>
      </a>
    </div>
  );
}

// So many of the next executions.
const SHOWN = 8;

function Next({ coming }: { coming: Loaded<Coming> }): JSX.Element {
  const { data } = coming;
  const isLong = Boolean(data && (data.reading || data.pages > 1));
  const next = useLoad(`next ${isLong && !data?.reading}`, (signal) => loadNext(signal, data), isLong ? 60 : 15);
  const isPart = isLong && !data?.complete;
  const crowded = data?.crowded.slice(0, 4) ?? [];
  return (
    <Card
      title="Next"
      side={data ? `${data.executions.toLocaleString("en")}${data.complete ? "" : "+"} in 24 h` : null}
    >
      <Found found={next}>
        {(executions) => (
          <List
            label="Next executions"
            columns={NEXT}
            rows={executions.filter((one) => Date.parse(one.due_at) >= now.value).slice(0, SHOWN)}
            keyOf={(one) => `${one.job_id} ${one.fire_at}`}
            empty={<Empty title="Nothing is due in the next 24 hours" />}
          />
        )}
      </Found>
      {isPart ? <p class="hint">Of the first {data?.jobs.toLocaleString("en")} jobs.</p> : null}
      {crowded.length ? (
        <>
          <h3>Crowded minutes</h3>
          {crowded.map((minute) => (
            <p key={minute.minute_at} class="small">
              <Time at={minute.minute_at} full /> <strong>{minute.executions} executions</strong>{" "}
              {minute.jobs.map((job) => (
                <a key={job.job_id} class="tag" href={to(["jobs", job.job_id])} title={JSON.stringify(job.proposal)}>
                  {job.job_id}
                  {job.proposal ? `: ${Object.values(job.proposal).join(" ")}` : ""}
                </a>
              ))}
            </p>
          ))}
        </>
      ) : null}
    </Card>
  );
}

const NEXT: Column<Execution>[] = [
  { name: "", cell: (one) => <Time at={one.due_at} /> },
  jobColumn(),
  {
    name: "",
    class: "num muted roomy",
    cell: (one) => span(Math.max(0, (Date.parse(one.due_at) - now.value) / 1000)),
  },
];

function Hours({ fires, present }: { fires: readonly Fire[]; present: number }): JSX.Element {
  const hours = useMemo(() => byHour(fires, present - DAY + HOUR, present), [fires, present]);
  const success: Cell[] = hours.map((hour) => {
    const ended = hour.succeeded + hour.failed;
    const badness = ended ? hour.failed / ended : null;
    return {
      at: hour.from,
      badness,
      text: badness === null ? "" : String(Math.floor(100 * (1 - badness))),
      title: `${hour.succeeded} succeeded, ${hour.failed} failed`,
    };
  });
  const lateness: Cell[] = hours.map((hour) => ({
    at: hour.from,
    badness: hour.due ? Math.min(1, hour.latestS / 300) : null,
    text: hour.latestS ? span(hour.latestS).replace(" ", "") : "",
    title: `${hour.due} due, the latest by ${span(hour.latestS)}`,
  }));
  return (
    <Heat
      rows={[
        { name: "Succeeded, %", cells: success },
        { name: "Latest start", cells: lateness },
      ]}
    />
  );
}
