/** One tenant as the platform sees it: what it may do, its keys, its audit. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useLoad } from "../lib/load";
import { api } from "../lib/session";
import { Ask, Field, say } from "../ui/actions";
import { Head, Problem, State, Waiting } from "../ui/parts";
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
              <button type="button" class="primary" onClick={() => resume().catch((e: unknown) => say(String(e)))}>
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
          <Allowed tenant={tenant} />
          <div class="apart">
            <KeyList owner={{ kind: "tenant", id }} />
          </div>
          <h2 class="apart">Audit</h2>
          <AuditList owner={{ kind: "tenant", id }} />
          {dialog === "suspend" ? <Suspend tenant={tenant} close={close} changed={found.reload} /> : null}
          {dialog === "allow" ? <Change id={id} tenant={tenant} close={close} changed={found.reload} /> : null}
        </>
      ) : found.error ? null : (
        <Waiting />
      )}
    </>
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
      <Field label="Targets" hint="Patterns of ARNs and hosts, one a line." wide>
        {(attributes) => (
          <textarea
            {...attributes}
            rows={5}
            value={targets}
            onInput={(event) => setTargets(event.currentTarget.value)}
          />
        )}
      </Field>
      {Object.entries(quotas).map(([name, value]) => (
        <Field key={name} label={name.replaceAll("_", " ")}>
          {(attributes) => (
            <input
              {...attributes}
              type="number"
              value={value}
              onInput={(event) => setQuotas({ ...quotas, [name]: Number(event.currentTarget.value) })}
            />
          )}
        </Field>
      ))}
      <Field label="Days that runs are kept">
        {(attributes) => (
          <input
            {...attributes}
            type="number"
            value={days}
            onInput={(event) => setDays(Number(event.currentTarget.value))}
          />
        )}
      </Field>
    </Ask>
  );
}
