/** Who changed what, and how. */

import type { Shapes } from "minute8-client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { diffOf } from "../lib/diff";
import { useLoad } from "../lib/load";
import { firstPages } from "../lib/pages";
import { place, setQuery, to } from "../lib/router";
import { api, hasRole } from "../lib/session";
import { useSettled } from "../ui/hooks";
import { Card, Empty, Found, Head, More, Text, Time } from "../ui/parts";
import { Changes } from "./job-definition";
import type { Owner } from "./keys";

type Entry = Shapes["AuditEntry"];

export function Audit({ owner }: { owner: Owner }): JSX.Element {
  const allowed = owner.kind !== "self" || hasRole("admin");
  return (
    <>
      <Head title="Audit" sub="Every change: who, when, before and after." />
      {allowed ? <AuditList owner={owner} /> : <Empty title="A key of the role admin is needed" />}
    </>
  );
}

export function AuditList({ owner, limit = 50 }: { owner: Owner; limit?: number }): JSX.Element {
  const { subject = "", action = "" } = place.value.query;
  const settled = useSettled(JSON.stringify({ subject, action }), 300);
  const [pages, setPages] = useState(1);
  const found = useLoad(`audit ${JSON.stringify(owner)} ${settled} ${pages}`, async (signal) => {
    const wanted = JSON.parse(settled) as { subject: string; action: string };
    const query = {
      limit,
      ...(wanted.subject ? { subject: wanted.subject } : {}),
      ...(wanted.action ? { action: wanted.action } : {}),
    };
    const read = await firstPages(pagesOf(owner, query, signal), pages);
    return { entries: read.pages.flatMap((page) => page.entries), more: read.more };
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
      <Card>
        <Found found={found} lines={8}>
          {({ entries, more }) => (
            <>
              {entries.length ? (
                <ul class="revisions">
                  {entries.map((entry) => (
                    <Change key={entry.entry_id} entry={entry} isOwn={owner.kind === "self"} />
                  ))}
                </ul>
              ) : (
                <Empty title="No change fits">Entries are kept for 400 days.</Empty>
              )}
              {more ? <More show={() => setPages(pages + 2)}>Show older changes</More> : null}
            </>
          )}
        </Found>
      </Card>
    </>
  );
}

function Change({ entry, isOwn }: { entry: Entry; isOwn: boolean }): JSX.Element {
  const hasPage = isOwn && entry.action.startsWith("job.") && entry.action !== "job.deleted";
  return (
    <li>
      <div class="row">
        <span>
          <strong>{entry.action}</strong>{" "}
          {hasPage ? (
            <bdi class="text">
              <a href={to(["jobs", entry.subject])}>{entry.subject}</a>
            </bdi>
          ) : (
            <Text>{entry.subject}</Text>
          )}
        </span>
        <span class="muted">
          <Time at={entry.at} /> by <Text most={80}>{entry.by_name || entry.by}</Text>
        </span>
      </div>
      <Changes changes={diffOf(entry.before, entry.after)} />
    </li>
  );
}

function pagesOf(owner: Owner, query: { limit: number; subject?: string; action?: string }, signal: AbortSignal) {
  if (owner.kind === "self") return api().pages("/v1/audit", { query, signal });
  if (owner.kind === "platform") return api().pages("/v1/operator-audit", { query, signal });
  return api().pages("/v1/tenants/{tenant_id}/audit", { path: { tenant_id: owner.id }, query, signal });
}
