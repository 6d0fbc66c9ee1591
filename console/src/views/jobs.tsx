/** The list of jobs, searched, sorted and narrowed by the API, a page at a time; and the same change of many. */

import type { Shapes } from "minute8-client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Sparkline } from "../draw/sparkline";
import { type BulkVerb, manyFilterOf, VERBS } from "../lib/bulk";
import { healthOf } from "../lib/health";
import { isNarrowed, type Job, type JobFilter, type JobHealth, KINDS, ORDERS, PAGE, queryOf } from "../lib/jobs";
import { useLast, useLoad } from "../lib/load";
import { place, setQuery, to } from "../lib/router";
import { api, may } from "../lib/session";
import { span } from "../lib/time";
import { counted } from "../lib/words";
import { useSettled } from "../ui/hooks";
import { Empty, Head, Narrowing, Problem, State, Text, Time, Waiting } from "../ui/parts";
import { type Column, List } from "../ui/table";
import { FirstSteps } from "./first-steps";
import { BulkAsk, FilterAsk } from "./jobs-bulk";

type Found = ReturnType<typeof usePage>["data"];

/** The page of jobs that the address asks for. The page before stays until it has come. */
function usePage(filter: JobFilter) {
  const settled = useSettled(JSON.stringify(queryOf(filter)), 250);
  const query = JSON.parse(settled) as ReturnType<typeof queryOf>;
  const found = useLoad(`jobs ${settled}`, (signal) => api().get("/v1/jobs", { query, signal }), 15, true);
  return { ...found, data: useLast(found.data) };
}

export function Jobs(): JSX.Element {
  const filter = place.value.query as JobFilter;
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [asking, setAsking] = useState<BulkVerb>();
  const found = usePage(filter);
  const { data } = found;
  const shown = data?.jobs ?? [];
  const all = data?.matched ?? shown.length;
  const picked = shown.filter((job) => chosen.has(job.job_id));
  const toggle = (id: string) => {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    setChosen(next);
  };
  const many = asking && picked.length === shown.length ? manyFilterOf(filter, asking) : undefined;
  const narrowed = isNarrowed(filter);
  return (
    <>
      <Head title="Jobs" sub={data ? `${counted(all, "job")}${narrowed ? ` of these filters` : ""}` : " "}>
        {may("write") ? (
          <a class="button primary" href={to(["new-job"])}>
            New job
          </a>
        ) : null}
      </Head>
      <Filters filter={filter} shown={shown}>
        {may("write") && picked.length ? (
          <div class="actions">
            <span class="muted">{picked.length} chosen</span>
            {(Object.keys(VERBS) as BulkVerb[]).map((verb) => (
              <button
                key={verb}
                type="button"
                class={verb === "delete" ? "danger" : ""}
                onClick={() => setAsking(verb)}
              >
                {VERBS[verb]}
              </button>
            ))}
          </div>
        ) : null}
      </Filters>
      <Problem error={found.error} retry={found.reload} />
      {data?.corrupt.length ? <Corrupt jobs={data.corrupt} /> : null}
      {data && !all && !narrowed ? (
        <FirstSteps />
      ) : (
        <div class="card flush">
          {data ? (
            <List
              label="Jobs"
              columns={columns(chosen, toggle, shown, setChosen, data)}
              rows={shown}
              keyOf={(job) => job.job_id}
              empty={
                <Empty title="No job matches these filters">
                  <a href={to(["jobs"])}>Show all jobs</a>
                </Empty>
              }
            />
          ) : null}
          {!data && !found.error ? <Waiting lines={8} /> : null}
        </div>
      )}
      {data ? <Pages filter={filter} shown={shown.length} all={all} cursor={data.next_cursor ?? undefined} /> : null}
      {asking && many ? <FilterAsk verb={asking} filter={many} close={() => setAsking(undefined)} /> : null}
      {asking && !many ? <BulkAsk verb={asking} jobs={picked} close={() => setAsking(undefined)} /> : null}
    </>
  );
}

/** Jobs whose stored items nobody can read: they do not run until they are stored again. */
function Corrupt({ jobs }: { jobs: readonly Shapes["CorruptJob"][] }): JSX.Element {
  const first = jobs[0]?.job_id ?? "";
  return (
    <div class="problem" role="alert">
      <p>{counted(jobs.length, "job")} cannot be read and will not run. Store each anew, or delete it:</p>
      <ul>
        {jobs.map((job) => (
          <li key={job.job_id}>
            <code>{job.job_id}</code> <Text most={200}>{job.problem}</Text>
          </li>
        ))}
      </ul>
      <p>
        <code>minute8 jobs delete {first}</code>
      </p>
    </div>
  );
}

/** Change what the list is narrowed to: it then begins with its first page. */
function narrow(changes: JobFilter): void {
  setQuery({ ...changes, cursor: undefined, before: undefined } as Record<string, string | undefined>);
}

