/** Subscriptions: addresses that get messages about failures, recoveries and overdue jobs, and how deliveries go. */

import type { Shapes } from "minute8-client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useLoad } from "../lib/load";
import { api, may } from "../lib/session";
import { Ask, Field, say } from "../ui/actions";
import { Card, Empty, Head, Problem, State, Text, Time, Waiting } from "../ui/parts";

type Subscription = Shapes["SubscriptionView"];
type Kind = "failures" | "recoveries" | "overdue";
type Dialog = { kind: "edit"; of: Subscription | null } | { kind: "delete"; of: Subscription };

const KINDS: readonly Kind[] = ["failures", "recoveries", "overdue"];

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
      say(error instanceof Error ? error.message : String(error));
    }
    found.reload();
  };
  return (
    <>
      <Head title="Subscriptions" sub="Addresses that get messages about failures, recoveries and overdue jobs.">
        {may("write") ? (
          <button type="button" class="primary" onClick={() => setDialog({ kind: "edit", of: null })}>
            New subscription
          </button>
        ) : null}
      </Head>
      <Problem error={found.error} retry={found.reload} />
      <Card>
        {!found.data ? (
          <Waiting />
        ) : found.data.length ? (
          <div class="scroll">
            <table aria-label="Subscriptions">
              <thead>
                <tr>
                  <th scope="col">Name</th>
                  <th scope="col">Delivery</th>
                  <th scope="col">Address</th>
                  <th scope="col">Reports</th>
                  <th scope="col">Last message</th>
                  <th scope="col">
                    <span class="sr">Actions</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {found.data.map((one) => (
                  <tr key={one.name}>
                    <td class="mono">{one.name}</td>
                    <td class="wrap">
                      <State state={one.delivery.state} /> <Result of={one} />
                    </td>
                    <td class="wrap mono">
                      <Text>{addressOf(one)}</Text>
                    </td>
                    <td class="wrap">
                      <Text>{reportsOf(one)}</Text>
                    </td>
                    <td>{one.delivery.delivered_at ? <Time at={one.delivery.delivered_at} /> : "none"}</td>
                    <td>
                      {may("write") ? (
                        <div class="actions">
                          <button type="button" class="quiet" onClick={() => test(one.name)}>
                            Test
                          </button>
                          <button type="button" class="quiet" onClick={() => setDialog({ kind: "edit", of: one })}>
                            Edit
                          </button>
                          <button type="button" class="quiet" onClick={() => setDialog({ kind: "delete", of: one })}>
                            Delete
                          </button>
                        </div>
                      ) : null}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        ) : (
          <Empty title="No subscriptions yet">
            A subscription sends one message about a bad night, and not one for each failed run.
          </Empty>
        )}
      </Card>
      {dialog?.kind === "edit" ? <Edit of={dialog.of} close={close} changed={found.reload} /> : null}
      {dialog?.kind === "delete" ? <Delete name={dialog.of.name} close={close} changed={found.reload} /> : null}
    </>
  );
}

/** What the last try or test came to, and what waits. */
function Result({ of }: { of: Subscription }): JSX.Element {
  const { delivery } = of;
  const waiting = delivery.waiting.failed + delivery.waiting.overdue + delivery.waiting.recovered;
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

function addressOf(one: Subscription): string {
  return String(one.target.url ?? one.target.arn);
}

function reportsOf(one: Subscription): string {
  const of = [
    one.job_id ? `of ${one.job_id}` : "",
    one.name_prefix ? `of ${one.name_prefix}…` : "",
    one.tag ? `tagged ${one.tag}` : "",
  ].filter(Boolean);
  return [one.kinds.join(", "), ...of, `after ${one.delay_s} s`, `grouped by ${one.group_s} s`].join(", ");
}

function Edit(props: { of: Subscription | null; close: () => void; changed: () => void }): JSX.Element {
  const before = props.of;
  const [name, setName] = useState(before?.name ?? "");
  const [address, setAddress] = useState(before ? addressOf(before) : "");
  const [kinds, setKinds] = useState<readonly string[]>(before?.kinds ?? KINDS);
  const [tag, setTag] = useState(before?.tag ?? "");
  const [delay, setDelay] = useState(String(before?.delay_s ?? 60));
  const [group, setGroup] = useState(String(before?.group_s ?? 3600));
  const act = async () => {
    const body = {
      target: address.startsWith("arn:")
        ? { kind: "sns" as const, arn: address }
        : { kind: "http" as const, url: address },
      kinds: KINDS.filter((kind) => kinds.includes(kind)),
      ...(tag ? { tag } : {}),
      ...(before?.job_id ? { job_id: before.job_id } : {}),
      ...(before?.name_prefix ? { name_prefix: before.name_prefix } : {}),
      delay_s: Number(delay),
      group_s: Number(group),
    };
    await api().put("/v1/subscriptions/{name}", { path: { name }, body });
    props.changed();
    say(`${name} is stored`);
  };
  return (
    <Ask title={before ? `Edit ${name}` : "New subscription"} verb="Store" act={act} close={props.close}>
      {before ? null : (
        <Field label="Name" wide>
          {(attributes) => (
            <input {...attributes} required value={name} onInput={(event) => setName(event.currentTarget.value)} />
          )}
        </Field>
      )}
      <Field label="Address" hint="The URL of a webhook, or the ARN of an SNS topic." wide>
        {(attributes) => (
          <input {...attributes} required value={address} onInput={(event) => setAddress(event.currentTarget.value)} />
        )}
      </Field>
      <fieldset class="field wide">
        <legend>Reports</legend>
        {KINDS.map((kind) => (
          <label key={kind}>
            <input
              type="checkbox"
              checked={kinds.includes(kind)}
              onChange={(event) =>
                setKinds(event.currentTarget.checked ? [...kinds, kind] : kinds.filter((one) => one !== kind))
              }
            />{" "}
            {kind}
          </label>
        ))}
      </fieldset>
      <Field label="Tag" hint="Only jobs with this tag." wide>
        {(attributes) => <input {...attributes} value={tag} onInput={(event) => setTag(event.currentTarget.value)} />}
      </Field>
      <Field label="Delay" hint="Seconds. What ends within them is not reported.">
        {(attributes) => (
          <input
            {...attributes}
            type="number"
            min="0"
            max="86400"
            value={delay}
            onInput={(event) => setDelay(event.currentTarget.value)}
          />
        )}
      </Field>
      <Field label="Group" hint="Seconds after a message without another one.">
        {(attributes) => (
          <input
            {...attributes}
            type="number"
            min="0"
            max="86400"
            value={group}
            onInput={(event) => setGroup(event.currentTarget.value)}
          />
        )}
      </Field>
    </Ask>
  );
}

function Delete(props: { name: string; close: () => void; changed: () => void }): JSX.Element {
  const act = async () => {
    await api().delete("/v1/subscriptions/{name}", { path: { name: props.name } });
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
