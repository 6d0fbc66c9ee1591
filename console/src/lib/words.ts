/** Words for people. Pure. */

/** `1 job`, `1,200 jobs`. */
export function counted(count: number, what: string): string {
  return `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;
}
