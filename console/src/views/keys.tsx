/** API keys: of the tenant, of a tenant as the platform sees them, and of the platform itself. */

import type { Shapes } from "minute8-client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useLoad } from "../lib/load";
import { api, hasRole, may } from "../lib/session";
import { Ask, Field, Input, say } from "../ui/actions";
import { Card, Code, Empty, Found, Head, State, Text, Time } from "../ui/parts";
import { actions, type Column, List } from "../ui/table";

type Key = Shapes["KeyView"];
type Role = "read" | "write" | "admin";

/** Whose keys: this tenant's, the platform's, or another tenant's by its id. */
export type Owner = { kind: "self" } | { kind: "platform" } | { kind: "tenant"; id: string };

export function Keys({ owner }: { owner: Owner }): JSX.Element {
  return (
    <>
      <Head title={owner.kind === "platform" ? "Operator keys" : "Keys"} />
      {owner.kind === "platform" || hasRole("admin") ? (
        <KeyList owner={owner} />
      ) : (
        <Empty title="A key of the role admin is needed">It may list, create and revoke the tenant’s keys.</Empty>
      )}
    </>
  );
}

export function KeyList({ owner }: { owner: Owner }): JSX.Element {
  const [asking, setAsking] = useState(false);
  const [revoking, setRevoking] = useState<Key>();
  const [made, setMade] = useState<string>();
  const mayChange = owner.kind !== "self" || may("admin");
  const found = useLoad(`keys ${JSON.stringify(owner)}`, (signal) => list(owner, signal));
  return (
    <Card
      title="API keys"
      side={
        mayChange ? (
          <button type="button" class="primary" onClick={() => setAsking(true)}>
            New key
          </button>
        ) : null
      }
    >
      {made ? (
        <div class="notice" ref={bringIntoSight}>
          <p>This is the only time that the key is shown.</p>
          <Code text={made} label="new key" />
        </div>
      ) : null}
      <Found found={found}>
        {(keys) => (
          <List
            label="API keys"
            columns={columns(mayChange ? setRevoking : undefined)}
            rows={keys}
            keyOf={(key) => key.key_id}
            empty={<Empty title="No keys">Create one for each program that calls the API.</Empty>}
          />
        )}
      </Found>
      {asking ? (
        <Create
          owner={owner}
          close={() => setAsking(false)}
          made={(key) => {
            setMade(key);
            found.reload();
          }}
        />
      ) : null}
      {revoking ? (
        <Ask
          title="Revoke this key"
          verb="Revoke"
          danger
          close={() => setRevoking(undefined)}
          act={async () => {
            await revoke(owner, revoking.key_id);
            found.reload();
            say("The key is refused within a minute");
          }}
        >
          <p>
            <code>{revoking.prefix}…</code> <Text>{revoking.name}</Text> is refused within a minute, for good.
          </p>
        </Ask>
      ) : null}
    </Card>
  );
}

// A key that is shown once may stand far below its dialog.
const bringIntoSight = (box: HTMLElement | null) => box?.scrollIntoView({ block: "nearest" });

function columns(revoke: ((key: Key) => void) | undefined): Column<Key>[] {
  return [
    { name: "Begins", class: "mono", cell: (key) => <span title={key.key_id}>{key.prefix}</span> },
    { name: "Name", class: "clip", cell: (key) => <Text>{key.name}</Text> },
    { name: "Role", cell: (key) => key.role },
    { name: "State", cell: (key) => <State state={key.state} /> },
    { name: "Created", cell: (key) => <Time at={key.created_at} /> },
    {
      name: "Expires",
      cell: (key) => (key.expires_at ? <Time at={key.expires_at} /> : <span class="muted">never</span>),
    },
    actions((key) =>
      revoke && key.state === "active" ? (
        <button type="button" onClick={() => revoke(key)}>
          Revoke
        </button>
      ) : null,
    ),
  ];
}

function Create(props: { owner: Owner; close: () => void; made: (key: string) => void }): JSX.Element {
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("read");
  const act = async () => props.made(await create(props.owner, name, role));
  return (
    <Ask title="New key" verb="Create" act={act} close={props.close}>
      <Input label="Name" hint="What it is for." wide maxLength={200} value={name} set={setName} />
      {props.owner.kind === "platform" ? null : (
        <Field label="Role" hint="read looks; write changes jobs too; admin manages keys too." wide>
          {(attributes) => (
            <select {...attributes} value={role} onChange={(event) => setRole(event.currentTarget.value as Role)}>
              <option>read</option>
              <option>write</option>
              <option>admin</option>
            </select>
          )}
        </Field>
      )}
    </Ask>
  );
}

async function list(owner: Owner, signal: AbortSignal): Promise<Key[]> {
  const query = { limit: 200 };
  if (owner.kind === "self") return (await api().get("/v1/keys", { query, signal })).keys;
  if (owner.kind === "platform") return (await api().get("/v1/operator-keys", { query, signal })).keys;
  return (await api().get("/v1/tenants/{tenant_id}/keys", { path: { tenant_id: owner.id }, query, signal })).keys;
}

async function create(owner: Owner, name: string, role: Role): Promise<string> {
  if (owner.kind === "self") return (await api().post("/v1/keys", { body: { name, role } })).key;
  if (owner.kind === "platform") return (await api().post("/v1/operator-keys", { body: { name } })).key;
  const path = { tenant_id: owner.id };
  return (await api().post("/v1/tenants/{tenant_id}/keys", { path, body: { name, role } })).key;
}

async function revoke(owner: Owner, id: string): Promise<void> {
  if (owner.kind === "self") await api().delete("/v1/keys/{key_id}", { path: { key_id: id } });
  else if (owner.kind === "platform") await api().delete("/v1/operator-keys/{key_id}", { path: { key_id: id } });
  else await api().delete("/v1/tenants/{tenant_id}/keys/{key_id}", { path: { tenant_id: owner.id, key_id: id } });
}
