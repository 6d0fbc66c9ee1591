/** All jobs: search at once, filters in the address, the last outcomes, and the same change of many. */

import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { Sparkline } from "../draw/sparkline";
import { type BulkVerb, manyFilterOf } from "../lib/bulk";
import { type Health, healthOf, knownHealth, MOST_HEALTHS } from "../lib/health";
import {
  complete,
  healths,
  healthsKnown,
  type Job,
  type JobFilter,
  type JobHealth,
  jobs,
  jobsError,
  loadJobs,
  useJobs,
} from "../lib/jobs";
import { place, setQuery, to } from "../lib/router";
import { may } from "../lib/session";
import { span } from "../lib/time";
import { counted } from "../lib/words";
import { Empty, Head, Problem, State, Text, Time, Waiting } from "../ui/parts";
import { type Column, Table } from "../ui/table";
import { BulkAsk, FilterAsk } from "./jobs-bulk";

/** The jobs that a filter keeps. Pure. */
export function filtered(all: readonly Job[], filter: JobFilter, stateOf: (job: Job) => Health["state"]): Job[] {
  const words = (filter.search ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  return all.filter((job) => {
    if (filter.state && job.state !== filter.state) return false;
    if (filter.tag && !job.tags.includes(filter.tag)) return false;
    if (filter.kind && job.target.kind !== filter.kind) return false;
    if (filter.health && stateOf(job) !== filter.health) return false;
    const text = `${job.job_id} ${job.name} ${job.tags.join(" ")}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

const WORST: Record<Health["state"], number> = { overdue: 0, failing: 1, unknown: 3, fine: 3, paused: 4, ended: 5 };

export function Jobs(): JSX.Element {
  useJobs();
  const filter = place.value.query as JobFilter;
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [asking, setAsking] = useState<BulkVerb>();
  const all = jobs.value;
  const known = healths.value;
  const shown = useMemo(() => {
    const states = new Map(all.map((job) => [job.job_id, healthOf(job, known.get(job.job_id)).state]));
    const stateOf = (job: Job) => states.get(job.job_id) ?? "unknown";
    return filtered(all, filter, stateOf).sort(
      (one, other) => WORST[stateOf(one)] - WORST[stateOf(other)] || (one.job_id < other.job_id ? -1 : 1),
    );
  }, [all, filter, known]);
  const tags = useMemo(() => [...new Set(all.flatMap((job) => job.tags))].sort(), [all]);
  const kinds = useMemo(() => [...new Set(all.map((job) => job.target.kind))].sort(), [all]);
  const picked = shown.filter((job) => chosen.has(job.job_id));
  const toggle = (id: string) => {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    setChosen(next);
  };
  const many = asking && picked.length === shown.length ? manyFilterOf(filter, asking) : undefined;
  const isFiltered = Object.values(filter).some(Boolean);
  return (
    <>
      <Head
        title="Jobs"
        sub={`${shown.length === all.length ? "" : `${shown.length.toLocaleString("en")} of `}${counted(all.length, "job")}${complete.value ? "" : ", and more to come"}`}
      >
        {may("write") ? (
          <a class="button primary" href={to(["new-job"])}>
            New job
          </a>
        ) : null}
      </Head>
      <search class="filters" aria-label="Filter jobs">
        <input
          type="search"
          placeholder="Search id, name, tag"
          aria-label="Search id, name, tag"
          value={filter.search ?? ""}
          onInput={(event) => setQuery({ search: event.currentTarget.value })}
        />
        <Select label="State" value={filter.state} of={["active", "paused"]} set={(state) => setQuery({ state })} />
        <Select
          label="Health"
          value={filter.health}
          of={["failing", "overdue", "fine", "paused", "ended"]}
          set={(health) => setQuery({ health })}
        />
        <Select label="Tag" value={filter.tag} of={tags} set={(tag) => setQuery({ tag })} />
        <Select label="Target" value={filter.kind} of={kinds} set={(kind) => setQuery({ kind })} />
        {isFiltered ? (
          <a class="button" href={to(["jobs"])}>
            Clear
          </a>
        ) : null}
        <span class="grow" />
        {may("write") && picked.length ? (
          <div class="actions">
            <span class="muted">{picked.length} chosen</span>
            {(["pause", "resume", "run"] as const).map((verb) => (
              <button key={verb} type="button" onClick={() => setAsking(verb)}>
                {verb === "run" ? "Run now" : verb === "pause" ? "Pause" : "Resume"}
              </button>
            ))}
          </div>
        ) : null}
      </search>
      {filter.health && knownHealth(healthsKnown.value, all.length) !== "all" ? <HealthKnown /> : null}
      <Problem error={jobsError.value} retry={loadJobs} />
      <div class="card flush">
        {shown.length ? (
          <Table
            label="Jobs"
            columns={columns(chosen, toggle, shown, setChosen)}
            rows={shown}
            keyOf={(job) => job.job_id}
          />
        ) : complete.value ? (
          isFiltered ? (
            <Empty title="No job fits these filters">
              <a href={to(["jobs"])}>Show all {all.length}</a>
            </Empty>
          ) : (
            <Empty title="No jobs yet">
              {may("write") ? (
                <a href={to(["new-job"])}>Create the first one</a>
              ) : (
                "A key of the role write can create one."
              )}
            </Empty>
          )
        ) : (
          <Waiting lines={8} />
        )}
      </div>
      {asking && many ? (
        <FilterAsk verb={asking} filter={many} close={() => setAsking(undefined)} />
      ) : asking ? (
        <BulkAsk verb={asking} jobs={picked} close={() => setAsking(undefined)} />
      ) : null}
    </>
  );
}

/** How much of the jobs' health can be known. */
export function HealthKnown(): JSX.Element {
  return (
    <p class="hint">
      {healthsKnown.value
        ? `Looked at are the first ${MOST_HEALTHS.toLocaleString("en")} jobs, and those that failed last.`
        : "The health of the jobs is being read."}{" "}
      <a href={to(["failures"])}>Failures of all jobs</a>
    </p>
  );
}

function columns(
  chosen: ReadonlySet<string>,
  toggle: (id: string) => void,
  shown: readonly Job[],
  choose: (ids: ReadonlySet<string>) => void,
): Column<Job>[] {
  const isAll = shown.length > 0 && shown.every((job) => chosen.has(job.job_id));
  const choice: Column<Job> = {
    label: "Chosen",
    name: (
      <input
        type="checkbox"
        aria-label="Choose all that are shown"
        checked={isAll}
        onChange={() => choose(isAll ? new Set() : new Set(shown.map((job) => job.job_id)))}
      />
    ),
    cell: (job) => (
      <input
        type="checkbox"
        aria-label={`Choose ${job.job_id}`}
        checked={chosen.has(job.job_id)}
        onChange={() => toggle(job.job_id)}
      />
    ),
  };
  return [
    ...(may("write") ? [choice] : []),
    {
      name: "Job",
      class: "clip",
      cell: (job) => (
        <>
          <a data-row href={to(["jobs", job.job_id])} class="mono">
            {job.job_id}
          </a>{" "}
          {job.name ? (
            <span class="muted">
              <Text most={60}>{job.name}</Text>
            </span>
          ) : null}
        </>
      ),
    },
    { name: "State", cell: (job) => <HealthState job={job} /> },
    {
      name: "Last outcomes",
      cell: (job) => {
        const found = healths.value.get(job.job_id);
        return found ? <Sparkline states={healthOf(job, found).outcomes} /> : <span class="muted">–</span>;
      },
    },
    {
      name: "Schedule",
      class: "clip",
      cell: (job) => (
        <span title={job.schedule.cron ?? undefined}>
          <Text>{job.schedule_words}</Text>
        </span>
      ),
    },
    { name: "Next", cell: (job) => <Time at={job.next_fire_at} zone={job.schedule.timezone ?? undefined} /> },
    {
      name: "Tags",
      class: "clip",
      cell: (job) =>
        job.tags.slice(0, 3).map((tag) => (
          <span key={tag} class="tag">
            {tag}
          </span>
        )),
    },
    { name: "Target", class: "spare", cell: (job) => <span class="muted">{job.target.kind}</span> },
  ];
}

export function HealthState({ job, found }: { job: Job; found?: JobHealth | undefined }): JSX.Element {
  const health = healthOf(job, found ?? healths.value.get(job.job_id));
  if (health.state === "paused" || health.state === "ended") return <State state={health.state} />;
  if (health.state === "overdue") return <State state="late" more={`by ${span(health.lateS)}`} />;
  if (health.state === "failing")
    return <State state="failed" more={health.inRow > 1 ? `${health.inRow} in a row` : undefined} />;
  return <State state={job.state} />;
}

export function Select(props: {
  label: string;
  value: string | undefined;
  of: readonly string[];
  set: (value: string) => void;
}): JSX.Element {
  return (
    <select
      aria-label={props.label}
      value={props.value ?? ""}
      onChange={(event) => props.set(event.currentTarget.value)}
    >
      <option value="">{props.label}: any</option>
      {props.of.map((one) => (
        <option key={one} value={one}>
          {one.replaceAll("_", " ").slice(0, 40)}
        </option>
      ))}
    </select>
  );
}
