/** The platform: its tenants, what each uses, and how one is made or suspended. */

import type { Shapes } from "minute8-client";
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { TimeLine } from "../draw/timeline";
import { added } from "../lib/coming";
import { figureOf } from "../lib/health";
import { given, oneOf } from "../lib/jobs";
import { useLast, useLoad } from "../lib/load";
import { go, place, to } from "../lib/router";
import { api } from "../lib/session";
import { absolute, DAY, duration, HOUR, MINUTE, now, rfc3339, span, zoneChoice, zoneOf } from "../lib/time";
import { counted } from "../lib/words";
import { Ask, Input, Note, say } from "../ui/actions";
import { Card, Figure, Head, Problem, Time, Waiting } from "../ui/parts";
import { Blocks } from "./platform-blocks";
import { DeadLetters } from "./platform-dead-letters";
import { Findings, PlanningCard } from "./platform-planning";
import { TENANT_ORDERS, type Tenant, Tenants } from "./platform-tenants";
import { Unrecorded } from "./platform-unrecorded";

type Overview = Shapes["Overview"];

const PAGE = 25;

export function Platform(): JSX.Element {
  const [creating, setCreating] = useState(false);
  const [suspending, setSuspending] = useState<Tenant>();
  const { sort: order, cursor } = place.value.query;
  const sort = oneOf(TENANT_ORDERS, order) ?? "failing";
  const query = { limit: PAGE, sort, ...given("cursor", cursor) };
  const found = useLoad(
    `tenants ${JSON.stringify(query)}`,
    (signal) => api().get("/v1/operator-overview", { query, signal }),
    30,
    true,
  );
  const data = useLast(found.data);
  const planning = useLoad("planning", (signal) => api().get("/v1/operator-planning", { signal }), 30, true);
  const resume = async (tenant: Tenant) => {
    await api().post("/v1/tenants/{tenant_id}/resume", { path: { tenant_id: tenant.tenant_id }, repeatable: true });
    say(`${tenant.tenant_id} is active again`);
    found.reload();
  };
  return (
    <>
      <Head title="Platform" sub={data ? counted(data.totals.tenants, "tenant", !data.totals.complete) : " "}>
        <button type="button" class="primary" onClick={() => setCreating(true)}>
          New tenant
        </button>
      </Head>
      <Problem error={found.error} retry={found.reload} />
      <Findings findings={planning.data?.findings} />
      {data ? <Figures overview={data} /> : null}
      {data ? <PastDay overview={data} /> : <Waiting lines={4} />}
      <Tenants found={data} sort={sort} suspend={setSuspending} resume={resume} />
      <Density callsAtOnce={planning.data?.calls_at_once} />
      <Blocks blocks={data?.blocks} changed={found.reload} />
      <div class="grid">
        <DeadLetters />
        <Unrecorded />
      </div>
      <PlanningCard found={planning} />
      {creating ? <Create close={() => setCreating(false)} /> : null}
      {suspending ? (
        <Suspend tenant={suspending} close={() => setSuspending(undefined)} changed={found.reload} />
      ) : null}
    </>
  );
}

function Figures({ overview }: { overview: Overview }): JSX.Element {
  const { totals } = overview;
  const zone = zoneOf(zoneChoice.value, undefined);
  const more = totals.complete ? "" : "+";
  const number = (count: number) => `${count.toLocaleString("en")}${more}`;
  return (
    <dl class="figures">
      <Figure name="Tenants" value={number(totals.tenants)} />
      <Figure name="Suspended" {...figureOf(totals.suspended, "late", totals.complete)} />
      <Figure name="Jobs" value={number(totals.jobs)} />
      <Figure name="Executions a day" value={number(totals.executions_per_day)} hint="at most, by the schedules" />
      <Figure
        name="Failed runs, 24 h"
        {...figureOf(totals.failed, "bad", totals.complete)}
        hint={`of ${counted(totals.failing, "tenant")}, until ${absolute(Date.parse(overview.fresh_at), zone, now.value)}`}
      />
      <Figure
        name="Late runs, 24 h"
        {...figureOf(totals.late, "late", totals.complete)}
        hint={totals.late ? `the latest by ${duration(totals.max_lateness_s)}` : "over a second"}
      />
    </dl>
  );
}

/** What ran in the last day, of all tenants. */
function PastDay({ overview }: { overview: Overview }): JSX.Element {
  const end = Math.ceil(now.value / HOUR) * HOUR;
  const marks = useMemo(
    () =>
      overview.hours.flatMap(({ at, runs, failed, late }) => {
        const states = { failed, late: Math.min(late, runs - failed), on_time: Math.max(0, runs - failed - late) };
        return Object.entries(states)
          .filter(([, count]) => count)
          .map(([state, count]) => ({ at: Date.parse(at), state, count }));
      }),
    [overview],
  );
  return (
    <Card
      title="What ran, of all tenants"
      side={
        <span>
          until <Time at={overview.fresh_at} />
        </span>
      }
    >
      <TimeLine label="What ran, of all tenants" marks={marks} from={end - DAY} until={end} step={HOUR} />
    </Card>
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
  const most = [...shares].sort((first, second) => second[1] - first[1]).slice(0, 5);
  return (
    <Card
      title="What is coming, of all tenants"
      side={[1, 6, 24].map((choice) => (
        <button
          key={choice}
          type="button"
          class="quiet"
          aria-pressed={choice === hours}
          onClick={() => setHours(choice)}
        >
          {choice} h
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
            The fullest minute has {counted(fullest, "execution")}, which is {(fullest / 60).toFixed(1)} a second on
            average. {callsAtOnce ? `${capacityWords(fullest, callsAtOnce)} ` : ""}
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
