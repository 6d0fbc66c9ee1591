/** Words for people. Pure. */

/** `1 job`, `1,200 jobs`; `1+ jobs` if there may be more. */
export function counted(count: number, noun: string, orMore = false): string {
  return `${count.toLocaleString("en")}${orMore ? "+" : ""} ${noun}${count === 1 && !orMore ? "" : "s"}`;
}
