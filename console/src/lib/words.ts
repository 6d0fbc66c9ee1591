/** A schedule in a few words for lists. The API's sentence stands in a job's own view. Pure. */

export interface ScheduleLike {
  cron?: string | null | undefined;
  every?: string | number | null | undefined;
  at?: string | null | undefined;
  timezone?: string | null | undefined;
  dialect?: string | null | undefined;
}

const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

export function scheduleWords(schedule: ScheduleLike): string {
  if (schedule.every != null)
    return `every ${typeof schedule.every === "number" ? `${schedule.every} s` : schedule.every}`;
  if (schedule.at != null) return `once, ${schedule.at}`;
  return schedule.dialect === "eventbridge" ? `cron(${schedule.cron ?? ""})` : cronWords(schedule.cron ?? "");
}

/** Words for the usual forms; any other expression as it is, which is never wrong. */
export function cronWords(expression: string): string {
  const fields = expression.trim().split(/\s+/);
  if (fields.length !== 5) return expression;
  const [minute = "", hour = "", day = "", month = "", weekday = ""] = fields;
  if (day !== "*" || month !== "*") return expression;
  const days = weekdayWords(weekday);
  if (days === null) return expression;
  const step = /^\*\/(\d+)$/.exec(minute);
  if (hour === "*" && minute === "*") return `every minute${days}`;
  if (hour === "*" && step && 60 % Number(step[1]) === 0) return `every ${step[1]} min${days}`;
  if (hour === "*" && isNumber(minute, 59)) return `hourly at :${minute.padStart(2, "0")}${days}`;
  if (isNumber(hour, 23) && isNumber(minute, 59)) {
    return `${days ? days.slice(2) : "daily"} at ${hour.padStart(2, "0")}:${minute.padStart(2, "0")}`;
  }
  return expression;
}

function weekdayWords(field: string): string | null {
  if (field === "*") return "";
  if (field === "1-5" || /^mon-fri$/i.test(field)) return ", Mon–Fri";
  const names = field.split(",").map((one) => (/^[0-7]$/.test(one) ? DAYS[Number(one) % 7] : dayNamed(one)));
  return names.every(Boolean) ? `, ${names.join(" ")}` : null;
}

function dayNamed(text: string): string | undefined {
  return DAYS.find((day) => day.toLowerCase() === text.toLowerCase());
}

function isNumber(text: string, most: number): boolean {
  return /^\d{1,2}$/.test(text) && Number(text) <= most;
}

/** `1 job`, `1,200 jobs`. */
export function counted(count: number, what: string): string {
  return `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;
}
