/** Secrets: values that jobs name as secret://name. No page gets a value back. */

import type { Shapes } from "minute8-client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useLoad } from "../lib/load";
import { api } from "../lib/session";
import { Ask, Input, say } from "../ui/actions";
import { Text, Time } from "../ui/parts";
import { type Edit, Resource } from "../ui/resource";
import type { Column } from "../ui/table";

type Secret = Shapes["SecretView"];

const COLUMNS: Column<Secret>[] = [
  { name: "Name", class: "clip mono", cell: (secret) => <Text>{secret.name}</Text> },
  { name: "Revision", class: "num", cell: (secret) => secret.revision },
  { name: "Created", cell: (secret) => <Time at={secret.created_at} /> },
  { name: "Changed", cell: (secret) => <Time at={secret.updated_at} /> },
];

export function Secrets(): JSX.Element {
  const found = useLoad("secrets", async (signal) => (await api().get("/v1/secrets", { signal })).secrets);
  return (
    <Resource
      kind="secret"
      sub="Values that jobs name as secret://name, and that nothing shows."
      found={found}
      columns={COLUMNS}
      empty={
        <>
          Headers, URLs and payloads of jobs name one, such as <code>Bearer secret://token</code>.
        </>
      }
      verb="Replace"
      Edit={Put}
      warning="can be deleted only if no job names it."
    />
  );
}

const Put: Edit<Secret> = (props) => {
  const [name, setName] = useState(props.of?.name ?? "");
  const [value, setValue] = useState("");
  const act = async () => {
    await api().put("/v1/secrets/{name}", { path: { name }, body: { value } });
    props.changed();
    say(`${name} is stored; calls use it within a minute`);
  };
  return (
    <Ask title={props.of ? `Replace ${name}` : "New secret"} verb="Store" act={act} close={props.close}>
      {props.of ? null : <Input label="Name" wide required maxLength={64} value={name} set={setName} />}
      <Input
        label="Value"
        hint="8 characters or more. It cannot be shown again. The command takes several lines."
        wide
        required
        type="password"
        value={value}
        set={setValue}
      />
    </Ask>
  );
};
