/** What is coming: a day by minute, any part of it as a list, crowded minutes with a way out, clock changes. */

import type { Shapes } from "minute8-client";
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { type Chosen, TimeLine } from "../draw/timeline";
import { type Crowded, type Execution, loadDensity, loadExecutions } from "../lib/coming";
import { refresh, useLast, useLoad } from "../lib/load";
import { place, setQuery, to } from "../lib/router";
import { api, may } from "../lib/session";
import { DAY, HOUR, MINUTE, now, rfc3339, span } from "../lib/time";
import { counted } from "../lib/words";
import { Ask, say } from "../ui/actions";
import { Card, Empty, Found, Head, More, Problem, Text, Time, Waiting } from "../ui/parts";
import { RangeFields } from "../ui/range";
import { actions, type Column, List, Some } from "../ui/table";
import { jobColumn } from "./job-column";
import { ClockChanges } from "./upcoming-clock";

export function Upcoming(): JSX.Element {
  const { from: fromText, until: untilText } = place.value.query;
  const present = Math.floor(now.value / MINUTE) * MINUTE;
  const found = useLoad(
    "density",
    (signal) => loadDensity(Math.floor(Date.now() / MINUTE) * MINUTE + DAY, signal),
    180,
    true,
  );
  const coming = found.data;
  const marks = useMemo(
    () => (coming?.minutes ?? []).map(([at, count]) => ({ at, state: "to_come", count })),
    [coming],
  );
  const from = Date.parse(fromText ?? "") || present;
  const until = Date.parse(untilText ?? "") || from + HOUR;
  const choose = (chosen: Chosen) => setQuery({ from: rfc3339(chosen.from), until: rfc3339(chosen.until) });
  return (
    <>
      <Head
        title="Upcoming"
        sub={
          coming
            ? `${counted(coming.executions, "execution", !coming.complete)} of ${counted(coming.jobs, "job", !coming.complete)} in 24 hours`
            : " "
        }
      />
      <Problem error={found.error} retry={found.reload} />
      <Card title="The next 24 hours">
        {coming ? (
          <TimeLine
            label="The next 24 hours"
            marks={marks}
            from={present}
            until={present + DAY}
            height={112}
            open={choose}
            openWords="Click a column, or drag over several, to list their executions."
          />
        ) : (
          <Waiting lines={4} />
        )}
        {coming && !coming.complete ? <PartOf jobs={coming.jobs} /> : null}
      </Card>
      <Listed from={from} until={until} isChosen={Boolean(fromText || untilText)} />
      {coming?.crowded.length ? <CrowdedMinutes crowded={coming.crowded} changed={found.reload} /> : null}
      <ClockChanges />
    </>
  );
}

function PartOf({ jobs }: { jobs: number }): JSX.Element {
  return <p class="hint">Of {jobs.toLocaleString("en")} jobs: there was no time for the others.</p>;
}

function Listed({ from, until, isChosen }: { from: number; until: number; isChosen: boolean }): JSX.Element {
  const key = `upcoming ${isChosen ? `${from} ` : ""}${until - from}`;
  const [more, setMore] = useState({ key, pages: 1 });
  const pages = more.key === key ? more.pages : 1;
  const found = useLoad(`${key} ${pages}`, (signal) => loadExecutions(from, until, pages, signal), isChosen ? 0 : 60);
  const data = useLast(found.data);
  const { from: fromText, until: untilText } = place.value.query;
  const short = until - from <= HOUR;
  return (
    <Card
      title={isChosen ? "Executions of this time" : "Executions of the next hour"}
      side={data ? `${data.executions.length.toLocaleString("en")}${data.more ? "+" : ""}` : null}
    >
      <search class="filters" aria-label="Time of executions">
        <RangeFields from={fromText} until={untilText} set={setQuery} />
        {isChosen ? (
          <button type="button" onClick={() => setQuery({ from: undefined, until: undefined })}>
            Next hour
          </button>
        ) : null}
      </search>
      <Found found={{ ...found, data }} lines={6}>
        {({ executions, more: hasMore, jobs, complete }) => (
          <>
            {complete ? null : <PartOf jobs={jobs} />}
            <List
              label="Coming executions"
              columns={executions.some(isSpread) ? [...COLUMNS, FIRE_TIME] : COLUMNS}
              rows={executions}
              keyOf={(execution) => `${execution.job_id} ${execution.fire_at}`}
              empty={<Empty title={short ? "Nothing is due in this hour" : "Nothing is due in this time"} />}
            />
            {hasMore ? (
              <>
                <p class="hint">There are more, later ones.</p>
                <More show={() => setMore({ key, pages: pages + 2 })}>Show more</More>
              </>
            ) : null}
          </>
        )}
      </Found>
    </Card>
  );
}

const COLUMNS: Column<Execution>[] = [
  { name: "Due", cell: (execution) => <Time at={execution.due_at} /> },
  jobColumn("Job"),
  {
    name: "In",
    class: "num muted",
    cell: (execution) => {
      const left = (Date.parse(execution.due_at) - now.value) / 1000;
      return left > 0 ? span(left) : "now";
    },
  },
];
const FIRE_TIME: Column<Execution> = {
  name: "Fire time",
  class: "muted",
  cell: (execution) => (isSpread(execution) ? <Time at={execution.fire_at} /> : ""),
};

