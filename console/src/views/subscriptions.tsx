/** Subscriptions: addresses that get messages about failures, recoveries and overdue jobs, and how deliveries go. */

import type { Shapes } from "minute8-client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useLoad } from "../lib/load";
import { api, may } from "../lib/session";
import { inUnits, secondsOf } from "../lib/time";
import { Ask, Input, say, sayWhy } from "../ui/actions";
import { Card, Empty, Found, Head, State, Text, Time } from "../ui/parts";
import { actions, type Column, List } from "../ui/table";

type Subscription = Shapes["SubscriptionView"];
type Dialog = { kind: "edit"; of: Subscription | null } | { kind: "delete"; of: Subscription };

const KINDS = ["failures", "recoveries", "overdue", "not_running", "too_long", "too_short", "no_success"] as const;

export function Subscriptions(): JSX.Element {
  const [dialog, setDialog] = useState<Dialog>();
  const found = useLoad(
    "subscriptions",
    async (signal) => (await api().get("/v1/subscriptions", { signal })).subscriptions,
    10,
  );
  const close = () => setDialog(undefined);
  const test = async (name: string) => {
    try {
      await api().post("/v1/subscriptions/{name}/test", { path: { name } });
      say(`A test message goes to ${name} within two minutes`);
    } catch (error) {
      sayWhy(error);
    }
    found.reload();
  };
  return (
    <>
      <Head title="Subscriptions" sub="Addresses that hear of what fails, recovers or does not run.">
        {may("write") ? (
          <button type="button" class="primary" onClick={() => setDialog({ kind: "edit", of: null })}>
            New subscription
          </button>
        ) : null}
      </Head>
      <Card>
        <Found found={found}>
          {(subscriptions) => (
            <List
              label="Subscriptions"
              columns={columns(test, setDialog)}
              rows={subscriptions}
              keyOf={(subscription) => subscription.name}
              empty={
                <Empty title="No subscriptions yet">
                  A subscription sends one message about a bad night, and not one for each failed run.
                </Empty>
              }
            />
          )}
        </Found>
      </Card>
      {dialog?.kind === "edit" ? <Edit of={dialog.of} close={close} changed={found.reload} /> : null}
      {dialog?.kind === "delete" ? <Delete name={dialog.of.name} close={close} changed={found.reload} /> : null}
    </>
  );
}

function columns(test: (name: string) => void, ask: (dialog: Dialog) => void): Column<Subscription>[] {
  return [
    { name: "Name", class: "clip mono", cell: (subscription) => subscription.name },
    {
      name: "Delivery",
      class: "wrap",
      cell: (subscription) => (
        <>
          <State state={subscription.delivery.state} /> <Result of={subscription} />
        </>
      ),
    },
    { name: "Address", class: "clip mono", cell: (subscription) => <Text>{addressOf(subscription)}</Text> },
    { name: "Reports", class: "clip", cell: (subscription) => <Text>{reportsOf(subscription)}</Text> },
    {
      name: "Last message",
      cell: ({ delivery }) => (delivery.delivered_at ? <Time at={delivery.delivered_at} /> : "none"),
    },
    ...(may("write")
      ? [
          actions<Subscription>((subscription) => (
            <div class="actions">
              <button type="button" onClick={() => test(subscription.name)}>
                Test
              </button>
              <button type="button" onClick={() => ask({ kind: "edit", of: subscription })}>
                Edit
              </button>
              <button type="button" onClick={() => ask({ kind: "delete", of: subscription })}>
                Delete
              </button>
            </div>
          )),
        ]
      : []),
  ];
}

/** What the last try or test came to, and what waits. */
function Result({ of }: { of: Subscription }): JSX.Element {
  const { delivery } = of;
  const waiting = Object.values(delivery.waiting).reduce((sum, jobs) => sum + jobs, 0);
  const problem = delivery.last_try && !delivery.last_try.ok ? delivery.last_try.error : "";
  return (
    <>
      {problem ? <Text>{problem}</Text> : null}
      {delivery.test_waits ? <div class="hint">A test message waits to be sent.</div> : null}
      {!delivery.test_waits && delivery.last_test ? (
        <div class="hint">
          {delivery.last_test.ok ? "The test arrived" : <Text>{`The test failed: ${delivery.last_test.error}`}</Text>}{" "}
          <Time at={delivery.last_test.at} />
        </div>
      ) : null}
      {waiting ? <div class="hint">{waiting} to report</div> : null}
    </>
  );
}

