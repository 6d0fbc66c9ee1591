/** Targets that the platform blocks for all tenants: what, why and by whom; an operator blocks and releases. */

import type { Shapes } from "minute8-client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { api } from "../lib/session";
import { Ask, Input, Note, say } from "../ui/actions";
import { Card, Empty, Text, Time, Waiting } from "../ui/parts";
import { actions, type Column, List } from "../ui/table";

type Blocked = Shapes["Block"];

export function Blocks({
  blocks,
  changed,
}: {
  blocks: readonly Blocked[] | undefined;
  changed: () => void;
}): JSX.Element {
  const [adding, add] = useState(false);
  const [releasing, release] = useState<Blocked>();
  return (
    <Card
      title="Blocked targets"
      side={
        <button type="button" onClick={() => add(true)}>
          Block a target
        </button>
      }
    >
      {blocks ? (
        <List
          label="Blocked targets"
          columns={columns(release)}
          rows={blocks}
          keyOf={(block) => block.pattern}
          empty={<Empty title="No target is blocked">A block stops the calls of a target across all tenants.</Empty>}
        />
      ) : (
        <Waiting lines={1} />
      )}
      {adding ? <Block close={() => add(false)} changed={changed} /> : null}
      {releasing ? <Release block={releasing} close={() => release(undefined)} changed={changed} /> : null}
    </Card>
  );
}

function columns(release: (block: Blocked) => void): Column<Blocked>[] {
  return [
    {
      name: "Pattern",
      class: "wrap",
      cell: (block) => (
        <span class="mono">
          <Text>{block.pattern}</Text>
        </span>
      ),
    },
    { name: "Why", class: "wrap", cell: (block) => <Text most={300}>{block.note || "–"}</Text> },
    { name: "Since", cell: (block) => <Time at={block.blocked_at} /> },
    { name: "By", class: "clip muted", cell: (block) => <Text>{block.by}</Text> },
    actions((block) => (
      <button type="button" onClick={() => release(block)}>
        Release<span class="sr"> {block.pattern}</span>
      </button>
    )),
  ];
}

function Block({ close, changed }: { close: () => void; changed: () => void }): JSX.Element {
  const [pattern, setPattern] = useState("");
  const [note, setNote] = useState("");
  const act = async () => {
    await api().post("/v1/blocks", { body: { pattern: pattern.trim(), note }, repeatable: true });
    say(`${pattern.trim()} is blocked`);
    changed();
  };
  return (
    <Ask title="Block a target" verb="Block" danger disabled={!pattern.trim()} act={act} close={close}>
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

function Release(props: { block: Blocked; close: () => void; changed: () => void }): JSX.Element {
  const { pattern } = props.block;
  const act = async () => {
    await api().post("/v1/blocks/release", { body: { pattern }, repeatable: true });
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