function Filters(props: { filter: JobFilter; shown: readonly Job[]; children: JSX.Element | null }): JSX.Element {
  const { filter } = props;
  const tags = [...new Set(props.shown.flatMap((job) => job.tags))].sort();
  return (
    <Narrowing label="Filter jobs" isNarrowed={isNarrowed(filter)}>
      <input
        type="search"
        placeholder="Id, name or tag"
        aria-label="Search id, name, tag"
        value={filter.search ?? ""}
        onInput={(event) => narrow({ search: event.currentTarget.value })}
      />
      <Select label="State" value={filter.state} of={["active", "paused"]} set={(state) => narrow({ state })} />
      <Select label="Failing" value={filter.failing} of={["yes"]} set={(failing) => narrow({ failing })} />
      <Select label="Not running" value={filter.stopped} of={["yes"]} set={(stopped) => narrow({ stopped })} />
      <input
        class="short"
        list="tags"
        placeholder="Tag"
        aria-label="Tag"
        value={filter.tag ?? ""}
        onInput={(event) => narrow({ tag: event.currentTarget.value })}
      />
      <datalist id="tags">
        {tags.map((tag) => (
          <option key={tag} value={tag} />
        ))}
      </datalist>
      <Select label="Target" value={filter.kind} of={KINDS} set={(kind) => narrow({ kind })} />
      <select
        aria-label="Order"
        value={filter.sort ?? "failures"}
        onChange={(event) => narrow({ sort: event.currentTarget.value })}
      >
        {Object.entries(ORDERS).map(([order, words]) => (
          <option key={order} value={order}>
            Order: {words}
          </option>
        ))}
      </select>
      {isNarrowed(filter) ? (
        <a class="button" href={to(["jobs"])}>
          Clear
        </a>
      ) : null}
      <span class="grow" />
      {props.children}
    </Narrowing>
  );
}

/** Which part of the list is shown, and the way to the others. */
function Pages(props: {
  filter: JobFilter;
  shown: number;
  all: number;
  cursor: string | undefined;
}): JSX.Element | null {
  const { filter, shown, all, cursor } = props;
  const before = Number(filter.before) || 0;
  if (!before && !cursor) return null;
  const at = (page: JobFilter) => to(["jobs"], { ...filter, ...page } as Record<string, string | undefined>);
  return (
    <div class="pages actions">
      <span class="muted">
        {(before + Math.min(1, shown)).toLocaleString("en")} to {(before + shown).toLocaleString("en")} of{" "}
        {all.toLocaleString("en")}
      </span>
      {before ? (
        <a class="button" href={at({ cursor: "", before: "" })}>
          First page
        </a>
      ) : null}
      {cursor ? (
        <a class="button" href={at({ cursor, before: String(before + shown) })}>
          Next {PAGE}
        </a>
      ) : null}
    </div>
  );
}

function columns(
  chosen: ReadonlySet<string>,
  toggle: (id: string) => void,
  shown: readonly Job[],
  choose: (ids: ReadonlySet<string>) => void,
  found: NonNullable<Found>,
): Column<Job>[] {
  const isAll = shown.length > 0 && shown.every((job) => chosen.has(job.job_id));
  const healthIn = (job: Job) => found.health?.[job.job_id];
  const choice: Column<Job> = {
    label: "Chosen",
    name: (
      <label class="choose">
        <input
          type="checkbox"
          aria-label="Choose all that are shown"
          checked={isAll}
          onChange={() => choose(isAll ? new Set() : new Set(shown.map((job) => job.job_id)))}
        />
      </label>
    ),
    cell: (job) => (
      <label class="choose">
        <input
          type="checkbox"
          aria-label={`Choose ${job.job_id}`}
          checked={chosen.has(job.job_id)}
          onChange={() => toggle(job.job_id)}
        />
      </label>
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
    { name: "State", class: "clip", cell: (job) => <HealthState job={job} found={healthIn(job)} /> },
    {
      name: "Last outcomes",
      cell: (job) => {
        const health = healthIn(job);
        return health ? <Sparkline states={healthOf(job, health).outcomes} /> : <span class="muted">–</span>;
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
        job.tags.map((tag) => (
          <span key={tag} class="tag">
            <Text>{tag}</Text>
          </span>
        )),
    },
    { name: "Target", cell: (job) => <span class="muted">{job.target.kind}</span> },
  ];
}

export function HealthState({ job, found }: { job: Job; found: JobHealth | undefined }): JSX.Element {
  const health = healthOf(job, found);
  if (health.state === "stopped") return <State state="not_running" more={found?.not_running?.replaceAll("_", " ")} />;
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
      {props.of.map((choice) => (
        <option key={choice} value={choice}>
          {choice.replaceAll("_", " ").slice(0, 40)}
        </option>
      ))}
    </select>
  );
}
