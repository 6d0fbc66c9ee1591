/** The tenants, those with failures first; what each uses, and how one is suspended. */

import type { Shapes } from "minute8-client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { to } from "../lib/router";
import { say } from "../ui/actions";
import { Card, Empty, State, Text, Time, Waiting } from "../ui/parts";
import { actions, type Column, List } from "../ui/table";

export type Tenant = Shapes["TenantLine"];

// Whoever is on call wants the worst, and what stands below.
const SHOWN = 10;

export function Tenants(props: {
  tenants: readonly Tenant[] | undefined;
  suspend: (tenant: Tenant) => void;
  resume: (tenant: Tenant) => Promise<void>;
}): JSX.Element {
  const { tenants, suspend, resume } = props;
  const [whole, setWhole] = useState(false);
  const all = worstFirst(tenants ?? []);
  const shown = whole ? all : all.slice(0, SHOWN);
  return (
    <Card
      title="Tenants"
      side={
        all.length > SHOWN ? (
          <button type="button" class="quiet" aria-pressed={whole} onClick={() => setWhole(!whole)}>
            All {all.length}
          </button>
        ) : null
      }
    >
      {!tenants ? (
        <Waiting lines={6} />
      ) : (
        <List
          label="Tenants"
          columns={columns(shown, suspend, resume)}
          rows={shown}
          keyOf={(tenant) => tenant.tenant_id}
          empty={<Empty title="No tenants yet">Create the first one, allow it a target, and give it a key.</Empty>}
        />
      )}
    </Card>
  );
}

type Change = (tenant: Tenant) => unknown;

function columns(
  shown: readonly Tenant[],
  suspend: Change,
  resume: (tenant: Tenant) => Promise<void>,
): Column<Tenant>[] {
  return [
    {
      name: "Tenant",
      class: "clip",
      cell: (tenant) => (
        <>
          <a data-row class="mono" href={to(["tenants", tenant.tenant_id])}>
            {tenant.tenant_id}
          </a>{" "}
          <span class="muted">
            <Text most={40}>{tenant.name}</Text>
          </span>
        </>
      ),
    },
    {
      name: "Failed, 24 h",
      class: "num",
      cell: ({ past }) => (past.failed ? <span class="bad">{past.failed}</span> : "–"),
    },
    { name: "State", cell: (tenant) => <State state={tenant.state} /> },
    { name: "Jobs", class: "num", cell: ({ usage, quotas }) => <Use used={usage.jobs} most={quotas.jobs} /> },
    {
      name: "Executions a day",
      class: "num",
      cell: ({ usage, quotas }) => <Use used={usage.executions_per_day} most={quotas.executions_per_day} />,
    },
    { name: "Created", cell: (tenant) => <Time at={tenant.created_at} /> },
    ...(shown.some((one) => one.note)
      ? [{ name: "Note", class: "clip", cell: (tenant: Tenant) => <Text>{tenant.note}</Text> }]
      : []),
    actions((tenant) =>
      tenant.state === "active" ? (
        <button type="button" class="quiet" onClick={() => suspend(tenant)}>
          Suspend
        </button>
      ) : tenant.state === "suspended" ? (
        <button type="button" class="quiet" onClick={() => resume(tenant).catch((e: unknown) => say(String(e)))}>
          Resume
        </button>
      ) : null,
    ),
  ];
}

/** Those with most failures first, then by their ids. */
function worstFirst(tenants: readonly Tenant[]): Tenant[] {
  return [...tenants].sort(
    (one, other) => other.past.failed - one.past.failed || (one.tenant_id < other.tenant_id ? -1 : 1),
  );
}

function Use({ used, most }: { used: number; most: number }): JSX.Element {
  return (
    <span class={used >= most ? "bad" : used > 0.8 * most ? "late" : ""}>
      {used.toLocaleString("en")} <span class="muted">/ {most.toLocaleString("en")}</span>
    </span>
  );
}
