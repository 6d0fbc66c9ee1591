/** API keys: of the tenant, of a tenant as the platform sees them, and of the platform itself. */

import type { Shapes } from "minute8-client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useLoad } from "../lib/load";
import { api, may } from "../lib/session";
import { Ask, Field, say } from "../ui/actions";
import { Card, Code, Empty, Head, Problem, State, Text, Time, Waiting } from "../ui/parts";

type Key = Shapes["KeyView"];
type Role = "read" | "write" | "admin";

/** Whose keys: this tenant's, the platform's, or another tenant's by its id. */
export type Owner = { kind: "self" } | { kind: "platform" } | { kind: "tenant"; id: string };

export function Keys({ owner }: { owner: Owner }): JSX.Element {
  if (owner.kind === "self" && !may("admin")) {
    return (
      <>
        <Head title="Keys" />
        <Empty title="A key of the role admin is needed">It may list, create and revoke the tenant’s keys.</Empty>
      </>
    );
  }
  return (
    <>
      <Head title={owner.kind === "platform" ? "Operator keys" : "Keys"} />
      <KeyList owner={owner} />
    </>
  );
}

export function KeyList({ owner }: { owner: Owner }): JSX.Element {
  const [asking, setAsking] = useState(false);
  const [revoking, setRevoking] = useState<Key>();
  const [made, setMade] = useState<string>();
  const found = useLoad(`keys ${JSON.stringify(owner)}`, (signal) => list(owner, signal));
  return (
    <Card
      title="API keys"
      side={
        <button type="button" class="primary" onClick={() => setAsking(true)}>
          New key
        </button>
      }
    >
      <Problem error={found.error} retry={found.reload} />
      {made ? (
        <div class="notice">
          <p>This is the only time that the key is shown.</p>
          <Code text={made} label="new key" />
        </div>
      ) : null}
      {found.data ? (
        found.data.length ? (
          <div class="scroll">
            <table aria-label="API keys">
              <thead>
                <tr>
                  <th scope="col">Begins</th>
                  <th scope="col">Name</th>
                  <th scope="col">Role</th>
                  <th scope="col">State</th>
                  <th scope="col">Created</th>
                  <th scope="col">Expires</th>
                  <th scope="col">
                    <span class="sr">Actions</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {found.data.map((key) => (
                  <tr key={key.key_id}>
                    <td class="mono" title={key.key_id}>
                      {key.prefix}
                    </td>
                    <td class="clip">
                      <Text>{key.name}</Text>
                    </td>
                    <td>{key.role}</td>
                    <td>
                      <State state={key.state} />
                    </td>
                    <td>
                      <Time at={key.created_at} />
                    </td>
                    <td>{key.expires_at ? <Time at={key.expires_at} /> : <span class="muted">never</span>}</td>
                    <td>
                      {key.state === "active" ? (
                        <button type="button" class="quiet" onClick={() => setRevoking(key)}>
                          Revoke
                        </button>
                      ) : null}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        ) : (
          <Empty title="No keys">Create one for each program that calls the API.</Empty>
        )
      ) : (
        <Waiting />
      )}
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

function Create(props: { owner: Owner; close: () => void; made: (key: string) => void }): JSX.Element {
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("read");
  const act = async () => props.made(await create(props.owner, name, role));
  return (
    <Ask title="New key" verb="Create" act={act} close={props.close}>
      <Field label="Name" hint="What it is for." wide>
        {(attributes) => (
          <input {...attributes} maxLength={200} value={name} onInput={(event) => setName(event.currentTarget.value)} />
        )}
      </Field>
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
