/** How planning is: the mark, how the last windows went, what could not be planned, and what the doctor finds. */

import type { Shapes } from "minute8-client";
import type { JSX } from "preact";
import { Plot } from "../draw/plot";
import type { Loaded } from "../lib/load";
import { duration } from "../lib/time";
import { counted } from "../lib/words";
import { Card, Figure, Found, Linked, State, Text, Time } from "../ui/parts";
import { type Column, List } from "../ui/table";

type Planning = Shapes["PlatformPlanning"];

const SHOWN = 6;

export function PlanningCard({ found }: { found: Loaded<Planning> }): JSX.Element {
  return (
    <Card title="Planning">
      <Found found={found}>
        {(data) => (
          <>
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
            <List
              label="Windows planned"
              columns={WINDOWS}
              rows={data.windows.slice(0, SHOWN)}
              keyOf={(one) => one.end_at}
            />
            {data.set_aside.length ? <h3>Set aside</h3> : null}
            <List
              label="What could not be planned"
              columns={SET_ASIDE}
              rows={data.set_aside}
              keyOf={(one) => `${one.kind} ${one.name}`}
            />
          </>
        )}
      </Found>
    </Card>
  );
}

/** What is wrong with the stage, before all else; and what was looked at and found to be right. */
export function Findings({ findings }: { findings: Planning["findings"] | undefined }): JSX.Element | null {
  if (!findings) return null;
  const problems = findings.filter((one) => one.level !== "ok");
  const fine = findings.filter((one) => one.level === "ok");
  return (
    <Card title={problems.length ? "Findings" : "Nothing is wrong"}>
      <ul class="findings">
        {problems.map((one) => (
          <li key={one.found}>
            <State state={one.level} /> <Text most={500}>{one.found}</Text>
            {one.remedy ? (
              <p class="hint">
                <Linked most={500}>{one.remedy}</Linked>
              </p>
            ) : null}
          </li>
        ))}
      </ul>
      {fine.length ? (
        <details class="small">
          <summary>{counted(fine.length, "check")} found nothing wrong</summary>
          <ul>
            {fine.map((one) => (
              <li key={`${one.check} ${one.found}`}>
                <Text most={300}>{`${one.check}: ${one.found}`}</Text>
              </li>
            ))}
          </ul>
        </details>
      ) : null}
      <p class="hint">
        Alarms and planning, as of now. <code>minute8 doctor</code> checks the rest.
      </p>
    </Card>
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

const WINDOWS: Column<Shapes["WindowPlanned"]>[] = [
  {
    name: "Window",
    cell: (one) => (
      <>
        <Time at={one.start_at} />
        {one.finished ? null : <span class="late"> not finished</span>}
      </>
    ),
  },
  { name: "Took", class: "num", cell: (one) => duration(one.took_s) },
  {
    name: "Ready",
    class: "num",
    cell: (one) => (
      <span class={one.ahead_s < 0 ? "bad" : ""}>
        {duration(Math.abs(one.ahead_s))} {one.ahead_s < 0 ? "late" : "before"}
      </span>
    ),
  },
  { name: "Executions", class: "num", cell: (one) => one.executions.toLocaleString("en") },
  { name: "Missed", class: "num", cell: (one) => (one.missed ? <span class="late">{one.missed}</span> : "–") },
  { name: "Shares", class: "num", cell: (one) => one.planners || "–" },
];

const SET_ASIDE: Column<Shapes["NotPlanned"]>[] = [
  { name: "", cell: (one) => one.kind },
  { name: "", class: "clip", cell: (one) => <Text>{one.name}</Text> },
  { name: "", cell: (one) => <Time at={one.start_at ?? one.seen_at} /> },
  { name: "", class: "wrap", cell: (one) => <Text most={500}>{one.reason}</Text> },
];
