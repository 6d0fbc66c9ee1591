/** Secrets: values that jobs name as secret://name. No page gets a value back. */

import type { Shapes } from "minute8-client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useLoad } from "../lib/load";
import { api, may } from "../lib/session";
import { Ask, Input, say } from "../ui/actions";
import { Card, Empty, Found, Head, Text, Time } from "../ui/parts";
import { actions, type Column, List } from "../ui/table";

type Secret = Shapes["SecretView"];
type Dialog = { kind: "put"; name: string } | { kind: "delete"; name: string };

export function Secrets(): JSX.Element {
  const [dialog, setDialog] = useState<Dialog>();
  const found = useLoad("secrets", async (signal) => (await api().get("/v1/secrets", { signal })).secrets);
  const close = () => setDialog(undefined);
  return (
    <>
      <Head title="Secrets" sub="Values that jobs name as secret://name, and that nothing shows.">
        {may("write") ? (
          <button type="button" class="primary" onClick={() => setDialog({ kind: "put", name: "" })}>
            New secret
          </button>
        ) : null}
      </Head>
      <Card>
        <Found found={found}>
          {(secrets) => (
            <List
              label="Secrets"
              columns={columns(setDialog)}
              rows={secrets}
              keyOf={(secret) => secret.name}
              empty={
                <Empty title="No secrets yet">
                  Headers, URLs and payloads of jobs name one, such as <code>Bearer secret://token</code>.
                </Empty>
              }
            />
          )}
        </Found>
      </Card>
      {dialog?.kind === "put" ? <Put name={dialog.name} close={close} changed={found.reload} /> : null}
      {dialog?.kind === "delete" ? <Delete name={dialog.name} close={close} changed={found.reload} /> : null}
    </>
  );
}

function columns(ask: (dialog: Dialog) => void): Column<Secret>[] {
  return [
    { name: "Name", class: "clip mono", cell: (secret) => <Text>{secret.name}</Text> },
    { name: "Revision", class: "num", cell: (secret) => secret.revision },
    { name: "Created", cell: (secret) => <Time at={secret.created_at} /> },
    { name: "Changed", cell: (secret) => <Time at={secret.updated_at} /> },
    ...(may("write")
      ? [
          actions<Secret>(({ name }) => (
            <div class="actions">
              <button type="button" onClick={() => ask({ kind: "put", name })}>
                Replace
              </button>
              <button type="button" onClick={() => ask({ kind: "delete", name })}>
                Delete
              </button>
            </div>
          )),
        ]
      : []),
  ];
}

function Put(props: { name: string; close: () => void; changed: () => void }): JSX.Element {
  const [name, setName] = useState(props.name);
  const [value, setValue] = useState("");
  const act = async () => {
    await api().put("/v1/secrets/{name}", { path: { name }, body: { value } });
    props.changed();
    say(`${name} is stored; calls use it within a minute`);
  };
  return (
    <Ask title={props.name ? `Replace ${name}` : "New secret"} verb="Store" act={act} close={props.close}>
      {props.name ? null : <Input label="Name" wide required maxLength={64} value={name} set={setName} />}
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
}

function Delete(props: { name: string; close: () => void; changed: () => void }): JSX.Element {
  const act = async () => {
    await api().delete("/v1/secrets/{name}", { path: { name: props.name } });
    say(`${props.name} is deleted`);
    props.changed();
  };
  return (
    <Ask title="Delete this secret" verb="Delete" danger act={act} close={props.close}>
      <p>
        <Text>{props.name}</Text> can be deleted only if no job names it.
      </p>
    </Ask>
  );
}
