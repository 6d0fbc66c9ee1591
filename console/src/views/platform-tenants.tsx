/** The tenants, those with failures first; what each uses, and how one is suspended. */

import type { Shapes } from "minute8-client";
import type { JSX } from "preact";
import { place, setQuery, to } from "../lib/router";
import { sayWhy } from "../ui/actions";
import { Card, Empty, State, Text, Waiting } from "../ui/parts";
import { actions, type Column, List } from "../ui/table";

export type Tenant = Shapes["TenantLine"];

export const TENANT_ORDERS = ["failing", "late", "load", "quota", "id"] as const;
type TenantOrder = (typeof TENANT_ORDERS)[number];

const ORDER_WORDS: Record<TenantOrder, string> = {
  failing: "most failed runs",
  late: "most late runs",
  load: "most runs",
  quota: "most used quota",
  id: "id",
};

export function Tenants(props: {
  found: Shapes["Overview"] | undefined;
  sort: TenantOrder;
  suspend: (tenant: Tenant) => void;
  resume: (tenant: Tenant) => Promise<void>;
}): JSX.Element {
  const { found, sort, suspend, resume } = props;
  const { cursor } = place.value.query;
  return (
    <Card
      title="Tenants"
      side={
        <select
          aria-label="Order"
          value={sort}
          onChange={(event) => setQuery({ sort: event.currentTarget.value, cursor: undefined })}
        >
          {TENANT_ORDERS.map((order) => (
            <option key={order} value={order}>
              Order: {ORDER_WORDS[order]}
            </option>
          ))}
        </select>
      }
    >
      {found ? (
        <>
          <List
            label="Tenants"
            columns={columns(found.tenants, suspend, resume)}
            rows={found.tenants}
            keyOf={(tenant) => tenant.tenant_id}
            empty={<Empty title="No tenants yet">Create the first one, allow it a target, and give it a key.</Empty>}
          />
          {cursor || found.next_cursor ? (
            <div class="pages actions">
              <span class="muted">
                {found.tenants.length} of {found.matched.toLocaleString("en")}
              </span>
              {cursor ? (
                <a class="button" href={to([], { sort })}>
                  First page
                </a>
              ) : null}
              {found.next_cursor ? (
                <a class="button" href={to([], { sort, cursor: found.next_cursor })}>
                  Next page
                </a>
              ) : null}
            </div>
          ) : null}
        </>
      ) : (
        <Waiting lines={6} />
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
      cell: ({ past }) => (past.failed ? <span class="bad">{past.failed.toLocaleString("en")}</span> : "–"),
    },
    { name: "Failing jobs", class: "clip", cell: ({ failing }) => <Failing failing={failing} /> },
    {
      name: "Not running",
      class: "clip small",
      cell: ({ not_running: stopped }) =>
        stopped
          ? `${stopped.count.toLocaleString("en")}${stopped.complete ? "" : "+"}: ${stopped.first
              .map((note) => `${note.job_id ?? note.subscription} (${note.reason.replaceAll("_", " ")})`)
              .join(", ")}`
          : "–",
    },
    {
      name: "Late",
      class: "num",
      cell: ({ past }) => (past.late ? <span class="late">{past.late.toLocaleString("en")}</span> : "–"),
    },
    { name: "Runs", class: "num", cell: ({ past }) => past.runs.toLocaleString("en") },
    { name: "State", cell: (tenant) => <State state={tenant.state} /> },
    { name: "Jobs", class: "num", cell: ({ usage }) => usage.jobs.toLocaleString("en") },
    { name: "Quota", class: "num", cell: (tenant) => <Share tenant={tenant} /> },
    ...(shown.some((tenant) => tenant.note)
      ? [{ name: "Note", class: "clip", cell: (tenant: Tenant) => <Text>{tenant.note}</Text> }]
      : []),
    actions((tenant) => (
      <>
        {tenant.state === "active" ? (
          <button type="button" onClick={() => suspend(tenant)}>
            Suspend
          </button>
        ) : null}
        {tenant.state === "suspended" ? (
          <button type="button" onClick={() => resume(tenant).catch(sayWhy)}>
            Resume
          </button>
        ) : null}
      </>
    )),
  ];
}

/** The jobs of a tenant that fail now, by name: as far as the API names them. */
function Failing({ failing }: { failing: Tenant["failing"] }): JSX.Element {
  if (!failing?.count) return <span class="muted">–</span>;
  const more = failing.count - failing.jobs.length;
  return (
    <span class="small">
      {failing.jobs.map((job) => (
        <code key={job.job_id} class="tag" title={`${job.failures_in_row} in a row`}>
          {job.job_id}
        </code>
      ))}
      {more > 0 ? `and ${more.toLocaleString("en")}${failing.complete ? "" : "+"} more` : null}
    </span>
  );
}

/** The larger part of its quotas that a tenant uses. */
function Share({ tenant: { usage, quotas, quota_share: share } }: { tenant: Tenant }): JSX.Element {
  const of = (used: number, most: number) => `${used.toLocaleString("en")} of ${most.toLocaleString("en")}`;
  const jobs = `jobs: ${of(usage.jobs, quotas.jobs)}`;
  const executions = `executions a day: ${of(usage.executions_per_day, quotas.executions_per_day)}`;
  return (
    <span class={toneOfShare(share)} title={`${jobs}\n${executions}`}>
      {Math.round(100 * share)} %
    </span>
  );
}

function toneOfShare(share: number): string {
  if (share >= 1) return "bad";
  return share > 0.8 ? "late" : "";
}
