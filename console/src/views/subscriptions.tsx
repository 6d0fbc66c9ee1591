/** Subscriptions: addresses that get messages about failures, recoveries and overdue jobs, and how deliveries go. */

import type { Shapes } from "minute8-client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useLoad } from "../lib/load";
import { api } from "../lib/session";
import { inUnits, secondsOf } from "../lib/time";
import { Ask, Input, say, sayWhy } from "../ui/actions";
import { State, Text, Time } from "../ui/parts";
import { type Edit, Resource } from "../ui/resource";
import type { Column } from "../ui/table";

type Subscription = Shapes["SubscriptionView"];

const KINDS = ["failures", "recoveries", "overdue", "not_running", "too_long", "too_short", "no_success"] as const;

const COLUMNS: Column<Subscription>[] = [
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
];

export function Subscriptions(): JSX.Element {
  const found = useLoad(
    "subscriptions",
    async (signal) => (await api().get("/v1/subscriptions", { signal })).subscriptions,
    10,
  );
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
    <Resource
      kind="subscription"
      sub="Addresses that hear of what fails, recovers or does not run."
      found={found}
      columns={COLUMNS}
      empty="A subscription sends one message about a bad night, and not one for each failed run."
      verb="Edit"
      buttons={({ name }) => (
        <button type="button" onClick={() => test(name)}>
          Test
        </button>
      )}
      Edit={EditSubscription}
      warning="hears nothing more; what waits for it is not sent."
    />
  );
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

const EditSubscription: Edit<Subscription> = (props) => {
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
};
