/** A past range of a job run again: counted first, then watched, and cancelled. The address names it. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Job } from "../lib/jobs";
import { useLoad } from "../lib/load";
import { go, place, to } from "../lib/router";
import { api, may } from "../lib/session";
import { DAY, rfc3339 } from "../lib/time";
import { Ask, Input, STAY, say } from "../ui/actions";
import { Card, Problem, Text, Time, Waiting } from "../ui/parts";

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
    say(`${made.total} runs of ${job.job_id} begin, ${concurrency} at a time`);
    go(["jobs", job.job_id], { backfill: made.backfill_id ?? undefined });
    return undefined;
  };
  const change = (set: () => void) => {
    set();
    setCount(undefined);
  };
  return (
    <Ask
      title="Run a past range"
      verb={count === undefined ? "Count" : `Run ${count} fire times`}
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
        hint="How many of its runs go at once."
        type="number"
        min={1}
        max={100}
        value={concurrency}
        set={(value) => setConcurrency(Number(value))}
      />
      <p role="status">{count === undefined ? "They are counted first." : `That is ${count} fire times.`}</p>
    </Ask>
  );
}

/** How far the backfill is that the address names. */
export function BackfillProgress({ id }: { id: string }): JSX.Element | null {
  const { backfill } = place.value.query;
  return backfill ? <Progress id={id} backfill={backfill} key={backfill} /> : null;
}

function Progress({ id, backfill }: { id: string; backfill: string }): JSX.Element {
  const [error, setError] = useState<unknown>();
  const [over, setOver] = useState(false);
  const path = { job_id: id, backfill_id: backfill };
  const found = useLoad(
    `backfill ${id} ${backfill}`,
    async (signal) => {
      const progress = await api().get("/v1/jobs/{job_id}/backfills/{backfill_id}", { path, signal });
      setOver(Boolean(progress.cancelled_at) || progress.sent >= progress.total);
      return progress;
    },
    over ? 0 : 2,
  );
  const cancel = async () => {
    setError(undefined);
    await api().post("/v1/jobs/{job_id}/backfills/{backfill_id}/cancel", { path, body: { note: "" } });
    say("The backfill is cancelled");
    found.reload();
  };
  const { data } = found;
  return (
    <Card
      title="Backfill"
      side={
        <>
          <a href={to(["runs"], { job: id, trigger: "backfill" })}>Its runs</a>
          <a href={to(["jobs", id])}>Close</a>
        </>
      }
    >
      <Problem error={error ?? found.error} />
      {data ? (
        <div class="actions">
          <progress max={data.total} value={data.sent} aria-label="Executions handed over" />
          <span>
            {data.sent.toLocaleString("en")} of {data.total.toLocaleString("en")} executions are handed over
            {over ? "" : `, ${data.concurrency} at a time`}
            {data.cancelled_at ? (
              <>
                ; cancelled <Time at={data.cancelled_at} />
              </>
            ) : null}
          </span>
          <span class="muted small">
            of <Text>{`${data.start_at} to ${data.end_at}`}</Text>
          </span>
          {may("write") && !over ? (
            <button type="button" class="danger" onClick={() => cancel().catch(setError)}>
              Cancel the backfill
            </button>
          ) : null}
        </div>
      ) : found.error ? null : (
        <Waiting lines={1} />
      )}
    </Card>
  );
}
