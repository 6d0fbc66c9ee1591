/** The platform: its tenants, what each uses, and how one is made or suspended. */

import type { Shapes } from "minute8-client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { TimeLine } from "../draw/timeline";
import { added } from "../lib/coming";
import { useLoad } from "../lib/load";
import { go, to } from "../lib/router";
import { api } from "../lib/session";
import { HOUR, MINUTE, now, rfc3339, span } from "../lib/time";
import { counted } from "../lib/words";
import { Ask, Input, Note, say } from "../ui/actions";
import { Card, Figure, Head, Problem, Waiting } from "../ui/parts";
import { DeadLetters } from "./platform-letters";
import { Findings, PlanningCard } from "./platform-planning";
import { type Tenant, Tenants } from "./platform-tenants";
import { Unrecorded } from "./platform-unrecorded";

export function Platform(): JSX.Element {
  const [creating, setCreating] = useState(false);
  const [suspending, setSuspending] = useState<Tenant>();
  const found = useLoad("tenants", loadTenants, 30);
  const planning = useLoad("planning", (signal) => api().get("/v1/operator-planning", { signal }), 30);
  const tenants = found.data ?? [];
  const sum = (of: (tenant: Tenant) => number) =>
    tenants.reduce((total, tenant) => total + of(tenant), 0).toLocaleString("en");
  const failed = tenants.filter((one) => one.past.failed);
  const resume = async (tenant: Tenant) => {
    await api().post("/v1/tenants/{tenant_id}/resume", { path: { tenant_id: tenant.tenant_id }, repeatable: true });
    say(`${tenant.tenant_id} is active again`);
    found.reload();
  };
  return (
    <>
      <Head title="Platform" sub={found.data ? counted(tenants.length, "tenant") : null}>
        <button type="button" class="primary" onClick={() => setCreating(true)}>
          New tenant
        </button>
      </Head>
      <Problem error={found.error} retry={found.reload} />
      <Findings findings={planning.data?.findings} />
      {found.data ? (
        <dl class="figures">
          <Figure name="Tenants" value={tenants.length} />
          <Figure
            name="Suspended"
            value={tenants.filter((one) => one.state === "suspended").length}
            tone={tenants.some((one) => one.state === "suspended") ? "late" : "good"}
          />
          <Figure name="Jobs" value={sum((tenant) => tenant.usage.jobs)} />
          <Figure
            name="Executions a day"
            value={sum((tenant) => tenant.usage.executions_per_day)}
            hint="at most, by the schedules"
          />
          <Figure
            name="Failed runs, 24 h"
            value={sum((tenant) => tenant.past.failed)}
            tone={failed.length ? "bad" : "good"}
            hint={`of ${counted(failed.length, "tenant")}`}
          />
        </dl>
      ) : null}
      <Density callsAtOnce={planning.data?.calls_at_once} />
      <div class="grid">
        <DeadLetters />
        <Unrecorded />
      </div>
      <Tenants tenants={found.data} suspend={setSuspending} resume={resume} />
      <PlanningCard found={planning} />
      {creating ? <Create close={() => setCreating(false)} /> : null}
      {suspending ? (
        <Suspend tenant={suspending} close={() => setSuspending(undefined)} changed={found.reload} />
      ) : null}
    </>
  );
}

/** The executions of all tenants in the next hours, by minute. */
function Density({ callsAtOnce }: { callsAtOnce: number | undefined }): JSX.Element {
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
            second on average. {callsAtOnce ? `${capacityWords(fullest, callsAtOnce)} ` : ""}
            {most.length ? "Most are of " : ""}
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

/** The fullest minute against what the executor's parameters allow. Pure. */
export function capacityWords(aMinute: number, callsAtOnce: number): string {
  const at = callsAtOnce.toLocaleString("en");
  if (!aMinute) return `The executor makes up to ${at} calls at once.`;
  return `The executor makes up to ${at} calls at once: enough for it while a call takes up to ${span((60 * callsAtOnce) / aMinute)}.`;
}

async function loadTenants(signal: AbortSignal): Promise<Tenant[]> {
  const tenants: Tenant[] = [];
  for await (const page of api().pages("/v1/operator-overview", { query: { limit: 200 }, signal }))
    tenants.push(...page.tenants);
  return tenants;
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
      <Note note={note} set={setNote} hint="The tenant can read it." />
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
      <Input label="Id" wide required value={id} set={setId} />
      <Input label="Name" wide value={name} set={setName} />
      <Input
        label="Targets that it may call"
        hint="Patterns of ARNs and hosts, one a line."
        wide
        rows={4}
        value={targets}
        set={setTargets}
      />
    </Ask>
  );
}
