/** Who changed what, and how. */

import type { Shapes } from "minute8-client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { diffOf } from "../lib/diff";
import { useLoad } from "../lib/load";
import { place, setQuery } from "../lib/router";
import { api, may } from "../lib/session";
import { useSettled } from "../ui/hooks";
import { Card, Empty, Head, Problem, Text, Time, Waiting } from "../ui/parts";
import { Changes } from "./job-definition";
import type { Owner } from "./keys";

type Entry = Shapes["AuditEntry"];

export function Audit({ owner }: { owner: Owner }): JSX.Element {
  const allowed = owner.kind !== "self" || may("admin");
  return (
    <>
      <Head title="Audit" sub="Every change: who, when, before and after." />
      {allowed ? <AuditList owner={owner} /> : <Empty title="A key of the role admin is needed" />}
    </>
  );
}

export function AuditList({ owner }: { owner: Owner }): JSX.Element {
  const { subject = "", action = "" } = place.value.query;
  const settled = useSettled(JSON.stringify({ subject, action }), 300);
  const [pages, setPages] = useState(1);
  const found = useLoad(`audit ${JSON.stringify(owner)} ${settled} ${pages}`, async (signal) => {
    const wanted = JSON.parse(settled) as { subject: string; action: string };
    const query = {
      limit: 50,
      ...(wanted.subject ? { subject: wanted.subject } : {}),
      ...(wanted.action ? { action: wanted.action } : {}),
    };
    const entries: Entry[] = [];
    let isAll = true;
    let read = 0;
    for await (const page of pagesOf(owner, query, signal)) {
      entries.push(...page.entries);
      isAll = !page.next_cursor;
      if (++read >= pages) break;
    }
    return { entries, isAll };
  });
  return (
    <>
      <search class="filters" aria-label="Filter the audit">
        <input
          type="search"
          placeholder="Subject, such as a job’s id"
          aria-label="Subject"
          value={subject}
          onInput={(event) => setQuery({ subject: event.currentTarget.value })}
        />
        <input
          type="search"
          placeholder="Action, such as job.paused"
          aria-label="Action"
          value={action}
          onInput={(event) => setQuery({ action: event.currentTarget.value })}
        />
      </search>
      <Problem error={found.error} retry={found.reload} />
      <Card>
        {found.data ? (
          found.data.entries.length ? (
            <ul class="revisions">
              {found.data.entries.map((entry) => (
                <li key={entry.entry_id}>
                  <div class="row">
                    <span>
                      <strong>{entry.action}</strong> <Text>{entry.subject}</Text>
                    </span>
                    <span class="muted">
                      <Time at={entry.at} /> by <Text most={80}>{entry.by}</Text>
                    </span>
                  </div>
                  <Changes changes={diffOf(entry.before, entry.after)} />
                </li>
              ))}
            </ul>
          ) : (
            <Empty title="No change fits">Entries are kept for 400 days.</Empty>
          )
        ) : (
          <Waiting lines={8} />
        )}
        {found.data && !found.data.isAll ? (
          <div class="more">
            <button type="button" onClick={() => setPages(pages + 2)}>
              Show older changes
            </button>
          </div>
        ) : null}
      </Card>
    </>
  );
}

function pagesOf(owner: Owner, query: { limit: number; subject?: string; action?: string }, signal: AbortSignal) {
  if (owner.kind === "self") return api().pages("/v1/audit", { query, signal });
  if (owner.kind === "platform") return api().pages("/v1/operator-audit", { query, signal });
  return api().pages("/v1/tenants/{tenant_id}/audit", { path: { tenant_id: owner.id }, query, signal });
}
