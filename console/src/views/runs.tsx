/** The runs of one job, or of all of them, narrowed by the API; and the same change of many. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { throughAll } from "../lib/bulk";
import { given, oneOf, type Run } from "../lib/jobs";
import { refresh, useLast, useLoad } from "../lib/load";
import { firstPages } from "../lib/pages";
import { place, setQuery, to } from "../lib/router";
import { api, may } from "../lib/session";
import { DAY, rfc3339 } from "../lib/time";
import { counted } from "../lib/words";
import { Ask, say } from "../ui/actions";
import { useSettled } from "../ui/hooks";
import { Card, Found, Head, More, Narrowing, Problem, Text, Waiting } from "../ui/parts";
import { RangeFields } from "../ui/range";
import { Select } from "./jobs";
import { RunTable, whyOf } from "./run-table";

const STATUSES = ["queued", "running", "dispatched", "succeeded", "failed", "retrying", "skipped"] as const;
const TRIGGERS = ["schedule", "manual", "retry", "backfill"] as const;
// A page of one job costs one read, one of all jobs some ten.
const PAGE = 50;

/** What the list is narrowed to, as its address says. */
interface RunFilter {
  job?: string;
  status?: string;
  trigger?: string;
  tag?: string;
  text?: string;
  from?: string;
  until?: string;
}

/** The parameters of the API's lists of runs. Pure. */
export function queryOf({ job, status, trigger, tag, from, until }: RunFilter) {
  return {
    limit: PAGE,
    ...given("status", oneOf(STATUSES, status)),
    ...given("trigger", oneOf(TRIGGERS, trigger)),
    ...given("from_at", from),
    ...given("until_at", until),
    ...(job ? {} : given("tag", tag)),
  };
}

/** Whether what a run says has these words. */
function says(run: Run, text: string): boolean {
  return whyOf(run).toLowerCase().includes(text.toLowerCase());
}

export function Runs(): JSX.Element {
  const filter = place.value.query as RunFilter;
  const settled = useSettled(JSON.stringify([queryOf(filter), filter.job ?? ""]), 300);
  const [more, setMore] = useState({ key: "", pages: 1 });
  const [asking, ask] = useState<RunsVerb>();
  const pages = more.key === settled ? more.pages : 1;
  const found = useLoad(
    `runs ${settled} ${pages}`,
    async (signal) => {
      const [query, job] = JSON.parse(settled) as [ReturnType<typeof queryOf>, string];
      const all = job
        ? api().pages("/v1/jobs/{job_id}/runs", { path: { job_id: job }, query, signal })
        : api().pages("/v1/runs", { query, signal });
      const read = await firstPages<{ runs: Run[]; next_cursor: string | null }>(all, pages);
      return { runs: read.pages.flatMap((page) => page.runs), more: read.more };
    },
    // Who has asked for older runs reads these.
    pages > 1 ? 0 : 15,
    true,
  );
  const data = useLast(found.data);
  const text = filter.text ?? "";
  const shown = (data?.runs ?? []).filter((run) => says(run, text));
  return (
    <>
      <Head title="Runs" sub={subOf(filter)}>
        {may("write") ? (
          <>
            <button type="button" onClick={() => ask("retry")}>
              Retry failed
            </button>
            <button type="button" class="danger" onClick={() => ask("cancel")}>
              Cancel waiting
            </button>
          </>
        ) : null}
      </Head>
      <Filters filter={filter} />
      <Card>
        <Found found={{ ...found, data }} lines={8}>
          {(read) => (
            <>
              {text ? (
                <p class="hint">
                  {shown.length} of the {counted(read.runs.length, "run")} that are read say “<Text>{text}</Text>”.
                </p>
              ) : null}
              <RunTable runs={shown} jobs={!filter.job} />
              {read.more ? <More show={() => setMore({ key: settled, pages: pages + 2 })}>Show older runs</More> : null}
            </>
          )}
        </Found>
      </Card>
      {asking ? <RunsAsk verb={asking} filter={filter} close={() => ask(undefined)} /> : null}
    </>
  );
}

function subOf({ job, from }: RunFilter): JSX.Element | string {
  if (!job) return from ? "of all jobs" : "of all jobs, of the last 24 hours";
  return (
    <>
      of{" "}
      <a class="mono" href={to(["jobs", job])}>
        {job}
      </a>{" "}
      <a href={to(["runs"])}>All jobs</a>
    </>
  );
}