function addressOf(subscription: Subscription): string {
  return String(subscription.target.url ?? subscription.target.arn);
}

function reportsOf(subscription: Subscription): string {
  const of = [
    subscription.job_id ? `of ${subscription.job_id}` : "",
    subscription.name_prefix ? `of ${subscription.name_prefix}…` : "",
    subscription.tag ? `tagged ${subscription.tag}` : "",
  ].filter(Boolean);
  return [
    subscription.kinds.join(", ").replaceAll("_", " "),
    ...of,
    `after ${inUnits(subscription.delay_s)}`,
    `grouped by ${inUnits(subscription.group_s)}`,
  ].join(", ");
}

function Edit(props: { of: Subscription | null; close: () => void; changed: () => void }): JSX.Element {
  const before = props.of;
  const [name, setName] = useState(before?.name ?? "");
  const [address, setAddress] = useState(before ? addressOf(before) : "");
  const [kinds, setKinds] = useState<readonly string[]>(before?.kinds ?? KINDS);
  const [job, setJob] = useState(before?.job_id ?? "");
  const [prefix, setPrefix] = useState(before?.name_prefix ?? "");
  const [tag, setTag] = useState(before?.tag ?? "");
  const [delay, setDelay] = useState(inUnits(before?.delay_s ?? 60));
  const [group, setGroup] = useState(inUnits(before?.group_s ?? 3600));
  const act = async () => {
    const body = {
      target: address.startsWith("arn:")
        ? { kind: "sns" as const, arn: address }
        : { kind: "http" as const, url: address },
      kinds: KINDS.filter((kind) => kinds.includes(kind)),
      ...(job ? { job_id: job } : {}),
      ...(prefix ? { name_prefix: prefix } : {}),
      ...(tag ? { tag } : {}),
      delay_s: secondsOf(delay),
      group_s: secondsOf(group),
    };
    await api().put("/v1/subscriptions/{name}", { path: { name }, body });
    props.changed();
    say(`${name} is stored`);
  };
  return (
    <Ask title={before ? `Edit ${name}` : "New subscription"} verb="Store" act={act} close={props.close}>
      {before ? null : <Input label="Name" wide required value={name} set={setName} />}
      <Input
        label="Address"
        hint="The URL of a webhook, or the ARN of an SNS topic."
        wide
        required
        value={address}
        set={setAddress}
      />
      <fieldset class="field wide">
        <legend>Reports</legend>
        {KINDS.map((kind) => (
          <label key={kind}>
            <input
              type="checkbox"
              checked={kinds.includes(kind)}
              onChange={(event) =>
                setKinds(event.currentTarget.checked ? [...kinds, kind] : kinds.filter((known) => known !== kind))
              }
            />{" "}
            {kind.replaceAll("_", " ")}
          </label>
        ))}
      </fieldset>
      <Input label="Job" hint="Only this job; all if empty." value={job} set={setJob} />
      <Input label="Prefix" hint="Only jobs whose id or name begins so." value={prefix} set={setPrefix} />
      <Input label="Tag" hint="Only jobs with this tag." value={tag} set={setTag} />
      <Input
        label="Delay"
        hint="Such as 90 s or 5 min. Failures that end sooner are not reported."
        value={delay}
        set={setDelay}
      />
      <Input label="Group" hint="Such as 1 h: between two messages, at least." value={group} set={setGroup} />
    </Ask>
  );
}

function Delete(props: { name: string; close: () => void; changed: () => void }): JSX.Element {
  const act = async () => {
    await api().delete("/v1/subscriptions/{name}", { path: { name: props.name } });
    say(`${props.name} is deleted`);
    props.changed();
  };
  return (
    <Ask title="Delete this subscription" verb="Delete" danger act={act} close={props.close}>
      <p>
        What waits for <Text>{props.name}</Text> is not sent.
      </p>
    </Ask>
  );
}
