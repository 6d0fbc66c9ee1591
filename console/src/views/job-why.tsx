/** Why a job is or is not due at an instant, in words. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useLoad } from "../lib/load";
import { to } from "../lib/router";
import { api } from "../lib/session";
import { Field } from "../ui/actions";
import { Card, Problem, State, Text, Time, Waiting } from "../ui/parts";

export function Why({ id, zone }: { id: string; zone: string | undefined }): JSX.Element {
  const [text, setText] = useState("");
  const [asked, ask] = useState("");
  return (
    <Card title="Why, or why not?">
      <form
        class="ask"
        onSubmit={(event) => {
          event.preventDefault();
          ask(text.trim() || new Date().toISOString().replace(/\.\d+/, ""));
        }}
      >
        <Field
          label="At"
          hint={`An instant, such as 2026-12-24T08:00:00Z, or a local time in ${zone ?? "UTC"}; now if empty.`}
        >
          {(attributes) => (
            <input {...attributes} class="mono" value={text} onInput={(event) => setText(event.currentTarget.value)} />
          )}
        </Field>
        <button type="submit">Explain</button>
      </form>
      {asked ? <Answer id={id} at={asked} zone={zone} /> : null}
    </Card>
  );
}

function Answer({ id, at, zone }: { id: string; at: string; zone: string | undefined }): JSX.Element {
  const found = useLoad(`why ${id} ${at}`, (signal) =>
    api().get("/v1/jobs/{job_id}/explain", { path: { job_id: id }, query: { at }, signal }),
  );
  const { data } = found;
  if (!data) return found.error ? <Problem error={found.error} retry={found.reload} /> : <Waiting lines={2} />;
  return (
    <div aria-live="polite">
      <p>
        <State state={data.status} /> <Time at={data.at} zone={zone} full />
      </p>
      <p>
        <Text most={1000}>{data.text}</Text>
      </p>
      {data.found.map((fire) =>
        fire.run ? (
          <p key={fire.run.execution_id}>
            <a href={to(["runs", fire.run.execution_id])}>The run</a>
          </p>
        ) : null,
      )}
      {data.next_due_at ? (
        <p class="muted">
          Due next <Time at={data.next_due_at} zone={zone} full />
        </p>
      ) : null}
    </div>
  );
}
