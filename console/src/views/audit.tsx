/** Who changed what, and how. */

import type { Shapes } from "minute8-client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { diffOf } from "../lib/diff";
import { useLoad } from "../lib/load";
import { place, setQuery, to } from "../lib/router";
import { api, hasRole } from "../lib/session";
import { local, zoneChoice, zoneOf } from "../lib/time";
import { useSettled } from "../ui/hooks";
import { Card, Empty, Found, Head, More, Text, Time } from "../ui/parts";
import { Some } from "../ui/table";
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

export function AuditList({ owner, limit = 100 }: { owner: Owner; limit?: number }): JSX.Element {
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
    return readLines(pagesOf(owner, query, signal), pages);
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
                <Days entries={entries} isOwn={owner.kind === "self"} more={more} />
              ) : (
                <Empty title="No change matches">Entries are kept for 400 days.</Empty>
              )}
              {more ? <More show={() => setPages(pages + 2)}>Show older changes</More> : null}
            </>
          )}
        </Found>
      </Card>
    </>
  );
}

/** The first entries. A line may take many pages, so pages are read until there are some lines for each wanted one. */
export async function readLines(
  pages: AsyncIterable<{ entries: Entry[]; next_cursor: string | null }>,
  wanted: number,
): Promise<{ entries: Entry[]; more: boolean }> {
  const entries: Entry[] = [];
  let read = 0;
  for await (const page of pages) {
    read++;
    entries.push(...page.entries);
    if (!page.next_cursor) return { entries, more: false };
    const lines = byDay(entries, "UTC").reduce((sum, { alike }) => sum + alike.length, 0);
    if (read >= wanted * MOST_PAGES || (read >= wanted && lines >= wanted * LINES)) break;
  }
  return { entries, more: read > 0 };
}

/** Entries of one day that follow one another, by the same key with the same action; and the days. Pure. */
export function byDay(entries: readonly Entry[], zone: string): { date: string; alike: [Entry, ...Entry[]][] }[] {
  const days: { date: string; alike: [Entry, ...Entry[]][] }[] = [];
  for (const entry of entries) {
    const { date } = local(Date.parse(entry.at), zone);
    if (days.at(-1)?.date !== date) days.push({ date, alike: [] });
    const alike = days.at(-1)?.alike ?? [];
    const group = alike.at(-1);
    if (group && group[0].action === entry.action && group[0].by === entry.by) group.push(entry);
    else alike.push([entry]);
  }
  return days;
}

// A page is short if it has fewer lines than this; then the next is read too, up to so many.
const LINES = 10;
const MOST_PAGES = 10;
// So many alike are one line.
const FOLDED_FROM = 4;

function Days(props: { entries: readonly Entry[]; isOwn: boolean; more: boolean }): JSX.Element {
  const { entries, isOwn } = props;
  const last = props.more ? entries.at(-1) : undefined;
  const zone = zoneOf(zoneChoice.value, undefined);
  const lines = byDay(entries, zone).flatMap(({ date, alike }) =>
    alike
      .flatMap((group) => (group.length < FOLDED_FROM ? group.map((entry): [Entry] => [entry]) : [group]))
      .map((group) => ({ date, group })),
  );
  return (
    <Some
      items={lines}
      most={DRAWN}
      draw={(shown) =>
        [...new Set(shown.map(({ date }) => date))].map((date) => (
          <section key={date} aria-label={date}>
            <h2 class="day">{date}</h2>
            <ul class="revisions">
              {shown
                .filter((line) => line.date === date)
                .map(({ group }) =>
                  group.length === 1 ? (
                    <Change key={group[0].entry_id} entry={group[0]} isOwn={isOwn} />
                  ) : (
                    <Alike key={group[0].entry_id} group={group} isOwn={isOwn} orMore={group.at(-1) === last} />
                  ),
                )}
            </ul>
          </section>
        ))
      }
    />
  );
}

// So much of an instant is shown.
const SECOND = "2026-11-28T03:00:00".length;
// So many changes are drawn at a time.
const DRAWN = 20;

/** Changes that are alike in one line; opened, some of them and the way to the others. */
function Alike(props: { group: [Entry, ...Entry[]]; isOwn: boolean; orMore: boolean }): JSX.Element {
  const { group, isOwn } = props;
  const first = group.at(-1) ?? group[0];
  const [open, setOpen] = useState(false);
  return (
    <li>
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <strong>{group[0].action}</strong> × {group.length.toLocaleString("en")}
          {props.orMore ? "+" : ""}{" "}
          <span class="muted">
            {first.at.slice(0, SECOND) === group[0].at.slice(0, SECOND) ? null : (
              <>
                <Time at={first.at} /> to{" "}
              </>
            )}
            <Time at={group[0].at} /> by <Text most={80}>{group[0].by_name || group[0].by}</Text>
          </span>
        </summary>
        {open ? (
          <Some
            items={group}
            most={DRAWN}
            draw={(shown) => (
              <ul class="revisions">
                {shown.map((entry) => (
                  <Change key={entry.entry_id} entry={entry} isOwn={isOwn} />
                ))}
              </ul>
            )}
          />
        ) : null}
      </details>
    </li>
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
