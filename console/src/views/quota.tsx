/** What the platform allows the tenant, and how much of it is used. */

import type { Shapes } from "minute8-client";
import type { JSX } from "preact";
import { useLoad } from "../lib/load";
import { api } from "../lib/session";
import { Card, Empty, Facts, Head, Problem, State, Text, Time, Waiting } from "../ui/parts";

export function Quota(): JSX.Element {
  const found = useLoad("tenant", (signal) => api().get("/v1/tenant", { signal }), 30);
  return (
    <>
      <Head title="Quota" sub={found.data ? <code>{found.data.tenant_id}</code> : null} />
      <Problem error={found.error} retry={found.reload} />
      {found.data ? <Allowed tenant={found.data} /> : <Waiting />}
    </>
  );
}

export function Allowed({ tenant }: { tenant: Shapes["TenantView"] }): JSX.Element {
  const { usage, quotas } = tenant;
  return (
    <div class="grid">
      <Card title="Quotas">
        <Meter name="Jobs" used={usage.jobs} most={quotas.jobs} />
        <Meter
          name="Executions a day, by the schedules"
          used={usage.executions_per_day}
          most={quotas.executions_per_day}
        />
        <Facts
          facts={[
            ["Shortest interval", `${quotas.shortest_interval_s} s`],
            ["Payload", `${quotas.payload_bytes.toLocaleString("en")} bytes`],
            ["Requests a minute", quotas.requests_per_minute.toLocaleString("en")],
            ["Runs are kept", `${tenant.retention_days} days`],
          ]}
        />
      </Card>
      <Card title="Tenant">
        <Facts
          facts={[
            ["State", <State key="s" state={tenant.state} />],
            ["Name", <Text key="n">{tenant.name || "–"}</Text>],
            ["Created", <Time key="c" at={tenant.created_at} full />],
            ...(tenant.note ? [["Note", <Text key="t">{tenant.note}</Text>] as [string, JSX.Element]] : []),
          ]}
        />
        <h3>Targets that may be called</h3>
        {tenant.allowed_targets.length ? (
          <ul>
            {tenant.allowed_targets.map((pattern) => (
              <li key={pattern}>
                <code>
                  <Text>{pattern}</Text>
                </code>
              </li>
            ))}
          </ul>
        ) : (
          <Empty title="None yet">The platform allows targets; until then no job can be registered.</Empty>
        )}
      </Card>
    </div>
  );
}

function Meter({ name, used, most }: { name: string; used: number; most: number }): JSX.Element {
  const share = most ? Math.min(1, used / most) : 1;
  return (
    <div class="meter">
      <div class="row">
        <span>{name}</span>
        <span>
          {used.toLocaleString("en")} <span class="muted">of {most.toLocaleString("en")}</span>
        </span>
      </div>
      <svg
        viewBox="0 0 100 6"
        preserveAspectRatio="none"
        width="100%"
        height="6"
        role="img"
        aria-label={`${Math.round(share * 100)} % used`}
      >
        <rect width="100" height="6" class="f-track" />
        <rect width={share * 100} height="6" class={classOf(share)} />
      </svg>
    </div>
  );
}

function classOf(share: number): string {
  if (share >= 1) return "f-bad";
  return share > 0.8 ? "f-late" : "f-accent";
}
