/** Months as grids of days, some of them chosen; the keyboard moves by days and weeks. */

import type { JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { dayAfter, monthAfter, monthOf, monthWords, weeksOf } from "../lib/months";
import { now } from "../lib/time";

interface Days {
  chosen: ReadonlySet<string>;
  today: string;
  /** Choose a day or leave it; the days are only shown otherwise. */
  toggle?: ((date: string) => void) | undefined;
  /** The day that Tab reaches. */
  reached: string;
}

const WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const STEPS: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -7, ArrowDown: 7 };

/** Some months beside one another, at first that of the next chosen day. */
export function Months(props: {
  label: string;
  chosen: readonly string[];
  count?: number;
  toggle?: (date: string) => void;
}): JSX.Element {
  const { count = 1, toggle } = props;
  const today = new Date(now.value).toISOString().slice(0, 10);
  const chosen = new Set(props.chosen);
  const [day, setDay] = useState(() => [...chosen].sort().find((date) => date >= today) ?? today);
  const [first, setFirst] = useState(monthOf(day));
  const box = useRef<HTMLFieldSetElement>(null);
  const moved = useRef(false);
  // Before the next key comes.
  useLayoutEffect(() => {
    if (moved.current) box.current?.querySelector<HTMLElement>(`[data-date="${day}"]`)?.focus();
    moved.current = false;
  });
  const turn = (months: number) => {
    setFirst(monthAfter(first, months));
    setDay(`${monthAfter(first, months)}-01`);
  };
  const press = (event: KeyboardEvent) => {
    const step = STEPS[event.key];
    if (!toggle || !step || !(event.target as HTMLElement).dataset.date) return;
    event.preventDefault();
    const next = dayAfter(day, step);
    moved.current = true;
    setDay(next);
    if (monthOf(next) < first || monthOf(next) >= monthAfter(first, count)) setFirst(monthOf(next));
  };
  const choose =
    toggle &&
    ((date: string) => {
      setDay(date);
      toggle(date);
    });
  const days = { chosen, today, toggle: choose, reached: day };
  return (
    <fieldset class="months" ref={box} onKeyDown={press}>
      <legend class="sr">{props.label}</legend>
      <div class="turn">
        <button type="button" class="quiet" aria-label="Earlier months" onClick={() => turn(-count)}>
          ‹
        </button>
        <button type="button" class="quiet" aria-label="Later months" onClick={() => turn(count)}>
          ›
        </button>
      </div>
      {Array.from({ length: count }, (_, n) => monthAfter(first, n)).map((month) => (
        <Month key={month} month={month} days={days} />
      ))}
    </fieldset>
  );
}

function Month({ month, days }: { month: string; days: Days }): JSX.Element {
  return (
    <table class="month" aria-label={monthWords(month)}>
      <caption>{monthWords(month)}</caption>
      <thead>
        <tr>
          {WEEKDAYS.map((name) => (
            <th key={name} scope="col" abbr={name}>
              {name.slice(0, 2)}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {weeksOf(month).map((week, n) => (
          <tr key={n}>
            {week.map((date, weekday) => (
              <td key={weekday}>{date ? <Day date={date} days={days} /> : null}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Day({ date, days }: { date: string; days: Days }): JSX.Element {
  const { toggle } = days;
  const isChosen = days.chosen.has(date);
  const shown = Number(date.slice(8));
  const current = date === days.today ? { "aria-current": "date" as const } : {};
  if (!toggle)
    return (
      <span class={isChosen ? "day-of chosen" : "day-of"} {...current}>
        {shown}
        {isChosen ? <span class="sr"> is one of the dates</span> : null}
      </span>
    );
  return (
    <button
      type="button"
      class="day-of"
      data-date={date}
      aria-label={date}
      aria-pressed={isChosen}
      tabIndex={date === days.reached ? 0 : -1}
      {...current}
      onClick={() => toggle(date)}
    >
      {shown}
    </button>
  );
}
