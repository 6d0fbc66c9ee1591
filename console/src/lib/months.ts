/** Months as weeks of days. A date is a text such as `2026-12-24`, a month `2026-12`. Pure. */

import { DAY } from "./time";

const instantOf = (date: string) => Date.parse(`${date}T00:00:00Z`);
const dateOf = (at: number) => new Date(at).toISOString().slice(0, 10);

export function monthOf(date: string): string {
  return date.slice(0, 7);
}

export function dayAfter(date: string, days: number): string {
  return dateOf(instantOf(date) + days * DAY);
}

export function monthAfter(month: string, months: number): string {
  const [year = 0, number = 1] = month.split("-").map(Number);
  return monthOf(dateOf(Date.UTC(year, number - 1 + months, 1)));
}

/** `December 2026`. */
export function monthWords(month: string): string {
  return new Date(instantOf(`${month}-01`)).toLocaleDateString("en", {
    ...{ month: "long", year: "numeric", timeZone: "UTC" },
  } as const);
}

/** The weeks of a month, from Monday on; days of other months are undefined. */
export function weeksOf(month: string): (string | undefined)[][] {
  const first = `${month}-01`;
  const begin = dayAfter(first, -((new Date(instantOf(first)).getUTCDay() + 6) % 7));
  const weeks: (string | undefined)[][] = [];
  for (let monday = begin; monthOf(monday) <= month; monday = dayAfter(monday, 7)) {
    const days = Array.from({ length: 7 }, (_, n) => dayAfter(monday, n));
    weeks.push(days.map((day) => (monthOf(day) === month ? day : undefined)));
  }
  return weeks;
}

/** The texts of a list that spaces, commas or lines part. */
export function partsOf(text: string): string[] {
  return text.split(/[\s,]+/).filter(Boolean);
}

/** The list with one more, in order, or without it if it was there. */
export function toggled(list: readonly string[], text: string): string[] {
  return list.includes(text) ? list.filter((other) => other !== text) : [...list, text].sort();
}
