/** The steps of one run: from its fire time to its end, each wait and each attempt with its instant and as a bar. */

import type { Shapes } from "minute8-client";
import type { JSX } from "preact";
import type { Job } from "../lib/jobs";
import { to } from "../lib/router";
import { duration } from "../lib/time";
import { Time } from "../ui/parts";
import { Scroll } from "../ui/table";

type Run = Shapes["Run"];

export interface Step {
  name: string;
  /** ms */
  from: number;
  until: number;
  tone: "wait" | "good" | "bad" | "busy";
  result: string;
}

/** The steps of a run, the first first. `present` ends what goes on. Pure. */
export function stepsOf(run: Run, present: number): Step[] {
  const steps: Step[] = [];
  let at = Date.parse(run.due_at);
  const planned = Date.parse(run.fire_at);
  if (run.trigger === "schedule" && planned < at)
    steps.push({ name: "spread, as the schedule says", from: planned, until: at, tone: "wait", result: "" });
  for (const attempt of run.attempts) {
    const from = Date.parse(attempt.started_at);
    const isOpen = !attempt.finished_at;
    const until = isOpen ? Math.max(from, present) : Date.parse(attempt.finished_at ?? "");
    const wait = (name: string, end: number) => {
      if (end > at) steps.push({ name, from: at, until: end, tone: "wait", result: "" });
      at = Math.max(at, end);
    };
    if (attempt.attempt === 1) wait("waited for its turn", at + (run.waited_s ?? 0) * 1000);
    wait(attempt.attempt === 1 ? "queued, until it was claimed" : "waited to retry", from);
    steps.push({
      name: `attempt ${attempt.attempt}: claimed, called${isOpen ? "" : ", answered"}`,
      from,
      until,
      tone: toneOf(attempt.outcome, isOpen),
      result: [attempt.outcome, attempt.error_type].filter(Boolean).join(": "),
    });
    at = until;
  }
  if (run.next_attempt_at) {
    steps.push({ name: "waits to retry", from: at, until: Date.parse(run.next_attempt_at), tone: "wait", result: "" });
  } else if (run.status === "queued") {
    steps.push({
      name: "waits for its turn",
      from: Math.min(at, present),
      until: Math.max(at, present),
      tone: "wait",
      result: run.detail ?? "",
    });
  }
  return steps;
}

function toneOf(outcome: string | null | undefined, isOpen: boolean): Step["tone"] {
  if (outcome === "failed") return "bad";
  return isOpen ? "busy" : "good";
}

/** The name of a step; for which permit or run it waited. */
function Name({ step, job }: { step: Step; job: Job | undefined }): JSX.Element {
  const key = job?.concurrency?.key;
  if (!job || !step.name.endsWith("for its turn")) return <>{step.name}</>;
  if (!key) return <>{step.name}: the run before it</>;
  return (
    <>
      {step.name}: a permit of <a href={to(["permits", key])}>{key}</a>
      {job.overlap === "queue_one" ? " and the run before it" : ""}
    </>
  );
}

/** An instant of the story that takes no time; nothing if it is not known. */
function Moment(props: { name: string; at: string | null | undefined; zone: string | undefined }): JSX.Element | null {
  if (!props.at) return null;
  return (
    <tr>
      <th scope="row">{props.name}</th>
      <td>
        <Time at={props.at} zone={props.zone} />
      </td>
    </tr>
  );
}

const CLASSES = { wait: "f-quiet", good: "f-good", bad: "f-bad", busy: "f-busy" };

export function Waterfall(props: { run: Run; job: Job | undefined; present: number }): JSX.Element | null {
  const { run, job, present } = props;
  const steps = stepsOf(run, present);
  const [first] = steps;
  if (!first) return null;
  const from = first.from;
  const zone = job?.schedule.timezone ?? undefined;
  const whole = Math.max(1, Math.max(...steps.map((step) => step.until)) - from);
  return (
    <Scroll label="Steps of this run, as a table">
      <table class="waterfall" aria-label="Steps of this run">
        <tbody>
          <Moment name="registered" at={job?.created_at} zone={zone} />
          <Moment name="planned for" at={run.trigger === "schedule" ? run.fire_at : null} zone={zone} />
          {steps.map((step) => (
            <tr key={`${step.name} ${step.from}`}>
              <th scope="row">
                <Name step={step} job={job} />
              </th>
              <td>
                <Time at={new Date(step.from).toISOString()} zone={zone} />
              </td>
              <td class="bars">
                <svg viewBox="0 0 1000 14" preserveAspectRatio="none" width="100%" height="14" aria-hidden="true">
                  <rect x="0" y="6.500" width="1000" height="1" class="f-track" />
                  <rect
                    x={Math.min(994, ((step.from - from) / whole) * 1000)}
                    y={step.tone === "wait" ? 5 : 1}
                    width={Math.max(6, ((step.until - step.from) / whole) * 1000)}
                    height={step.tone === "wait" ? 4 : 12}
                    class={CLASSES[step.tone]}
                  />
                </svg>
              </td>
              <td class="num">{duration((step.until - step.from) / 1000)}</td>
              <td class={`wrap ${step.tone === "bad" ? "bad" : "muted"}`}>{step.result}</td>
            </tr>
          ))}
          <Moment name="recorded" at={run.next_attempt_at ? null : run.finished_at} zone={zone} />
        </tbody>
      </table>
    </Scroll>
  );
}
