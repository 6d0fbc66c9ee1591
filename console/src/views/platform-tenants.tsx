/** The tenants, those with failures first; what each uses, and how one is suspended. */

import type { Shapes } from "minute8-client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { to } from "../lib/router";
import { say } from "../ui/actions";
import { Card, Empty, State, Text, Time, Waiting } from "../ui/parts";

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
  const noted = shown.some((one) => one.note);
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
      ) : tenants.length ? (
        <div class="scroll">
          <table aria-label="Tenants">
            <thead>
              <tr>
                <th scope="col">Tenant</th>
                <th scope="col">State</th>
                <th scope="col" class="num">
                  Failed, 24 h
                </th>
                <th scope="col" class="num">
                  Jobs
                </th>
                <th scope="col" class="num">
                  Executions a day
                </th>
                <th scope="col">Created</th>
                {noted ? <th scope="col">Note</th> : null}
                <th scope="col" class="end">
                  <span class="sr">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {shown.map((tenant) => (
                <tr key={tenant.tenant_id}>
                  <td class="clip">
                    <a data-row class="mono" href={to(["tenants", tenant.tenant_id])}>
                      {tenant.tenant_id}
                    </a>{" "}
                    <span class="muted">
                      <Text most={40}>{tenant.name}</Text>
                    </span>
                  </td>
                  <td>
                    <State state={tenant.state} />
                  </td>
                  <td class={`num ${tenant.failures.count ? "bad" : ""}`}>
                    {tenant.failures.count ? `${tenant.failures.count}${tenant.failures.complete ? "" : "+"}` : "–"}
                  </td>
                  <Use used={tenant.usage.jobs} most={tenant.quotas.jobs} />
                  <Use used={tenant.usage.executions_per_day} most={tenant.quotas.executions_per_day} />
                  <td>
                    <Time at={tenant.created_at} />
                  </td>
                  {noted ? (
                    <td class="clip">
                      <Text>{tenant.note}</Text>
                    </td>
                  ) : null}
                  <td class="end">
                    {tenant.state === "active" ? (
                      <button type="button" class="quiet" onClick={() => suspend(tenant)}>
                        Suspend
                      </button>
                    ) : tenant.state === "suspended" ? (
                      <button
                        type="button"
                        class="quiet"
                        onClick={() => resume(tenant).catch((e: unknown) => say(String(e)))}
                      >
                        Resume
                      </button>
                    ) : null}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : (
        <Empty title="No tenants yet">Create the first one, allow it a target, and give it a key.</Empty>
      )}
    </Card>
  );
}

/** Those with most failures first, then by their ids. */
function worstFirst(tenants: readonly Tenant[]): Tenant[] {
  return [...tenants].sort(
    (one, other) => other.failures.count - one.failures.count || (one.tenant_id < other.tenant_id ? -1 : 1),
  );
}

function Use({ used, most }: { used: number; most: number }): JSX.Element {
  return (
    <td class={`num ${used >= most ? "bad" : used > 0.8 * most ? "late" : ""}`}>
      {used.toLocaleString("en")} <span class="muted">/ {most.toLocaleString("en")}</span>
    </td>
  );
}
