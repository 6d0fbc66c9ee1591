/** One tenant as the platform sees it: what it may do, its keys, its audit. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { WhereTimeGoes } from "../draw/shares";
import { figureOf } from "../lib/health";
import { useLoad } from "../lib/load";
import { api } from "../lib/session";
import { span } from "../lib/time";
import { Ask, Input, say, sayWhy } from "../ui/actions";
import { Card, Figure, Found, Head, Problem, State, Waiting } from "../ui/parts";
import { AuditList } from "./audit";
import { KeyList } from "./keys";
import { Suspend } from "./platform";
import { Allowed } from "./quota";

export function Tenant({ id }: { id: string }): JSX.Element {
  const [dialog, setDialog] = useState<"allow" | "suspend">();
  const path = { tenant_id: id };
  const found = useLoad(`tenant ${id}`, (signal) => api().get("/v1/tenants/{tenant_id}", { path, signal }), 30);
  const tenant = found.data;
  const close = () => setDialog(undefined);
  const resume = async () => {
    await api().post("/v1/tenants/{tenant_id}/resume", { path, repeatable: true });
    say(`${id} is active again`);
    found.reload();
  };
  return (
    <>
      <Head title={<span class="mono">{id}</span>} sub={tenant ? <State state={tenant.state} /> : null}>
        {tenant ? (
          <>
            <button type="button" onClick={() => setDialog("allow")}>
              Change what it may do
            </button>
            {tenant.state === "suspended" ? (
              <button type="button" class="primary" onClick={() => resume().catch(sayWhy)}>
                Resume
              </button>
            ) : (
              <button type="button" class="danger" onClick={() => setDialog("suspend")}>
                Suspend
              </button>
            )}
          </>
        ) : null}
      </Head>
      <Problem error={found.error} retry={found.reload} />
      {tenant ? (
        <>
          <Health id={id} />
          <Allowed tenant={tenant} />
          <div class="apart">
            <KeyList owner={{ kind: "tenant", id }} />
          </div>
          <h2 class="apart">Audit</h2>
          <AuditList owner={{ kind: "tenant", id }} limit={10} />
          {dialog === "suspend" ? <Suspend tenant={tenant} close={close} changed={found.reload} /> : null}
          {dialog === "allow" ? <Change id={id} tenant={tenant} close={close} changed={found.reload} /> : null}
        </>
      ) : null}
      {!tenant && !found.error ? <Waiting /> : null}
    </>
  );
}

/** How the tenant is: its runs of the last day, and its jobs now. */
function Health({ id }: { id: string }): JSX.Element {
  const path = { tenant_id: id };
  const found = useLoad(`health ${id}`, (signal) => api().get("/v1/tenants/{tenant_id}/health", { path, signal }), 60);
  return (
    <Found found={found} lines={2}>
      {({ run_totals: runs, job_counts: jobs }) => {
        const failed = runs.statuses.failed ?? 0;
        const more = (isWhole: boolean) => (isWhole ? "" : "+");
        return (
          <>
            <dl class="figures">
              <Figure name="Runs, 24 h" value={`${runs.runs.toLocaleString("en")}${more(runs.complete)}`} />
              <Figure
                name="Failed, 24 h"
                {...figureOf(failed, "bad", runs.complete)}
                hint={
                  runs.complete && runs.success_rate != null
                    ? `${(100 * runs.success_rate).toFixed(1)} % of ${runs.due.toLocaleString("en")} due succeeded`
                    : ""
                }
              />
              <Figure
                name="Failing jobs"
                {...figureOf(jobs.failing, "bad", jobs.complete)}
                hint={`of ${jobs.read}${more(jobs.complete)}, ${jobs.paused} paused`}
              />
              <Figure
                name="Not running"
                {...figureOf(jobs.not_running, "bad", true)}
                hint={Object.entries(jobs.stopped_by)
                  .map(([reason, count]) => `${reason.replaceAll("_", " ")} ${count}`)
                  .join(", ")}
              />
              <Figure
                name="Overdue jobs"
                {...figureOf(jobs.overdue, "bad", jobs.complete)}
                hint={jobs.overdue ? `by ${span(jobs.most_late_s)} at most` : ""}
              />
            </dl>
            {runs.runs ? (
              <Card title="Where time goes" side="24 h">
                <WhereTimeGoes lateness={runs.lateness_s} durations={runs.duration_s} />
              </Card>
            ) : null}
          </>
        );
      }}
    </Found>
  );
}

type Props = {
  id: string;
  tenant: { revision: number; allowed_targets: string[]; quotas: Record<string, number>; retention_days: number };
  close: () => void;
  changed: () => void;
};

function Change({ id, tenant, close, changed }: Props): JSX.Element {
  const [targets, setTargets] = useState(tenant.allowed_targets.join("\n"));
  const [quotas, setQuotas] = useState<Record<string, number>>(tenant.quotas);
  const [days, setDays] = useState(tenant.retention_days);
  const act = async () => {
    const body = { allowed_targets: targets.split(/\s+/).filter(Boolean), quotas, retention_days: days };
    await api().patch("/v1/tenants/{tenant_id}", { path: { tenant_id: id }, body, revision: tenant.revision });
    changed();
    say(`${id} is changed`);
  };
  return (
    <Ask title={`What ${id} may do`} verb="Change" act={act} close={close}>
      <Input
        label="Targets"
        hint="Patterns of ARNs and hosts, one a line."
        wide
        rows={5}
        value={targets}
        set={setTargets}
      />
      {Object.entries(quotas).map(([name, value]) => (
        <Input
          key={name}
          label={name.replaceAll("_", " ")}
          type="number"
          value={value}
          set={(text) => setQuotas({ ...quotas, [name]: Number(text) })}
        />
      ))}
      <Input label="Days that runs are kept" type="number" value={days} set={(text) => setDays(Number(text))} />
    </Ask>
  );
}
