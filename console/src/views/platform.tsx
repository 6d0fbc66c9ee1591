/** The platform: its tenants, what each uses, and how one is made or suspended. */

import type { Shapes } from "minute8-client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { TimeLine } from "../draw/timeline";
import { added } from "../lib/coming";
import { useLoad } from "../lib/load";
import { go, to } from "../lib/router";
import { api } from "../lib/session";
import { HOUR, MINUTE, now, rfc3339 } from "../lib/time";
import { Ask, Field, say } from "../ui/actions";
import { Card, Empty, Figure, Head, Problem, State, Text, Time, Waiting } from "../ui/parts";

type Tenant = Shapes["TenantSummary"];
type View = Shapes["TenantView"];

// What each uses is one request a tenant.
const DETAILED = 60;

export function Platform(): JSX.Element {
  const [creating, setCreating] = useState(false);
  const [suspending, setSuspending] = useState<Tenant>();
  const found = useLoad("tenants", loadTenants, 30);
  const tenants = found.data?.tenants ?? [];
  const views = found.data?.views;
  const sum = (of: (view: View) => number) => [...(views?.values() ?? [])].reduce((total, view) => total + of(view), 0);
  const resume = async (tenant: Tenant) => {
    await api().post("/v1/tenants/{tenant_id}/resume", { path: { tenant_id: tenant.tenant_id }, repeatable: true });
    say(`${tenant.tenant_id} is active again`);
    found.reload();
  };
  return (
    <>
      <Head title="Platform" sub={found.data ? `${tenants.length} tenants` : null}>
        <button type="button" class="primary" onClick={() => setCreating(true)}>
          New tenant
        </button>
      </Head>
      <Problem error={found.error} retry={found.reload} />
      {found.data ? (
        <dl class="figures">
          <Figure name="Tenants" value={tenants.length} />
          <Figure
            name="Suspended"
            value={tenants.filter((one) => one.state === "suspended").length}
            tone={tenants.some((one) => one.state === "suspended") ? "late" : "good"}
          />
          <Figure name="Jobs" value={sum((view) => view.usage.jobs).toLocaleString("en")} />
          <Figure
            name="Executions a day"
            value={sum((view) => view.usage.executions_per_day).toLocaleString("en")}
            hint="at most, by the schedules"
          />
        </dl>
      ) : null}
      <Density />
      <Card title="Tenants">
        {!found.data ? (
          <Waiting lines={6} />
        ) : tenants.length ? (
          <div class="scroll">
            <table aria-label="Tenants">
              <thead>
                <tr>
                  <th scope="col">Tenant</th>
                  <th scope="col">State</th>
                  <th scope="col" class="num">
                    Jobs
                  </th>
                  <th scope="col" class="num">
                    Executions a day
                  </th>
                  <th scope="col">Created</th>
                  <th scope="col">Note</th>
                  <th scope="col">
                    <span class="sr">Actions</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {tenants.map((tenant) => {
                  const view = views?.get(tenant.tenant_id);
                  return (
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
                      <td class="num">{view ? `${view.usage.jobs} / ${view.quotas.jobs}` : "–"}</td>
                      <td class="num">
                        {view
                          ? `${view.usage.executions_per_day.toLocaleString("en")} / ${view.quotas.executions_per_day.toLocaleString("en")}`
                          : "–"}
                      </td>
                      <td>
                        <Time at={tenant.created_at} />
                      </td>
                      <td class="clip">
                        <Text>{tenant.note}</Text>
                      </td>
                      <td>
                        {tenant.state === "active" ? (
                          <button type="button" class="quiet" onClick={() => setSuspending(tenant)}>
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
                  );
                })}
              </tbody>
            </table>
          </div>
        ) : (
          <Empty title="No tenants yet">Create the first one, allow it a target, and give it a key.</Empty>
        )}
      </Card>
      {creating ? <Create close={() => setCreating(false)} /> : null}
      {suspending ? (
        <Suspend tenant={suspending} close={() => setSuspending(undefined)} changed={found.reload} />
      ) : null}
    </>
  );
}

/** The executions of all tenants in the next hours, by minute. */
function Density(): JSX.Element {
  const [hours, setHours] = useState(1);
  const present = Math.floor(now.value / MINUTE) * MINUTE;
  const until = present + hours * HOUR;
  const found = useLoad(
    `density ${hours}`,
    async (signal) => {
      const pages: Shapes["PlatformDensity"][] = [];
      const query = { until_at: rfc3339(until) };
      for await (const page of api().pages("/v1/operator-density", { query, signal })) pages.push(page);
      return pages;
    },
    60,
  );
  const pages = found.data ?? [];
  const minutes = added(pages);
  const fullest = Math.max(0, ...minutes.map(([, count]) => count));
  const shares = new Map<string, number>();
  for (const share of pages.flatMap((page) => page.tenants)) {
    shares.set(share.tenant_id, (shares.get(share.tenant_id) ?? 0) + share.executions);
  }
  const most = [...shares].sort((one, other) => other[1] - one[1]).slice(0, 5);
  return (
    <Card
      title="What is coming, of all tenants"
      side={[1, 6, 24].map((one) => (
        <button key={one} type="button" class="quiet" aria-pressed={one === hours} onClick={() => setHours(one)}>
          {one} h
        </button>
      ))}
    >
      <Problem error={found.error} retry={found.reload} />
      {found.data ? (
        <>
          <TimeLine
            label="All tenants"
            marks={minutes.map(([at, count]) => ({ at, state: "to_come", count }))}
            from={present}
            until={until}
          />
          <p class="hint">
            The fullest minute has {fullest.toLocaleString("en")} executions, which is {(fullest / 60).toFixed(1)} a
            second on average. {most.length ? "Most are of " : ""}
            {most.map(([id, count]) => (
              <a key={id} class="tag" href={to(["tenants", id])}>
                {id} {count.toLocaleString("en")}
              </a>
            ))}
          </p>
        </>
      ) : (
        <Waiting lines={2} />
      )}
    </Card>
  );
}

async function loadTenants(signal: AbortSignal): Promise<{ tenants: Tenant[]; views: Map<string, View> }> {
  const tenants: Tenant[] = [];
  for await (const page of api().pages("/v1/tenants", { query: { limit: 200 }, signal })) tenants.push(...page.tenants);
  const views = await Promise.all(
    tenants
      .slice(0, DETAILED)
      .map((tenant) => api().get("/v1/tenants/{tenant_id}", { path: { tenant_id: tenant.tenant_id }, signal })),
  );
  return { tenants, views: new Map(views.map((view) => [view.tenant_id, view])) };
}

export function Suspend(props: { tenant: { tenant_id: string }; close: () => void; changed: () => void }): JSX.Element {
  const [note, setNote] = useState("");
  const id = props.tenant.tenant_id;
  const act = async () => {
    await api().post("/v1/tenants/{tenant_id}/suspend", { path: { tenant_id: id }, body: { note }, repeatable: true });
    say(`${id} is suspended`);
    props.changed();
  };
  return (
    <Ask title={`Suspend ${id}`} verb="Suspend" danger act={act} close={props.close}>
      <p>
        Its jobs stop within 15 seconds, and it can change nothing. It still reads everything. Resuming undoes this.
      </p>
      <Field label="Note" hint="The tenant can read it." wide>
        {(attributes) => (
          <input {...attributes} maxLength={500} value={note} onInput={(event) => setNote(event.currentTarget.value)} />
        )}
      </Field>
    </Ask>
  );
}

function Create({ close }: { close: () => void }): JSX.Element {
  const [id, setId] = useState("");
  const [name, setName] = useState("");
  const [targets, setTargets] = useState("");
  const act = async () => {
    const body = { tenant_id: id.trim(), name, allowed_targets: targets.split(/\s+/).filter(Boolean) };
    const tenant = await api().post("/v1/tenants", { body });
    go(["tenants", tenant.tenant_id]);
  };
  return (
    <Ask title="New tenant" verb="Create" act={act} close={close}>
      <Field label="Id" wide>
        {(attributes) => (
          <input {...attributes} required value={id} onInput={(event) => setId(event.currentTarget.value)} />
        )}
      </Field>
      <Field label="Name" wide>
        {(attributes) => <input {...attributes} value={name} onInput={(event) => setName(event.currentTarget.value)} />}
      </Field>
      <Field label="Targets that it may call" hint="Patterns of ARNs and hosts, one a line." wide>
        {(attributes) => (
          <textarea
            {...attributes}
            rows={4}
            value={targets}
            onInput={(event) => setTargets(event.currentTarget.value)}
          />
        )}
      </Field>
    </Ask>
  );
}
