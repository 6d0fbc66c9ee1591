/** Past ranges of a job run again: counted first, then listed, watched and cancelled. */

import type { Shapes } from "minute8-client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Job } from "../lib/jobs";
import { type Loaded, refresh, useLoad } from "../lib/load";
import { to } from "../lib/router";
import { api, may } from "../lib/session";
import { isOpen, stateOfBackfill } from "../lib/states";
import { DAY, rfc3339 } from "../lib/time";
import { counted } from "../lib/words";
import { Ask, Input, STAY, say } from "../ui/actions";
import { Card, More, Problem, State, Time } from "../ui/parts";
import { actions, type Column, List } from "../ui/table";

export function Backfill({ job, close }: { job: Job; close: () => void }): JSX.Element {
  const [start, setStart] = useState(() => rfc3339(Date.now() - DAY));
  const [end, setEnd] = useState(() => rfc3339(Date.now()));
  const [concurrency, setConcurrency] = useState(1);
  const [count, setCount] = useState<number>();
  const path = { job_id: job.job_id };
  const body = { start_at: start, end_at: end, concurrency };
  const act = async () => {
    if (count === undefined) {
      const dry = { path, body: { ...body, dry_run: true }, repeatable: true };
      setCount((await api().post("/v1/jobs/{job_id}/backfills", dry)).total);
      return STAY;
    }
    const made = await api().post("/v1/jobs/{job_id}/backfills", { path, body });
    say(
      `${counted(made.total, "run")} of ${job.job_id} ${made.total === 1 ? "begins" : "begin"}, ${concurrency} at a time`,
    );
    refresh();
    return undefined;
  };
  const change = (set: () => void) => {
    set();
    setCount(undefined);
  };
  return (
    <Ask
      title="Run a past range"
      verb={count === undefined ? "Count" : `Run ${counted(count, "fire time")}`}
      disabled={count === 0}
      act={act}
      close={close}
    >
      <Input
        label="From"
        hint="An instant in UTC, included."
        value={start}
        set={(value) => change(() => setStart(value))}
      />
      <Input label="Until" hint="Not included." value={end} set={(value) => change(() => setEnd(value))} />
      <Input
        label="At a time"
        hint="How many of its runs run at once."
        type="number"
        min={1}
        max={100}
        value={concurrency}
        set={(value) => setConcurrency(Number(value))}
      />
      <p role="status">{count === undefined ? "They are counted first." : `That is ${counted(count, "fire time")}.`}</p>
    </Ask>
  );
}

const SHOWN = 5;

type One = Shapes["Backfill"];

const isGoing = (backfill: One) => stateOfBackfill(backfill) === "under_way";

/** A job's backfills of the last 90 days. */
export function useBackfills(id: string): Loaded<One[]> {
  const [going, setGoing] = useState(false);
  const load = async (signal: AbortSignal) => {
    const { backfills } = await api().get("/v1/jobs/{job_id}/backfills", { path: { job_id: id }, signal });
    setGoing(backfills.some(isGoing));
    return backfills;
  };
  return useLoad(`backfills ${id}`, load, going ? 3 : 30, true);
}

/** Which past ranges of a job were run again, and how far that is; nothing if there is none. */
export function Backfills({ job, found }: { job: Job; found: Loaded<One[]> }): JSX.Element | null {
  const [error, setError] = useState<unknown>();
  const [all, showAll] = useState(false);
  const backfills = found.data ?? [];
  if (!backfills.length) return <Problem error={found.error} retry={found.reload} />;
  const cancel = async (backfill: One) => {
    setError(undefined);
    const path = { job_id: job.job_id, backfill_id: backfill.backfill_id ?? "" };
    await api().post("/v1/jobs/{job_id}/backfills/{backfill_id}/cancel", { path, body: { note: "" } });
    say("The backfill is cancelled");
    found.reload();
  };
  const columns = columnsOf(job);
  if (may("write") && backfills.some(isGoing)) {
    const button = (backfill: One) => (
      <button type="button" class="danger" onClick={() => cancel(backfill).catch(setError)}>
        Cancel
        <span class="sr"> the backfill</span>
      </button>
    );
    columns.push(actions((backfill) => (isGoing(backfill) ? button(backfill) : null)));
  }
  return (
    <Card title="Backfills" side={<a href={to(["runs"], { job: job.job_id, trigger: "backfill" })}>Their runs</a>}>
      <Problem error={error} />
      <Problem error={found.error} retry={found.reload} />
      <List
        label="Backfills"
        columns={columns}
        rows={all ? backfills : backfills.slice(0, SHOWN)}
        keyOf={(backfill) => backfill.backfill_id ?? ""}
      />
      {backfills.length > SHOWN && !all ? (
        <More show={() => showAll(true)}>Show all {backfills.length.toLocaleString("en")}</More>
      ) : null}
    </Card>
  );
}

// As many as one request reads.
const MOST_RUNS = 200;

/** The state of a backfill, and what became of its runs. */
function Outcome({ job, backfill }: { job: Job; backfill: One }): JSX.Element {
  const [isEnded, setEnded] = useState(false);
  const id = backfill.backfill_id ?? "";
  const found = useLoad(
    `runs of backfill ${job.job_id} ${id} ${backfill.sent}`,
    async (signal) => {
      const range = { from_at: backfill.start_at ?? "", until_at: backfill.end_at ?? "" };
      const query = { trigger: "backfill" as const, limit: MOST_RUNS, ...range };
      const page = await api().get("/v1/jobs/{job_id}/runs", { path: { job_id: job.job_id }, query, signal });
      // Others may have run the same range.
      const runs = page.runs.filter((run) => run.execution_id.endsWith(`:b-${id}`));
      const counts = {
        failed: runs.filter((run) => run.status === "failed").length,
        open: runs.filter(isOpen).length,
        all: runs.length,
      };
      const isOld = Date.parse(backfill.created_at ?? "") < Date.now() - DAY;
      setEnded(!counts.open && (counts.all >= Math.min(backfill.total, MOST_RUNS) || isOld));
      return { ...counts, more: Boolean(page.next_cursor) };
    },
    isEnded ? 0 : 5,
  );
  const runs = found.data;
  const more = runs?.failed ? `${runs.failed.toLocaleString("en")}${runs.more ? "+" : ""} of its runs` : undefined;
  return <State state={stateOfBackfill(backfill, runs)} more={more} />;
}

function columnsOf(job: Job): Column<One>[] {
  const zone = job.schedule.timezone ?? undefined;
  return [
    { name: "State", cell: (backfill) => <Outcome job={job} backfill={backfill} /> },
    {
      name: "Enqueued",
      cell: (backfill) => (
        <>
          <progress max={backfill.total} value={backfill.sent} aria-label="Enqueued" />{" "}
          {backfill.sent.toLocaleString("en")} of {backfill.total.toLocaleString("en")}
        </>
      ),
    },
    { name: "From", cell: (backfill) => <Time at={backfill.start_at} zone={zone} /> },
    { name: "Until", cell: (backfill) => <Time at={backfill.end_at} zone={zone} /> },
    { name: "Begun", cell: (backfill) => <Time at={backfill.created_at} zone={zone} /> },
    { name: "At a time", class: "num", cell: (backfill) => backfill.concurrency },
  ];
}
