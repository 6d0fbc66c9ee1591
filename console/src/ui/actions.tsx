/** Doing things: buttons that wait, dialogs that ask first, and messages that say how it went. */

import { signal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Problem, Text } from "./parts";

interface Message {
  id: number;
  text: string;
  isBad: boolean;
}

const messages = signal<Message[]>([]);
let lastMessage = 0;

/** Say something for some seconds. */
export function say(text: string, isBad = false): void {
  const id = ++lastMessage;
  messages.value = [...messages.value.slice(-3), { id, text, isBad }];
  setTimeout(
    () => {
      messages.value = messages.value.filter((message) => message.id !== id);
    },
    isBad ? 20_000 : 6000,
  );
}

/** Say why an action that has no place of its own for it failed. */
export function sayWhy(error: unknown): void {
  say(error instanceof Error ? error.message : String(error), true);
}

export function Messages(): JSX.Element {
  return (
    <div class="messages" role="status" aria-live="polite">
      {messages.value.map((message) => (
        <div key={message.id} class={message.isBad ? "failed" : ""}>
          <Text most={400}>{message.text}</Text>
        </div>
      ))}
    </div>
  );
}

/** What `act` of a dialog returns to stay open. */
export const STAY = Symbol("stay");

/** A dialog that asks, does, and shows what went wrong. It stays open if `act` throws or returns STAY. */
export function Ask(props: {
  title: string;
  verb: string;
  danger?: boolean;
  disabled?: boolean;
  act: () => Promise<unknown>;
  close: () => void;
  children?: ComponentChildren;
}): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    const shown = dialog.current;
    shown?.showModal();
    return () => shown?.close();
  }, []);
  const act = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      if ((await props.act()) === STAY) setBusy(false);
      else props.close();
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  return (
    <dialog ref={dialog} aria-label={props.title} onCancel={props.close} onClose={props.close}>
      <form onSubmit={act}>
        <h2>{props.title}</h2>
        <div class="body">{props.children}</div>
        <Problem error={error} />
        <div class="buttons">
          <button type="button" onClick={props.close}>
            Cancel
          </button>
          <button type="submit" class={props.danger ? "danger" : "primary"} disabled={busy || props.disabled}>
            {busy ? "…" : props.verb}
          </button>
        </div>
      </form>
    </dialog>
  );
}

/** A labelled field; what is wrong with it stands beside it. */
export function Field(props: {
  label: string;
  hint?: ComponentChildren;
  problem?: string | undefined;
  children: (attributes: { id: string; "aria-invalid": boolean; "aria-describedby": string }) => JSX.Element;
  wide?: boolean;
}): JSX.Element {
  const id = useId(props.label);
  return (
    <div class={`field ${props.wide ? "wide" : ""} ${props.problem ? "wrong" : ""}`}>
      <label for={id}>{props.label}</label>
      {props.children({ id, "aria-invalid": Boolean(props.problem), "aria-describedby": `${id}-hint` })}
      <div id={`${id}-hint`} class="hint">
        {props.problem ? <span class="bad">{props.problem}</span> : props.hint}
      </div>
    </div>
  );
}

// What is written here is seldom prose, and nothing that a browser should remember.
const PLAIN = { autocomplete: "off", spellcheck: false } as const;

interface Attributes {
  type?: string;
  min?: number;
  max?: number;
  required?: boolean;
  maxLength?: number;
  class?: string;
}

/** A labelled text or number; with `rows`, of several lines. */
export function Input(
  props: Attributes & {
    label: string;
    value: string | number;
    set: (value: string) => void;
    hint?: ComponentChildren;
    problem?: string | undefined;
    wide?: boolean;
    rows?: number;
  },
): JSX.Element {
  const { label, value, set, hint, problem, wide, rows, ...more } = props;
  const onInput = (event: { currentTarget: { value: string } }) => set(event.currentTarget.value);
  return (
    <Field label={label} hint={hint} problem={problem} {...(wide ? { wide } : {})}>
      {(attributes) =>
        rows ? (
          <textarea {...attributes} {...PLAIN} rows={rows} value={value} onInput={onInput} />
        ) : (
          <input {...(more as object)} {...attributes} {...PLAIN} value={value} onInput={onInput} />
        )
      }
    </Field>
  );
}

/** Why something is done, for whoever looks at it later. */
export function Note(props: { note: string; set: (note: string) => void; hint?: string }): JSX.Element {
  return <Input label="Note" wide maxLength={500} value={props.note} set={props.set} hint={props.hint} />;
}

let lastId = 0;

function useId(label: string): string {
  const [id] = useState(() => `f${++lastId}-${label.toLowerCase().replace(/[^a-z]+/g, "-")}`);
  return id;
}