function isSpread({ fire_at: fireAt, due_at: dueAt }: Execution): boolean {
  return fireAt !== dueAt;
}

type Proposed = Crowded["jobs"][number];

// So many crowded minutes are drawn at a time.
const MOST_MINUTES = 6;

/** Minutes in which many jobs are due, and what would move each of them out. */
function CrowdedMinutes(props: { crowded: readonly Crowded[]; changed: () => void }): JSX.Element {
  const [asked, ask] = useState<Proposed>();
  return (
    <Card title="Crowded minutes" side={counted(props.crowded.length, "minute")}>
      <p class="hint">Ten executions or more in a minute, and three times the average. A proposal spreads them.</p>
      <Some
        items={props.crowded}
        most={MOST_MINUTES}
        draw={(shown) =>
          shown.map((minute) => (
            <section key={minute.minute_at} aria-label={`Crowded minute ${minute.minute_at}`}>
              <h3>
                <Time at={minute.minute_at} full /> {counted(minute.executions, "execution")}
              </h3>
              <Seconds at={minute.minute_at} />
              <List
                label={`Jobs of the crowded minute ${minute.minute_at}`}
                columns={crowdedColumns(ask)}
                rows={minute.jobs}
                keyOf={(job) => job.job_id}
              />
            </section>
          ))
        }
      />
      {asked ? <Apply job={asked} close={() => ask(undefined)} changed={props.changed} /> : null}
    </Card>
  );
}

/** The seconds of a crowded minute with their jobs, once somebody asks. */
function Seconds({ at }: { at: string }): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>By second, with all jobs</summary>
      {isOpen ? <SecondsOf at={at} /> : null}
    </details>
  );
}

type Due = Shapes["DueJob"];

function SecondsOf({ at }: { at: string }): JSX.Element {
  const found = useLoad(`minute ${at}`, (signal) =>
    api().get("/v1/density/minute", { query: { minute_at: at }, signal }),
  );
  return (
    <Found found={found} lines={4}>
      {({ jobs, seconds, complete, jobs_counted, executions }) => (
        <>
          {complete ? null : <PartOf jobs={jobs_counted} />}
          {executions > jobs.length ? (
            <p class="hint">The first {jobs.length.toLocaleString("en")} are named.</p>
          ) : null}
          <Some
            items={jobs}
            draw={(shown) => (
              <List
                label={`Executions of ${at} by second`}
                columns={SECONDS}
                rows={secondsWith(seconds, jobs, shown)}
                keyOf={(second) => second.at}
              />
            )}
          />
        </>
      )}
    </Found>
  );
}

type Second = Shapes["SecondCount"];

/** The seconds of some of the jobs, with these; a second of which no job is named is always among them. Pure. */
export function secondsWith(
  seconds: readonly Second[],
  named: readonly Due[],
  shown: readonly Due[],
): (Second & { jobs: Due[] })[] {
  const known = new Set(named.map((job) => job.due_at));
  return seconds
    .map((second) => ({ ...second, jobs: shown.filter((job) => job.due_at === second.at) }))
    .filter((second) => second.jobs.length || !known.has(second.at));
}

const SECONDS: Column<Second & { jobs: Due[] }>[] = [
  { name: "Second", cell: (second) => <Time at={second.at} /> },
  { name: "Due", class: "num", cell: (second) => second.executions.toLocaleString("en") },
  {
    name: "Jobs",
    class: "wrap",
    cell: (second) =>
      second.jobs.map((job, n) => (
        <>
          {n ? ", " : ""}
          <a href={to(["jobs", job.job_id])}>
            <Text>{job.name || job.job_id}</Text>
          </a>
        </>
      )),
  },
];

function crowdedColumns(ask: (job: Proposed) => void): Column<Proposed>[] {
  return [
    {
      name: "",
      class: "wrap",
      cell: (job) => (
        <a class="mono" href={to(["jobs", job.job_id])}>
          {job.job_id}
        </a>
      ),
    },
    {
      name: "",
      class: "wrap",
      cell: (job) =>
        job.proposal ? (
          Object.entries(job.proposal).map(([name, value]) => <Text key={name}>{`${name} ${String(value)}`}</Text>)
        ) : (
          <span class="muted">no proposal</span>
        ),
    },
    actions((job) =>
      job.proposal && may("write") ? (
        <button type="button" onClick={() => ask(job)}>
          Apply<span class="sr"> to {job.job_id}</span>
        </button>
      ) : null,
    ),
  ];
}

function Apply(props: { job: Proposed; close: () => void; changed: () => void }): JSX.Element {
  const { job_id: id, proposal } = props.job;
  // A merge patch: what it does not name stays.
  const change = { path: { job_id: id }, body: { schedule: proposal } };
  const changed = useLoad(`spread ${id}`, (signal) =>
    api().patch("/v1/jobs/{job_id}", { ...change, query: { dry_run: true }, signal }),
  );
  const act = async () => {
    await api().patch("/v1/jobs/{job_id}", change);
    say(`${id} is spread`);
    props.changed();
    refresh();
  };
  return (
    <Ask title={`Spread ${id}`} verb="Apply" act={act} close={props.close}>
      <p>Only its schedule changes, and becomes:</p>
      <Found found={changed}>{(job) => <Text most={400}>{job.schedule_words}</Text>}</Found>
    </Ask>
  );
}
