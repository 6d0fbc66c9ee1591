/** Targets that the platform holds for all tenants: what, why and by whom; an operator holds and releases. */

import type { Shapes } from "minute8-client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { api } from "../lib/session";
import { Ask, Input, Note, say } from "../ui/actions";
import { Card, Empty, Text, Time, Waiting } from "../ui/parts";
import { actions, type Column, List } from "../ui/table";

type Held = Shapes["Hold"];

export function Holds({ holds, changed }: { holds: readonly Held[] | undefined; changed: () => void }): JSX.Element {
  const [adding, add] = useState(false);
  const [releasing, release] = useState<Held>();
  return (
    <Card
      title="Held targets"
      side={
        <button type="button" onClick={() => add(true)}>
          Hold a target
        </button>
      }
    >
      {holds ? (
        <List
          label="Held targets"
          columns={columns(release)}
          rows={holds}
          keyOf={(hold) => hold.pattern}
          empty={<Empty title="No target is held">A hold stops the calls of a target across all tenants.</Empty>}
        />
      ) : (
        <Waiting lines={1} />
      )}
      {adding ? <Hold close={() => add(false)} changed={changed} /> : null}
      {releasing ? <Release hold={releasing} close={() => release(undefined)} changed={changed} /> : null}
    </Card>
  );
}

function columns(release: (hold: Held) => void): Column<Held>[] {
  return [
    {
      name: "Pattern",
      class: "wrap",
      cell: (hold) => (
        <span class="mono">
          <Text>{hold.pattern}</Text>
        </span>
      ),
    },
    { name: "Why", class: "wrap", cell: (hold) => <Text most={300}>{hold.note || "–"}</Text> },
    { name: "Since", cell: (hold) => <Time at={hold.held_at} /> },
    { name: "By", class: "clip muted", cell: (hold) => <Text>{hold.by}</Text> },
    actions((hold) => (
      <button type="button" onClick={() => release(hold)}>
        Release<span class="sr"> {hold.pattern}</span>
      </button>
    )),
  ];
}

function Hold({ close, changed }: { close: () => void; changed: () => void }): JSX.Element {
  const [pattern, setPattern] = useState("");
  const [note, setNote] = useState("");
  const act = async () => {
    await api().post("/v1/holds", { body: { pattern: pattern.trim(), note }, repeatable: true });
    say(`${pattern.trim()} is held`);
    changed();
  };
  return (
    <Ask title="Hold a target" verb="Hold" danger disabled={!pattern.trim()} act={act} close={close}>
      <p>Its executions are skipped, of all tenants, within 15 seconds. What has begun goes on.</p>
      <Input
        label="Pattern"
        hint="An ARN or host, with wildcards; * is everything."
        wide
        value={pattern}
        set={setPattern}
      />
      <Note note={note} set={setNote} hint="Why; skipped runs show it." />
    </Ask>
  );
}

function Release(props: { hold: Held; close: () => void; changed: () => void }): JSX.Element {
  const { pattern } = props.hold;
  const act = async () => {
    await api().post("/v1/holds/release", { body: { pattern }, repeatable: true });
    say(`${pattern} is released`);
    props.changed();
  };
  return (
    <Ask title="Release" verb="Release" act={act} close={props.close}>
      <p>
        Executions of <Text>{pattern}</Text> run again. Those that were skipped do not.
      </p>
    </Ask>
  );
}
