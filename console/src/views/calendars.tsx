/** Calendars: dates on which the jobs that name them do not fire. */

import type { Shapes } from "minute8-client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useLoad } from "../lib/load";
import { partsOf, toggled } from "../lib/months";
import { to } from "../lib/router";
import { api } from "../lib/session";
import { counted } from "../lib/words";
import { Ask, Input, say } from "../ui/actions";
import { Months } from "../ui/months";
import { Card, Time } from "../ui/parts";
import { type Edit, Resource } from "../ui/resource";
import type { Column } from "../ui/table";

const SHOWN_MONTHS = 6;

type Calendar = Shapes["CalendarView"];

const COLUMNS: Column<Calendar>[] = [
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
];

export function Calendars({ name }: { name: string | undefined }): JSX.Element {
  const found = useLoad("calendars", async (signal) => {
    const calendars: Calendar[] = [];
    for await (const page of api().pages("/v1/calendars", { query: { limit: 200 }, signal }))
      calendars.push(...page.calendars);
    return calendars;
  });
  const shown = found.data?.find((calendar) => calendar.name === name) ?? found.data?.[0];
  return (
    <>
      <Resource
        kind="calendar"
        sub="Dates on which the jobs that name them do not fire."
        found={found}
        columns={COLUMNS}
        empty={
          <>
            <code>minute8 calendars put holidays --country DE</code> makes one of a country’s public holidays.
          </>
        }
        verb="Edit"
        Edit={EditCalendar}
        warning="can be deleted only if no job names it."
      />
      {shown ? (
        <Card title={shown.name} side={counted(shown.dates.length, "date")}>
          <Months key={shown.name} label={`Dates of ${shown.name}`} chosen={shown.dates} count={SHOWN_MONTHS} />
        </Card>
      ) : null}
    </>
  );
}

function coming(dates: readonly string[]): string[] {
  const today = new Date().toISOString().slice(0, 10);
  return dates.filter((date) => date >= today).sort();
}

const EditCalendar: Edit<Calendar> = (props) => {
  const [name, setName] = useState(props.of?.name ?? "");
  const [dates, setDates] = useState((props.of?.dates ?? []).join("\n"));
  const act = async () => {
    const body = { dates: partsOf(dates) };
    const revision = props.of?.revision;
    await api().put("/v1/calendars/{name}", { path: { name }, body, ...(revision ? { revision } : {}) });
    props.changed();
    say(`${name} is stored with ${body.dates.length} dates`);
  };
  return (
    <Ask title={props.of ? `Edit ${name}` : "New calendar"} verb="Store" act={act} close={props.close}>
      {props.of ? null : <Input label="Name" wide required value={name} set={setName} />}
      <Months
        label="Choose dates"
        chosen={partsOf(dates)}
        toggle={(date) => setDates(toggled(partsOf(dates), date).join("\n"))}
      />
      <Input label="Dates" hint="One a line, such as 2026-12-24." wide rows={6} value={dates} set={setDates} />
    </Ask>
  );
};
