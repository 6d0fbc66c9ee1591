/** How planning is: the mark, how the last windows went, what could not be planned, and what the doctor finds. */

import type { Shapes } from "minute8-client";
import type { JSX } from "preact";
import { Plot } from "../draw/plot";
import type { Loaded } from "../lib/load";
import { duration } from "../lib/time";
import { Card, Figure, Problem, State, Text, Time, Waiting } from "../ui/parts";

type Planning = Shapes["PlatformPlanning"];
type PlannedWindow = Shapes["WindowPlanned"];

const SHOWN = 6;

export function PlanningCard({ found }: { found: Loaded<Planning> }): JSX.Element {
  const { data } = found;
  return (
    <Card title="Planning">
      <Problem error={found.error} retry={found.reload} />
      {data ? (
        <>
          <Findings findings={data.findings} />
          <Mark planning={data} />
          {data.windows.length > 1 ? (
            <Plot
              label="How long the planning of each window took"
              points={data.windows.map((one) => ({
                at: Date.parse(one.start_at),
                seconds: one.took_s,
                failed: one.ahead_s < 0,
              }))}
            />
          ) : null}
          {data.windows.length ? <Windows windows={data.windows.slice(0, SHOWN)} /> : null}
          {data.set_aside.length ? <SetAside found={data.set_aside} /> : null}
        </>
      ) : found.error ? null : (
        <Waiting lines={4} />
      )}
    </Card>
  );
}

function Findings({ findings }: { findings: Planning["findings"] }): JSX.Element | null {
  const problems = findings.filter((one) => one.level !== "ok");
  if (!problems.length) return null;
  return (
    <ul class="findings" aria-label="Findings">
      {problems.map((one) => (
        <li key={one.found}>
          <State state={one.level} /> <Text most={500}>{one.found}</Text>
          {one.remedy ? (
            <p class="hint">
              <Text most={500}>{one.remedy}</Text>
            </p>
          ) : null}
        </li>
      ))}
    </ul>
  );
}

function Mark({ planning }: { planning: Planning }): JSX.Element {
  const { mark, windows } = planning;
  const [last] = windows;
  const latest = windows.length ? Math.min(...windows.map((one) => one.ahead_s)) : null;
  return (
    <dl class="figures">
      <Figure
        name="Planned until"
        value={mark ? <Time at={mark.planned_until_at} /> : "–"}
        hint={mark?.divided ? `${planning.shares_left} shares are with planners` : undefined}
      />
      <Figure
        name="Behind"
        value={mark ? duration(mark.lag_s) : "–"}
        tone={mark?.lag_s ? "bad" : "good"}
        hint={mark?.ticks_missed ? `${mark.ticks_missed} ticks are missed` : "no tick is missed"}
      />
      <Figure name="Time to plan" value={last ? duration(last.took_s) : "–"} hint="the last window" />
      <Figure
        name="Ready"
        value={latest === null ? "–" : duration(Math.abs(latest))}
        tone={latest === null ? undefined : latest < 0 ? "bad" : latest < 30 ? "late" : "good"}
        hint={latest !== null && latest < 0 ? "late, at worst" : "before its window, at worst"}
      />
      <Figure
        name="Set aside"
        value={planning.set_aside.length}
        tone={planning.set_aside.length ? "bad" : "good"}
        hint="could not be planned"
      />
    </dl>
  );
}

function Windows({ windows }: { windows: readonly PlannedWindow[] }): JSX.Element {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a table that scrolls has to be reachable by keyboard
    <section class="scroll" tabIndex={0} aria-label="Windows">
      <table aria-label="Windows planned">
        <thead>
          <tr>
            <th scope="col">Window</th>
            <th scope="col" class="num">
              Took
            </th>
            <th scope="col" class="num">
              Ready
            </th>
            <th scope="col" class="num">
              Executions
            </th>
            <th scope="col" class="num">
              Missed
            </th>
            <th scope="col" class="num">
              Shares
            </th>
          </tr>
        </thead>
        <tbody>
          {windows.map((one) => (
            <tr key={one.end_at}>
              <td>
                <Time at={one.start_at} />
                {one.finished ? null : <span class="late"> not finished</span>}
              </td>
              <td class="num">{duration(one.took_s)}</td>
              <td class={`num ${one.ahead_s < 0 ? "bad" : ""}`}>
                {duration(Math.abs(one.ahead_s))} {one.ahead_s < 0 ? "late" : "before"}
              </td>
              <td class="num">{one.executions.toLocaleString("en")}</td>
              <td class={`num ${one.missed ? "late" : ""}`}>{one.missed || "–"}</td>
              <td class="num">{one.planners || "–"}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function SetAside({ found }: { found: Planning["set_aside"] }): JSX.Element {
  return (
    <>
      <h3>Set aside</h3>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a table that scrolls has to be reachable by keyboard */}
      <section class="scroll" tabIndex={0} aria-label="Set aside">
        <table aria-label="What could not be planned">
          <tbody>
            {found.map((one) => (
              <tr key={`${one.kind} ${one.name}`}>
                <td>{one.kind}</td>
                <td class="clip">
                  <Text>{one.name}</Text>
                </td>
                <td>
                  <Time at={one.start_at ?? one.seen_at} />
                </td>
                <td class="wrap">
                  <Text most={500}>{one.reason}</Text>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </>
  );
}
