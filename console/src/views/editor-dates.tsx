/** Fields of instants, dates and calendars: written as text, or chosen. */

import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { useLoad } from "../lib/load";
import { partsOf, toggled } from "../lib/months";
import { api } from "../lib/session";
import { instantOf, localField, rfc3339 } from "../lib/time";
import { Field, Input } from "../ui/actions";
import { Months } from "../ui/months";

interface Props {
  label: string;
  hint?: string;
  problem?: string | undefined;
  value: string;
  set: (value: string) => void;
}

/** An instant, chosen on the clock of a zone; with `isLocal` it is stored as that clock's own time. */
export function InstantField(props: Props & { zone: string; isLocal?: boolean }): JSX.Element {
  const { label, hint, problem, value, set, zone } = props;
  const picker = useRef<HTMLInputElement>(null);
  const at = Date.parse(value);
  const choose = (text: string) => {
    const chosen = instantOf(text, zone);
    if (!Number.isNaN(chosen)) set(props.isLocal ? `${text}:00` : rfc3339(chosen));
  };
  return (
    <Field label={label} hint={hint} problem={problem}>
      {(attributes) => (
        <div class="pick">
          <input
            {...attributes}
            class="mono"
            autocomplete="off"
            value={value}
            onInput={(event) => set(event.currentTarget.value)}
          />
          <button
            type="button"
            class="quiet"
            aria-label={`Choose, in ${zone}: ${label}`}
            onClick={() => picker.current?.showPicker()}
          >
            ▾
          </button>
          <input
            ref={picker}
            type="datetime-local"
            class="picker"
            tabIndex={-1}
            aria-hidden="true"
            value={Number.isNaN(at) ? "" : localField(at, zone)}
            onChange={(event) => choose(event.currentTarget.value)}
          />
        </div>
      )}
    </Field>
  );
}

/** Dates, written as a list or chosen in a month. */
export function DatesField(props: Props): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const dates = partsOf(props.value);
  return (
    <div class="field">
      <Input {...props} class="mono" />
      <button type="button" class="quiet" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {isOpen ? "Close the month" : "Choose in a month"}
      </button>
      {isOpen ? (
        <Months
          label={props.label}
          chosen={dates}
          toggle={(date) => props.set(toggled(partsOf(props.value), date).join(", "))}
        />
      ) : null}
    </div>
  );
}

/** Names of calendars, written as a list or chosen from those that the tenant has. */
export function CalendarsField(props: Props): JSX.Element {
  const found = useLoad("names of calendars", async (signal) => {
    const page = await api().get("/v1/calendars", { query: { limit: 50 }, signal });
    return page.calendars.map(({ name }) => name);
  });
  const chosen = partsOf(props.value);
  return (
    <div class="field">
      <Input {...props} class="mono" />
      {(found.data ?? []).map((name) => (
        <button
          key={name}
          type="button"
          class="quiet"
          aria-pressed={chosen.includes(name)}
          onClick={() => props.set(toggled(chosen, name).join(", "))}
        >
          {name}
        </button>
      ))}
    </div>
  );
}
