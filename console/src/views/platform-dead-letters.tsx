/** Dead letters: what a function failed on until it was given up; an operator sends it again or discards it. */

import type { Shapes } from "minute8-client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { eachOnce } from "../lib/bulk";
import { useLoad } from "../lib/load";
import { api } from "../lib/session";
import { Ask, say } from "../ui/actions";
import { Card, Empty, Found, Text, Time } from "../ui/parts";
import { actions, type Column, List } from "../ui/table";

type DeadLetter = Shapes["DeadLetter"];
type Queue = Shapes["DeadLetterCount"]["queue"];
type Verb = "redrive" | "discard";
type Asked = { verb: Verb; queue: Queue; deadLetter?: DeadLetter };

const TITLES: Record<Verb, string> = { redrive: "Send again", discard: "Discard" };

export function DeadLetters(): JSX.Element {
  const [asked, ask] = useState<Asked>();
  const [shown, show] = useState<Queue>();
  const found = useLoad("dead letters", (signal) => api().get("/v1/dead-letters", { signal }), 30);
  return (
    <Card title="Dead letters">
      <Found found={found} lines={1}>
        {({ queues }) =>
          queues.some((queue) => queue.dead_letters) ? (
            queues
              .filter((queue) => queue.dead_letters)
              .map(({ queue, dead_letters }) => (
                <div key={queue} class="apart">
                  <div class="actions">
                    <strong class="bad">
                      {dead_letters.toLocaleString("en")} of {queue}
                    </strong>
                    <button type="button" aria-expanded={shown === queue} onClick={() => show(queue)}>
                      Show
                    </button>
                    <button type="button" onClick={() => ask({ verb: "redrive", queue })}>
                      Send all again
                    </button>
                    <button type="button" class="danger" onClick={() => ask({ verb: "discard", queue })}>
                      Discard all
                    </button>
                  </div>
                  {shown === queue ? <DeadLettersOf queue={queue} count={dead_letters} ask={ask} /> : null}
                </div>
              ))
          ) : (
            <Empty title="No message was given up">Executions, shares and outcomes all went through.</Empty>
          )
        }
      </Found>
      {asked ? <Sure {...asked} close={() => ask(undefined)} changed={found.reload} /> : null}
    </Card>
  );
}

function DeadLettersOf(props: { queue: Queue; count: number; ask: (asked: Asked) => void }): JSX.Element {
  const { queue } = props;
  const path = { queue };
  const found = useLoad(`dead letters ${queue} ${props.count}`, (signal) =>
    api().get("/v1/dead-letters/{queue}", { path, signal }),
  );
  return (
    <Found found={found} lines={2}>
      {({ dead_letters, more }) => (
        <>
          <List
            label={`Dead letters of ${queue}`}
            columns={columns(queue, props.ask)}
            rows={dead_letters}
            keyOf={(deadLetter) => deadLetter.message_id}
          />
          {more ? <p class="hint">There may be more than these {dead_letters.length}.</p> : null}
        </>
      )}
    </Found>
  );
}

function columns(queue: Queue, ask: (asked: Asked) => void): Column<DeadLetter>[] {
  return [
    { name: "Sent", cell: (deadLetter) => <Time at={deadLetter.sent_at} /> },
    {
      name: "About",
      class: "wrap",
      cell: (deadLetter) => (
        <>
          {deadLetter.about.map((line) => (
            <div key={line} class="mono">
              <Text>{line}</Text>
            </div>
          ))}
          {deadLetter.problem ? <Text most={400}>{deadLetter.problem}</Text> : null}
          {deadLetter.about.length || deadLetter.problem ? null : `${deadLetter.bytes} bytes`}
        </>
      ),
    },
    actions((deadLetter) => (
      <div class="actions">
        {deadLetter.problem ? null : (
          <button type="button" onClick={() => ask({ verb: "redrive", queue, deadLetter })}>
            Send again
          </button>
        )}
        <button type="button" onClick={() => ask({ verb: "discard", queue, deadLetter })}>
          Discard
        </button>
      </div>
    )),
  ];
}

function Sure(props: Asked & { close: () => void; changed: () => void }): JSX.Element {
  const { verb, queue, deadLetter } = props;
  const act = async () => {
    const request = (since: { began_at?: string }) => {
      const body = deadLetter ? { message_ids: [deadLetter.message_id], ...since } : { all: true, ...since };
      const asked = { path: { queue }, body };
      return verb === "redrive"
        ? api().post("/v1/dead-letters/{queue}/redrive", asked)
        : api().post("/v1/dead-letters/{queue}/discard", asked);
    };
    const sum = await eachOnce(request);
    const refused = sum.left.filter((each) => each.problem?.startsWith("refused again: ")).length;
    const stay = sum.left.length - refused;
    say(
      [`${TITLES[verb]}: ${sum.done} of ${queue}`, refused && `${refused} refused again`, stay && `${stay} stay`]
        .filter(Boolean)
        .join(", ") + (sum.more ? "; there may be more" : ""),
    );
    props.changed();
  };
  return (
    <Ask title={TITLES[verb]} verb={TITLES[verb]} danger={verb === "discard"} act={act} close={props.close}>
      <p>
        {deadLetter ? "One message" : "All messages"} of <code>{queue}</code>.{" "}
        {verb === "redrive"
          ? "An execution that has run meanwhile does not run again. What cannot be read stays."
          : "They are deleted. An execution that has not run never will: it shows as no record."}
      </p>
    </Ask>
  );
}