function Filters({ filter }: { filter: RunFilter }): JSX.Element {
  const set = (changes: RunFilter) => setQuery(changes as Record<string, string | undefined>);
  const box = (name: "job" | "tag" | "text", label: string, list?: string) => (
    <input
      class="short"
      type="search"
      placeholder={label}
      aria-label={label}
      value={filter[name] ?? ""}
      {...(list ? { list } : {})}
      onInput={(event) => set({ [name]: event.currentTarget.value })}
    />
  );
  const isNarrowed = Object.values(filter).some(Boolean);
  return (
    <Narrowing label="Filter runs" isNarrowed={isNarrowed}>
      <Select label="State" value={filter.status} of={STATUSES} set={(status) => set({ status })} />
      <Select label="Trigger" value={filter.trigger} of={TRIGGERS} set={(trigger) => set({ trigger })} />
      {box("job", "Job’s id")}
      {filter.job ? null : box("tag", "Tag")}
      {box("text", "Error text")}
      <RangeFields from={filter.from} until={filter.until} set={(range) => set(range as RunFilter)} />
      {isNarrowed ? (
        <a class="button" href={to(["runs"])}>
          Clear
        </a>
      ) : null}
    </Narrowing>
  );
}

type RunsVerb = "retry" | "cancel";

/** Retry all failed runs, or cancel all that wait, of the list's filter: the API counts them first. */
function RunsAsk(props: { verb: RunsVerb; filter: RunFilter; close: () => void }): JSX.Element {
  const { verb, filter } = props;
  const [done, setDone] = useState(0);
  const [dayAgo] = useState(() => rfc3339(Date.now() - DAY));
  const range = { ...given("from_at", filter.from), ...given("until_at", filter.until) };
  const change = (more: { dry_run?: boolean; cursor?: string }, signal?: AbortSignal) => {
    const options = { repeatable: true, ...(signal ? { signal } : {}) };
    if (verb === "retry") {
      const body = { from_at: dayAgo, ...range, ...given("job_id", filter.job), ...given("tag", filter.tag), ...more };
      return api().post("/v1/runs/_all/retry", { ...options, body });
    }
    const status = filter.status === "queued" ? ("queued" as const) : ("retrying" as const);
    const body = { ...range, status, ...given("job_prefix", filter.job), ...more };
    return api().post("/v1/runs/_all/cancel", { ...options, body });
  };
  const count = useLoad(`count ${verb} ${JSON.stringify(filter)}`, (signal) =>
    throughAll((cursor) => change({ dry_run: true, ...cursor }, signal)),
  );
  const matched = count.data?.matched ?? 0;
  const act = async () => {
    const sum = await throughAll(
      (cursor) => change(cursor),
      (soFar) => setDone(soFar.done),
    ).finally(refresh);
    say(
      `${counted(sum.done, "run")} ${sum.done === 1 ? "is" : "are"} ${verb === "retry" ? "tried again" : "cancelled"}`,
    );
    const first = sum.refused[0];
    if (first) throw new Error(`${sum.refused.length} refused; ${first.id}: ${first.detail}`);
  };
  const title = verb === "retry" ? "Retry failed runs" : "Cancel runs that wait";
  const doing = verb === "retry" ? "Retry" : "Cancel the runs";
  return (
    <Ask
      title={count.data ? `${title}: ${matched.toLocaleString("en")}` : title}
      verb={done ? `${done} of ${matched}` : doing}
      danger={verb === "cancel"}
      disabled={!matched}
      act={act}
      close={props.close}
    >
      <p>
        {verb === "retry"
          ? "Each failed run of these filters gets one more attempt. Error text and trigger narrow the list only."
          : `Each run of these filters that waits ${filter.status === "queued" ? "in the queue" : "for another attempt"} is cancelled. `}
        {verb === "cancel" && filter.job ? (
          <>
            Jobs whose id begins with <code>{filter.job}</code> count.
          </>
        ) : null}
      </p>
      <Problem error={count.error} retry={count.reload} />
      {count.data || count.error ? (
        <p class="small">
          {count.data?.ids.slice(0, 5).map((id) => (
            <code key={id} class="tag">
              {id}
            </code>
          ))}
        </p>
      ) : (
        <Waiting lines={1} />
      )}
    </Ask>
  );
}
