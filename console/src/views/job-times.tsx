/** When a job fires next, on three clocks; and what the next clock change of its zone does to it. */

import type { JSX } from "preact";
import type { Job } from "../lib/jobs";
import { useLoad } from "../lib/load";
import { api, may } from "../lib/session";
import { absolute, BROWSER_ZONE, fromNow, local, now, rfc3339 } from "../lib/time";
import { counted } from "../lib/words";
import { around, type ClockChange, nextChange } from "../lib/zones";
import { say, sayWhy } from "../ui/actions";
import { useWidth } from "../ui/hooks";
import { Card, Empty, Found, Problem, Waiting } from "../ui/parts";
import { Scroll } from "../ui/table";

export function NextTimes({ job }: { job: Job }): JSX.Element {
  const next = useLoad(
    `next of ${job.job_id} ${job.schedule_revision} ${job.state}`,
    (signal) => api().get("/v1/jobs/{job_id}/next", { path: { job_id: job.job_id }, query: { count: 12 }, signal }),
    30,
  );
  const zone = job.schedule.timezone ?? "UTC";
  const zones = [...new Set(["UTC", zone, BROWSER_ZONE])];
  const undo = async () => {
    const path = { job_id: job.job_id };
    const { fires } = await api().delete("/v1/jobs/{job_id}/skip", { path });
    say(fires.length ? `${counted(fires.length, "skip")} undone` : "It is too late to undo that");
    next.reload();
  };
  const undoable = may("write") && next.data?.fires.some((fire) => fire.skipped);
  return (
    <Card
      title="Next times"
      side={
        undoable ? (
          <button type="button" class="quiet" onClick={() => undo().catch(sayWhy)}>
            Undo skips
          </button>
        ) : null
      }
    >
      <Found found={next}>
        {({ fires }) =>
          fires.length ? (
            <Scroll label="Next times">
              <table class="times">
                <thead>
                  <tr>
                    {zones.map((timezone) => (
                      <th key={timezone} scope="col">
                        {timezone}
                      </th>
                    ))}
                    <th scope="col" class="num">
                      in
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {fires.map((fire) => {
                    const at = Date.parse(fire.fire_at);
                    return (
                      <tr key={fire.fire_at} class={fire.skipped ? "skipped" : ""}>
                        {zones.map((timezone) => (
                          <td key={timezone}>
                            <span class="muted">{local(at, timezone).weekday}</span> {absolute(at, timezone)}
                          </td>
                        ))}
                        <td class="num muted">
                          {fire.skipped ? "skipped" : fromNow(at, now.value).replace("in ", "")}
                        </td>
                      </tr>
                    );
                  })}
                </tbody>
              </table>
            </Scroll>
          ) : (
            <Empty title="No time to come">
              {job.state === "paused" ? "The job is paused." : "The schedule has ended, or every date is excluded."}
            </Empty>
          )
        }
      </Found>
    </Card>
  );
}

export function ClockChangeCard({ job }: { job: Job }): JSX.Element | null {
  const zone = job.schedule.timezone;
  const change = zone && job.schedule.cron ? nextChange(zone, Math.floor(now.value / 86_400_000) * 86_400_000) : null;
  if (!zone || !change) return null;
  return <ClockChangePicture job={job} zone={zone} change={change} />;
}

function ClockChangePicture({ job, zone, change }: { job: Job; zone: string; change: ClockChange }): JSX.Element {
  const [from, until] = around(change);
  const body = {
    schedule: job.schedule,
    from_at: rfc3339(from),
    until_at: rfc3339(until),
    count: 100,
    job_id: job.job_id,
  };
  const preview = useLoad(`change ${job.job_id} ${job.schedule_revision} ${change.at}`, (signal) =>
    api().post("/v1/schedules/preview", { body, repeatable: true, signal }),
  );
  const effect = change.minutes > 0 ? `skips ${change.minutes} min` : `repeats ${-change.minutes} min`;
  const fires = preview.data?.fires ?? [];
  return (
    <Card
      title={`The next clock change in ${zone}`}
      side={`${absolute(change.at - 1000, zone).slice(0, 10)}: ${change.before} → ${change.after}, the clock ${effect}`}
    >
      <Problem error={preview.error} retry={preview.reload} />
      {preview.data ? (
        <>
          <Lanes
            zone={zone}
            change={change}
            fires={fires.map((fire) => Date.parse(fire.fire_at))}
            from={from}
            until={until}
          />
          <p class="hint">
            {fires.length === 100 ? "The first 100" : fires.length} fire times within 18 hours of it. Above the clock of
            the zone, below UTC.
          </p>
        </>
      ) : (
        <Waiting lines={2} />
      )}
    </Card>
  );
}

function Lanes(props: {
  zone: string;
  change: ClockChange;
  fires: number[];
  from: number;
  until: number;
}): JSX.Element {
  const [box, width] = useWidth<HTMLDivElement>();
  const { zone, change, from, until } = props;
  const x = (at: number) => ((at - from) / (until - from)) * width;
  const hours = Array.from({ length: 13 }, (_, n) => change.at + (n - 6) * 3 * 3_600_000).filter(
    (at) => at >= from && at < until,
  );
  return (
    <div ref={box}>
      <svg
        class="draw"
        viewBox={`0 0 ${width} 72`}
        height="72"
        role="img"
        aria-label={`${props.fires.length} fire times around the clock change`}
      >
        <rect x="0" y="24" width={x(change.at)} height="24" class="f-track" />
        <rect x={x(change.at)} y="24" width={width - x(change.at)} height="24" class="f-soft" />
        {hours.map((at) => (
          <g key={at}>
            <text x={x(at) + 2} y="18">
              {local(at, zone).time.slice(0, 5)}
            </text>
            <text x={x(at) + 2} y="66">
              {local(at, "UTC").time.slice(0, 5)}
            </text>
            <line x1={x(at)} x2={x(at)} y1="22" y2="50" class="s-line" />
          </g>
        ))}
        <line
          x1={x(change.at)}
          x2={x(change.at)}
          y1="4"
          y2="70"
          class="s-bad"
          stroke-width="1.5"
          stroke-dasharray="3 3"
        />
        {props.fires.map((at) => (
          <rect key={at} x={x(at) - 1.5} y="26" width="3" height="20" rx="1" class="f-accent">
            <title>{`${absolute(at, zone)} ${local(at, zone).offset} · ${absolute(at, "UTC")} UTC`}</title>
          </rect>
        ))}
      </svg>
    </div>
  );
}
