/** Instants and durations as people read them. Everything here is pure but `now` and the chosen zone. */

import { signal } from "@preact/signals";

export type ZoneChoice = "utc" | "job" | "browser";

export const BROWSER_ZONE = new Intl.DateTimeFormat().resolvedOptions().timeZone;
export const zoneChoice = signal<ZoneChoice>("utc");
export const relative = signal(false);
/** The present in ms, as far as pages show it. */
export const now = signal(Date.now());

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

const formats = new Map<string, Intl.DateTimeFormat>();

function formatOf(zone: string): Intl.DateTimeFormat {
  let format = formats.get(zone);
  if (!format) {
    const options: Intl.DateTimeFormatOptions = {
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
      hourCycle: "h23",
      weekday: "short",
      timeZoneName: "longOffset",
    };
    try {
      format = new Intl.DateTimeFormat("en-GB", { ...options, timeZone: zone });
    } catch {
      // A zone that this browser does not know yet.
      format = new Intl.DateTimeFormat("en-GB", { ...options, timeZone: "UTC" });
    }
    formats.set(zone, format);
  }
  return format;
}

export interface LocalTime {
  date: string;
  time: string;
  weekday: string;
  /** `+01:00`. */
  offset: string;
}

/** An instant (ms) on the clock of a zone. */
export function local(at: number, zone: string): LocalTime {
  const parts: Record<string, string> = {};
  for (const part of formatOf(zone).formatToParts(at)) parts[part.type] = part.value;
  const offset = (parts.timeZoneName ?? "").replace("GMT", "") || "+00:00";
  return {
    date: `${parts.year}-${parts.month}-${parts.day}`,
    time: `${parts.hour}:${parts.minute}:${parts.second}`,
    weekday: parts.weekday ?? "",
    offset,
  };
}

/** The zone that a time is shown in, where the job's own zone is `jobs`. */
export function zoneOf(choice: ZoneChoice, jobs: string | undefined): string {
  if (choice === "browser") return BROWSER_ZONE;
  return choice === "job" && jobs ? jobs : "UTC";
}

/** `2026-11-22 03:18:00`; without its date if that is today's. */
export function absolute(at: number, zone: string, today?: number): string {
  const shown = local(at, zone);
  const isToday = today !== undefined && local(today, zone).date === shown.date;
  return isToday ? shown.time : `${shown.date} ${shown.time}`;
}

/** `in 3 min`, `2 h ago`. */
export function fromNow(at: number, present: number): string {
  const apart = at - present;
  if (Math.abs(apart) < 1000) return "now";
  const text = span(Math.abs(apart) / 1000);
  return apart > 0 ? `in ${text}` : `${text} ago`;
}

/** A span in its largest unit: `42 s`, `3 min`, `2 h`, `5 d`. */
export function span(seconds: number): string {
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

const UNITS_S: Record<string, number> = { d: 86_400, h: 3600, min: 60, s: 1 };

/** Whole seconds in the longest unit that says them exactly: `1 h`, `90 s`. */
export function inUnits(seconds: number): string {
  const [unit, length] = Object.entries(UNITS_S).find(([, length]) => seconds && seconds % length === 0) ?? ["s", 1];
  return `${seconds / length} ${unit}`;
}

/** The inverse: seconds of `1 h`, `5 min`, `90 s` or `90`. Throws what else would be taken. */
export function secondsOf(text: string): number {
  const [, count, unit = "s"] = /^\s*(\d+)\s*(d|h|min|s)?\s*$/.exec(text) ?? [];
  if (!count) throw new Error(`"${text}" is no time; accepted: such as 90 s, 5 min, 1 h`);
  return Number(count) * (UNITS_S[unit] ?? 1);
}

/** A measured duration, exact where that matters: `31 ms`, `4.20 s`, `3 min 5 s`. */
export function duration(seconds: number): string {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 2 : 1)} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

/** The instant (ms) that a local time such as `2026-11-22T03:18` is on the clock of a zone; NaN if it is none. */
export function instantOf(text: string, zone: string): number {
  const asUtc = Date.parse(`${text}Z`);
  if (Number.isNaN(asUtc)) return asUtc;
  const shift = (at: number) => {
    const shown = local(at, zone);
    return Date.parse(`${shown.date}T${shown.time}Z`) - at;
  };
  // The offset of the instant itself, which a clock change may lie before.
  return asUtc - shift(asUtc - shift(asUtc));
}

/** A local time as a field of the browser takes it. */
export function localField(at: number, zone: string): string {
  const { date, time } = local(at, zone);
  return `${date}T${time.slice(0, 5)}`;
}

/** RFC 3339 of an instant, in whole seconds, as the API takes it. */
export function rfc3339(at: number): string {
  return new Date(Math.floor(at / 1000) * 1000).toISOString().replace(".000Z", "Z");
}
