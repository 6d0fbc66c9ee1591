import type { ComponentChildren, JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { BLANK, type Form } from "../lib/definition";
import { session } from "../lib/session";
import { Field, Input } from "../ui/actions";
import { Card } from "../ui/parts";
import { CalendarsField, DatesField, InstantField } from "./editor-dates";

interface Props {
  form: Form;
  problems: Record<string, string>;
  isNew: boolean;
  set: (changes: Partial<Form>) => void;
}

const ARN = "Its ARN.";
const OF_ROLE = "The ARN of the role that calls it; Minute8’s own if empty.";

/** What the address of each kind of target is called. */
const TARGETS: Record<string, [label: string, hint: string, begin?: string]> = {
  lambda: ["Function", ARN],
  http: ["URL", "http or https.", "https://"],
  sqs: ["Queue", ARN],
  sns: ["Topic", ARN],
  event_bus: ["Event bus", ARN],
  step_functions: ["State machine", ARN],
  aws_operation: ["Operation", "arn:aws:scheduler:::aws-sdk:service:operation", "arn:aws:scheduler:::aws-sdk:"],
};
const TARGET_BOXES = ["target_arn", "target_url", "target_role_arn", "target_more"] as const;

/** Expressions that people often start from; H is a minute of the job's own. */
const PRESETS: [words: string, cron: string][] = [
  ["Every 5 minutes", "*/5 * * * *"],
  ["Hourly", "H * * * *"],
  ["Daily at 09:00", "0 9 * * *"],
  ["Weekdays at 09:00", "0 9 * * 1-5"],
  ["Mondays at 09:00", "0 9 * * 1"],
  ["First of the month", "0 9 1 * *"],
];

export function EditorFields(props: Props): JSX.Element {
  const { form, set } = props;
  // What was typed for another kind of target comes back with that kind.
  const targets = useRef<Record<string, Partial<Form>>>({});
  const chooseKind = (kind: string) => {
    targets.current[form.target_kind] = Object.fromEntries(TARGET_BOXES.map((name) => [name, form[name]]));
    const [, , begin = ""] = TARGETS[kind] ?? [];
    const fresh = { target_arn: begin, target_url: begin, target_role_arn: "", target_more: "" };
    set({ target_kind: kind, ...(targets.current[kind] ?? fresh) });
  };
  return (
    <>
      <Card title="Job">
        <div class="form">
          {props.isNew ? (
            <Line {...props} name="job_id" label="Id" hint="Letters, digits, . _ -; made up if empty." mono />
          ) : null}
          <Line {...props} name="name" label="Name" hint="For people." />
          <Line {...props} name="tags" label="Tags" hint="Separated by commas." />
          <Line {...props} name="owner" label="Owner" hint="Who answers for it; failure events say so." />
          <Line {...props} name="runbook" label="Runbook" hint="The URL of what to do when it fails." />
        </div>
      </Card>
      <Card title="Schedule">
        <fieldset class="actions modes">
          <legend class="sr">Kind of schedule</legend>
          {(["cron", "every", "at", "schedules"] as const).map((mode) => (
            <label key={mode} class="check">
              <input type="radio" name="mode" checked={form.mode === mode} onChange={() => set({ mode })} />
              {{ cron: "Cron", every: "Every so long", at: "Once", schedules: "Several" }[mode]}
            </label>
          ))}
        </fieldset>
        {form.mode === "cron" && form.dialect === "" ? (
          <div class="actions presets">
            {PRESETS.map(([words, cron]) => (
              <button
                key={cron}
                type="button"
                class="quiet"
                aria-pressed={form.cron.trim() === cron}
                onClick={() => set({ cron })}
              >
                {words}
              </button>
            ))}
          </div>
        ) : null}
        <div class="form">
          {form.mode === "cron" ? (
            <>
              <Line
                {...props}
                name="cron"
                label="Cron expression"
                hint={
                  form.dialect === "eventbridge"
                    ? "minutes hours day-of-month month day-of-week year; one of the day fields is ?."
                    : "minute hour day month weekday; six fields begin with the second."
                }
                mono
              />
              <Zone {...props} />
              <Choice {...props} name="dialect" label="Read as" of={{ "": "minute8", eventbridge: "EventBridge" }} />
              <Choice
                {...props}
                name="dst"
                label="Rule for clock changes"
                of={{ "": "minute8", eventbridge: "EventBridge" }}
              />
            </>
          ) : null}
          {form.mode === "every" ? (
            <>
              <Line {...props} name="every" label="Every" hint="90m, 1h30m, or seconds." mono />
              <When {...props} name="anchor" label="Counted from" hint="An instant; now if empty." />
            </>
          ) : null}
          {form.mode === "at" ? (
            <>
              <When {...props} name="at" label="At" hint="2026-12-24T08:00:00Z, or a local time with a time zone." />
              <Zone {...props} />
            </>
          ) : null}
          {form.mode === "schedules" ? (
            <Line
              {...props}
              name="schedules"
              label="Schedules"
              hint="JSON. Each may have a payload_patch; an instant that some share fires once, with the patch of the first."
              rows={8}
              mono
            />
          ) : null}
        </div>
        <Fold {...props} title="Bounds, excluded dates, spread, pace" names={BOUNDS}>
          <When {...props} name="start_at" label="Not before" hint="An instant." />
          <When {...props} name="end_at" label="Ends" hint="An instant; it does not fire from then on." />
          <Line {...props} name="max_runs" label="Ends after so many fire times" mono />
          {form.mode === "schedules" ? null : (
            <>
              <DatesField
                {...fieldOf(props, "exclude_dates")}
                label="Not on these dates"
                hint="2026-12-24, 2026-12-25"
              />
              <Line {...props} name="exclude_weekdays" label="Not on these days of a week" hint="sat, sun" />
              <CalendarsField
                {...fieldOf(props, "exclude_calendars")}
                label="Not on the dates of these calendars"
                hint="Names, separated by commas."
              />
              <CalendarsField
                {...fieldOf(props, "include_calendars")}
                label="Only on the dates of these calendars"
                hint="Names, separated by commas."
              />
              <Choice
                {...props}
                name="on_excluded"
                label="On an excluded date"
                of={{
                  "": "leave the fire time out",
                  next: "fire on the next date",
                  previous: "fire on the date before",
                }}
              />
            </>
          )}
          <Line
            {...props}
            name="spread_s"
            label="Spread (s)"
            hint="All runs are due the same 0 to this many later."
            mono
          />
          <Line {...props} name="jitter_s" label="Jitter (s)" hint="Each run is due 0 to this many later." mono />
          <Line
            {...props}
            name="pace_per_second"
            label="Pace (executions a second)"
            hint="Shared by all jobs with the same key; none if empty."
            mono
          />
          <Line
            {...props}
            name="pace_tolerance_s"
            label="Pace: tolerance (s)"
            hint="How far the pace may delay a run; 60 if empty."
            mono
          />
          <Line {...props} name="pace_key" label="Pace: key" hint="The target if empty." mono />
        </Fold>
      </Card>
      <Card title="Target">
        <div class="form">
          <Field label="Kind" problem={props.problems.target_kind}>
            {(attributes) => (
              <select
                {...attributes}
                value={form.target_kind}
                onChange={(event) => chooseKind(event.currentTarget.value)}
              >
                {Object.keys(TARGETS).map((kind) => (
                  <option key={kind} value={kind}>
                    {kind.replaceAll("_", " ")}
                  </option>
                ))}
              </select>
            )}
          </Field>
          <Address {...props} />
          {form.target_kind === "http" ? null : (
            <Line {...props} name="target_role_arn" label="Role" hint={OF_ROLE} mono />
          )}
          <Choice
            {...props}
            name="target_envelope"
            label="What it receives"
            of={{ "": "the payload in an envelope", false: "the payload alone" }}
          />
          <Line {...props} name="timeout_s" label="Time limit (s)" hint="60 if empty." mono />
          <Line
            {...props}
            name="target_more"
            label="Other fields of the target"
            hint="JSON; docs/job.md lists those of each kind. None if empty."
            rows={3}
            mono
          />
          <Line {...props} name="payload" label="Payload" hint="JSON; texts may hold {{placeholders}}." rows={5} />
        </div>
      </Card>
      <Card title="Policies">
        <div class="form">
          <Choice
            {...props}
            name="overlap"
            label="While the previous run goes on"
            of={{ allow: "start it beside", skip: "skip the new one", queue_one: "let one wait" }}
          />
          <Choice
            {...props}
            name="catch_up"
            label="Missed fire times"
            of={{ none: "leave out", latest: "run the latest once", all: "run each of them" }}
          />
          <Line {...props} name="max_attempts" label="Attempts" hint="3 if empty." mono />
          <Line {...props} name="base_s" label="First wait (s)" hint="30 if empty." mono />
        </div>
        <Fold {...props} title="Later attempts, deadlines, what follows" names={FOLLOWING}>
          <Line {...props} name="factor" label="Each wait is longer by" hint="2 if empty." mono />
          <Line {...props} name="cap_s" label="Longest wait (s)" hint="900 if empty." mono />
          <Line {...props} name="max_age_s" label="No attempt later than (s)" hint="86,400 if empty." mono />
          <Line
            {...props}
            name="start_deadline_s"
            label="Start deadline (s)"
            hint="Skipped if it cannot start in time; none if empty."
            mono
          />
          <Line
            {...props}
            name="pause_after_failures"
            label="Pause after failures in a row"
            hint="Never if empty."
            mono
          />
          <Line {...props} name="concurrency_key" label="Concurrency: key" hint="Jobs with it share the limit." mono />
          <Line
            {...props}
            name="concurrency_limit"
            label="Concurrency: runs at a time"
            hint="No limit if empty."
            mono
          />
          <Line {...props} name="when_full" label="If as many go" hint="wait or skip; wait if empty." mono />
          <Line {...props} name="max_wait_s" label="Skip after waiting (s)" hint="3,600 if empty." mono />
          <Line {...props} name="longer_than_s" label="Alert: a run takes over (s)" hint="None if empty." mono />
          <Line {...props} name="shorter_than_s" label="Alert: a success takes under (s)" hint="None if empty." mono />
          <Line {...props} name="no_success_for_s" label="Alert: no success for (s)" hint="None if empty." mono />
          <Choice
            {...props}
            name="completion"
            label="An attempt ends with"
            of={{ answer: "the call’s answer", callback: "a callback of the target" }}
          />
          <Line {...props} name="callback_timeout_s" label="Wait for each callback (s)" hint="An hour if empty." mono />
          <Choice
            {...props}
            name="on_crash"
            label="After a crash during a call"
            of={{ retry: "call again: at least once", fail: "fail: at most once" }}
          />
          <Choice
            {...props}
            name="after_completion"
            label="After the last run"
            of={{ keep: "keep the job", delete: "delete the job" }}
          />
          <Line {...props} name="dead_letter" label="Dead-letter queue" hint="An SQS queue's ARN." mono />
        </Fold>
      </Card>
    </>
  );
}

const BOUNDS = [
  ...([
    "start_at",
    "end_at",
    "max_runs",
    "exclude_dates",
    "exclude_weekdays",
    "exclude_calendars",
    "include_calendars",
    "on_excluded",
  ] as const),
  ...(["spread_s", "jitter_s"] as const),
  ...(["pace_per_second", "pace_tolerance_s", "pace_key"] as const),
];
const FOLLOWING = [
  ...(["factor", "cap_s", "max_age_s", "start_deadline_s", "pause_after_failures"] as const),
  ...(["concurrency_key", "concurrency_limit", "when_full", "max_wait_s"] as const),
  ...(["longer_than_s", "shorter_than_s", "no_success_for_s"] as const),
  ...(["completion", "callback_timeout_s", "on_crash", "after_completion", "dead_letter"] as const),
];

/** Fields that few jobs need: open where one of them says something, or is wrong. */
function Fold(props: Props & { title: string; names: readonly (keyof Form)[]; children: ComponentChildren }) {
  const { form, names, problems } = props;
  const [open, setOpen] = useState(() => names.some((name) => form[name] !== BLANK[name]));
  const isOpen = open || names.some((name) => problems[name]);
  return (
    <details class="fold" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{props.title}</summary>
      {isOpen ? <div class="form">{props.children}</div> : null}
    </details>
  );
}

type LineProps = Props & { name: keyof Form; label: string; hint?: string; mono?: boolean };

function Line({ form, problems, set, name, label, hint, mono, rows }: LineProps & { rows?: number }): JSX.Element {
  return (
    <Input
      label={label}
      hint={hint}
      class={mono ? "mono" : ""}
      problem={problems[name]}
      value={form[name]}
      set={(value) => set({ [name]: value })}
      {...(rows ? { rows, wide: true } : {})}
    />
  );
}

function fieldOf({ form, problems, set }: Props, name: keyof Form) {
  return { problem: problems[name], value: form[name], set: (value: string) => set({ [name]: value }) };
}

/** An instant. That of a job that runs once is a local time where it has a zone. */
function When(props: LineProps): JSX.Element {
  const { name, label, hint, form } = props;
  const hasZone = form.mode !== "every" && form.timezone !== "";
  return (
    <InstantField
      {...fieldOf(props, name)}
      label={label}
      {...(hint ? { hint } : {})}
      zone={hasZone ? form.timezone : "UTC"}
      isLocal={hasZone && name === "at"}
    />
  );
}

function Choice({ form, problems, set, name, label, of }: LineProps & { of: Record<string, string> }): JSX.Element {
  return (
    <Field label={label} problem={problems[name]}>
      {(attributes) => (
        <select {...attributes} value={form[name]} onChange={(event) => set({ [name]: event.currentTarget.value })}>
          {Object.entries(of).map(([value, words]) => (
            <option key={value} value={value}>
              {words}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

/** The address of the target. The platform's allowed targets are offered, as far as they are whole. */
function Address({ form, problems, set }: Props): JSX.Element {
  const isHttp = form.target_kind === "http";
  const name = isHttp ? "target_url" : "target_arn";
  const [label, hint] = TARGETS[form.target_kind] ?? ["ARN", ARN];
  const allowed = (session.value?.tenant?.allowed_targets ?? []).filter((pattern) => !/[*?]/.test(pattern));
  const offered = allowed.filter((target) => target.startsWith("arn:") !== isHttp);
  return (
    <Field label={label} hint={hint} problem={problems[name]}>
      {(attributes) => (
        <>
          <input
            {...attributes}
            class="mono"
            autocomplete="off"
            spellcheck={false}
            list="targets"
            value={form[name]}
            onInput={(event) => set({ [name]: event.currentTarget.value })}
          />
          <datalist id="targets">
            {offered.map((target) => (
              <option key={target} value={isHttp ? `https://${target}` : target} />
            ))}
          </datalist>
        </>
      )}
    </Field>
  );
}

const ZONES = Intl.supportedValuesOf("timeZone");

function Zone(props: Props): JSX.Element {
  return (
    <Field label="Time zone" hint="UTC if empty." problem={props.problems.timezone}>
      {(attributes) => (
        <>
          <input
            {...attributes}
            list="zones"
            autocomplete="off"
            value={props.form.timezone}
            onInput={(event) => props.set({ timezone: event.currentTarget.value })}
          />
          <datalist id="zones">
            {ZONES.map((zone) => (
              <option key={zone} value={zone} />
            ))}
          </datalist>
        </>
      )}
    </Field>
  );
}
