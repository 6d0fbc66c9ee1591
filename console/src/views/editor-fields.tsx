import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { BOUNDS, CALL, FOLLOWING, JOB, labelOf, PLAIN, POLICIES, ROWS, TIMINGS } from "../lib/boxes";
import { BLANK, BOXES, type Box, type Form, OF_ONE } from "../lib/definition";
import { PRESETS } from "../lib/fields";
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
const OF_AWS = "minutes hours day-of-month month day-of-week year; one of the day fields is ?.";

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
          <Boxes {...props} names={JOB} />
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
              <button key={cron} type="button" aria-pressed={form.cron.trim() === cron} onClick={() => set({ cron })}>
                {words}
              </button>
            ))}
          </div>
        ) : null}
        <div class="form">
          <Boxes {...props} names={TIMINGS[form.mode]} />
        </div>
        <Fold
          {...props}
          title="Bounds, excluded dates, spread, pace"
          names={form.mode === "schedules" ? BOUNDS.filter((name) => !OF_ONE.includes(name)) : BOUNDS}
        />
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
          <Boxes {...props} names={form.target_kind === "http" ? CALL.slice(1) : CALL} />
        </div>
      </Card>
      <Card title="Policies">
        <div class="form">
          <Boxes {...props} names={POLICIES} />
        </div>
        <Fold {...props} title="Later attempts, deadlines, what follows" names={FOLLOWING} />
      </Card>
    </>
  );
}

function Boxes({ names, ...props }: Props & { names: readonly Box[] }): JSX.Element {
  return (
    <>
      {names.map((name) => (
        <OneBox key={name} {...props} name={name} />
      ))}
    </>
  );
}

function OneBox({ name, ...props }: Props & { name: Box }): JSX.Element {
  const [label, hint, of] = labelOf(name, BOXES[name]);
  const field = { ...fieldOf(props, name), label, ...(hint ? { hint } : {}) };
  if (of) return <Choice {...props} name={name} label={label} of={of} />;
  if (name === "timezone") return <Zone {...props} />;
  if (name === "exclude_dates") return <DatesField {...field} />;
  if (name.endsWith("_calendars")) return <CalendarsField {...field} />;
  if (name === "at" || name === "anchor" || name.endsWith("_at"))
    return <When {...props} name={name} label={label} hint={hint} />;
  const isOfAws = name === "cron" && props.form.dialect === "eventbridge";
  return (
    <Line
      {...props}
      name={name}
      label={label}
      hint={isOfAws ? OF_AWS : hint}
      mono={!PLAIN.includes(name)}
      rows={ROWS[name]}
    />
  );
}

/** Fields that few jobs need: open where one of them says something, or is wrong. */
function Fold(props: Props & { title: string; names: readonly Box[] }) {
  const { form, names, problems } = props;
  const [open, setOpen] = useState(() => names.some((name) => form[name] !== BLANK[name]));
  const isOpen = open || names.some((name) => problems[name]);
  return (
    <details class="fold" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{props.title}</summary>
      {isOpen ? (
        <div class="form">
          <Boxes {...props} />
        </div>
      ) : null}
    </details>
  );
}

type LineProps = Props & { name: keyof Form; label: string; hint?: string | undefined; mono?: boolean };

function Line({
  form,
  problems,
  set,
  name,
  label,
  hint,
  mono,
  rows,
}: LineProps & { rows?: number | undefined }): JSX.Element {
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
