/** How planning is: planned_until, how the last windows went, what could not be planned, and what the doctor finds. */

import type { Shapes } from "minute8-client";
import type { JSX } from "preact";
import { Plot } from "../draw/plot";
import type { Loaded } from "../lib/load";
import { duration, now, span } from "../lib/time";
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
            <Progress planning={data} />
            {data.windows.length > 1 ? (
              <Plot
                label="How long the planning of each window took"
                points={data.windows.map((window) => ({
                  at: Date.parse(window.start_at),
                  seconds: window.took_s,
                  failed: window.ahead_s < 0,
                }))}
              />
            ) : null}
            <List
              label="Windows planned"
              columns={WINDOWS}
              rows={data.windows.slice(0, SHOWN)}
              keyOf={(window) => window.end_at}
            />
            {data.set_aside.length ? <h3>Set aside</h3> : null}
            <List
              label="What could not be planned"
              columns={SET_ASIDE}
              rows={data.set_aside}
              keyOf={(held) => `${held.kind} ${held.name}`}
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
  const problems = findings.filter((finding) => finding.level !== "ok");
  const fine = findings.filter((finding) => finding.level === "ok");
  return (
    <Card title={problems.length ? "Findings" : "Nothing is wrong"}>
      <ul class="findings">
        {problems.map((finding) => (
          <li key={finding.found}>
            <State state={finding.level} /> <Text most={500}>{finding.found}</Text>
            {finding.since_at ? (
              <span class="muted">
                {" "}
                since <Time at={finding.since_at} />,{" "}
                {span(Math.max(0, now.value - Date.parse(finding.since_at)) / 1000)}
              </span>
            ) : null}
            {finding.remedy ? (
              <p class="hint">
                <Linked most={500}>{finding.remedy}</Linked>
              </p>
            ) : null}
            {finding.runbook && !finding.remedy.includes(finding.runbook) ? (
              <p class="hint">
                Runbook: <Linked>{finding.runbook}</Linked>
              </p>
            ) : null}
          </li>
        ))}
      </ul>
      {fine.length ? (
        <details class="small">
          <summary>{counted(fine.length, "check")} found nothing wrong</summary>
          <ul>
            {fine.map((finding) => (
              <li key={`${finding.check} ${finding.found}`}>
                <Text most={300}>{`${finding.check}: ${finding.found}`}</Text>
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

function Progress({ planning }: { planning: Planning }): JSX.Element {
  const { progress, windows } = planning;
  const [last] = windows;
  const latest = windows.length ? Math.min(...windows.map((window) => window.ahead_s)) : null;
  return (
    <dl class="figures">
      <Figure
        name="Planned until"
        value={progress ? <Time at={progress.planned_until_at} /> : "–"}
        hint={progress?.divided ? `${planning.shares_left} shares are with planners` : undefined}
      />
      <Figure
        name="Behind"
        value={progress ? duration(progress.lag_s) : "–"}
        tone={progress?.lag_s ? "bad" : "good"}
        hint={progress?.ticks_missed ? `${progress.ticks_missed} ticks are missed` : "no tick is missed"}
      />
      <Figure name="Time to plan" value={last ? duration(last.took_s) : "–"} hint="the last window" />
      <Figure
        name="Ready"
        value={latest === null ? "–" : duration(Math.abs(latest))}
        tone={toneOfReady(latest)}
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
    cell: (window) => (
      <>
        <Time at={window.start_at} />
        {window.finished ? null : <span class="late"> not finished</span>}
      </>
    ),
  },
  { name: "Took", class: "num", cell: (window) => duration(window.took_s) },
  {
    name: "Ready",
    class: "num",
    cell: (window) => (
      <span class={window.ahead_s < 0 ? "bad" : ""}>
        {duration(Math.abs(window.ahead_s))} {window.ahead_s < 0 ? "late" : "before"}
      </span>
    ),
  },
  { name: "Executions", class: "num", cell: (window) => window.executions.toLocaleString("en") },
  { name: "Missed", class: "num", cell: (window) => (window.missed ? <span class="late">{window.missed}</span> : "–") },
  { name: "Shares", class: "num", cell: (window) => window.planners || "–" },
];

const SET_ASIDE: Column<Shapes["NotPlanned"]>[] = [
  { name: "", cell: (held) => held.kind },
  { name: "", class: "clip", cell: (held) => <Text>{held.name}</Text> },
  { name: "", cell: (held) => <Time at={held.start_at ?? held.seen_at} /> },
  { name: "", class: "wrap", cell: (held) => <Text most={500}>{held.reason}</Text> },
];

/** How good it is that a window was ready so many seconds before it began, at worst. */
function toneOfReady(latest: number | null): string | undefined {
  if (latest === null) return undefined;
  if (latest < 0) return "bad";
  return latest < 30 ? "late" : "good";
}
