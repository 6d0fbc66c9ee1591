/** Calendars: dates on which the jobs that name them do not fire. */

import type { Shapes } from "minute8-client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useLoad } from "../lib/load";
import { partsOf, toggled } from "../lib/months";
import { to } from "../lib/router";
import { api, may } from "../lib/session";
import { counted } from "../lib/words";
import { Ask, Input, say } from "../ui/actions";
import { Months } from "../ui/months";
import { Card, Empty, Found, Head, Text, Time } from "../ui/parts";
import { actions, type Column, List } from "../ui/table";

const SHOWN_MONTHS = 6;

type Calendar = Shapes["CalendarView"];
type Dialog = { kind: "edit"; calendar: Calendar | null } | { kind: "delete"; calendar: Calendar };

export function Calendars({ name }: { name: string | undefined }): JSX.Element {
  const [dialog, setDialog] = useState<Dialog>();
  const found = useLoad("calendars", async (signal) => {
    const calendars: Calendar[] = [];
    for await (const page of api().pages("/v1/calendars", { query: { limit: 200 }, signal }))
      calendars.push(...page.calendars);
    return calendars;
  });
  const close = () => setDialog(undefined);
  const shown = found.data?.find((calendar) => calendar.name === name) ?? found.data?.[0];
  return (
    <>
      <Head title="Calendars" sub="Dates on which the jobs that name them do not fire.">
        {may("write") ? (
          <button type="button" class="primary" onClick={() => setDialog({ kind: "edit", calendar: null })}>
            New calendar
          </button>
        ) : null}
      </Head>
      <Card>
        <Found found={found}>
          {(calendars) => (
            <List
              label="Calendars"
              columns={columns(setDialog)}
              rows={calendars}
              keyOf={(calendar) => calendar.name}
              empty={
                <Empty title="No calendars yet">
                  <code>minute8 calendars put holidays --country DE</code> makes one of a country’s public holidays.
                </Empty>
              }
            />
          )}
        </Found>
      </Card>
      {shown ? (
        <Card title={shown.name} side={counted(shown.dates.length, "date")}>
          <Months key={shown.name} label={`Dates of ${shown.name}`} chosen={shown.dates} count={SHOWN_MONTHS} />
        </Card>
      ) : null}
      {dialog?.kind === "edit" ? <Edit calendar={dialog.calendar} close={close} changed={found.reload} /> : null}
      {dialog?.kind === "delete" ? <Delete name={dialog.calendar.name} close={close} changed={found.reload} /> : null}
    </>
  );
}

function columns(ask: (dialog: Dialog) => void): Column<Calendar>[] {
  return [
    {
      name: "Name",
      class: "clip mono",
      cell: (calendar) => <a href={to(["calendars", calendar.name])}>{calendar.name}</a>,
    },
    { name: "Dates", class: "num", cell: (calendar) => calendar.dates.length },
    {
      name: "The next",
      class: "wrap mono",
      cell: (calendar) => coming(calendar.dates).slice(0, 4).join(", ") || "none to come",
    },
    { name: "Stored", cell: (calendar) => <Time at={calendar.updated_at} /> },
    ...(may("write")
      ? [
          actions<Calendar>((calendar) => (
            <div class="actions">
              <button type="button" onClick={() => ask({ kind: "edit", calendar })}>
                Edit
              </button>
              <button type="button" onClick={() => ask({ kind: "delete", calendar })}>
                Delete
              </button>
            </div>
          )),
        ]
      : []),
  ];
}

function coming(dates: readonly string[]): string[] {
  const today = new Date().toISOString().slice(0, 10);
  return dates.filter((date) => date >= today).sort();
}

function Edit(props: { calendar: Calendar | null; close: () => void; changed: () => void }): JSX.Element {
  const [name, setName] = useState(props.calendar?.name ?? "");
  const [dates, setDates] = useState((props.calendar?.dates ?? []).join("\n"));
  const act = async () => {
    const body = { dates: partsOf(dates) };
    const revision = props.calendar?.revision;
    await api().put("/v1/calendars/{name}", { path: { name }, body, ...(revision ? { revision } : {}) });
    props.changed();
    say(`${name} is stored with ${body.dates.length} dates`);
  };
  return (
    <Ask title={props.calendar ? `Edit ${name}` : "New calendar"} verb="Store" act={act} close={props.close}>
      {props.calendar ? null : <Input label="Name" wide required value={name} set={setName} />}
      <Months
        label="Choose dates"
        chosen={partsOf(dates)}
        toggle={(date) => setDates(toggled(partsOf(dates), date).join("\n"))}
      />
      <Input label="Dates" hint="One a line, such as 2026-12-24." wide rows={6} value={dates} set={setDates} />
    </Ask>
  );
}

function Delete(props: { name: string; close: () => void; changed: () => void }): JSX.Element {
  const act = async () => {
    await api().delete("/v1/calendars/{name}", { path: { name: props.name } });
    say(`${props.name} is deleted`);
    props.changed();
  };
  return (
    <Ask title="Delete this calendar" verb="Delete" danger act={act} close={props.close}>
      <p>
        <Text>{props.name}</Text> can be deleted only if no job names it.
      </p>
    </Ask>
  );
}
