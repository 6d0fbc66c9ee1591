/** The list of jobs as its address describes it, and as the API is asked for it. */

import type { Shapes } from "minute8-client";

export type Job = Shapes["Job"];
export type Run = Shapes["Run"];
export type JobHealth = Shapes["JobHealth"];

export const KINDS = ["lambda", "http", "sqs", "sns", "event_bus", "step_functions", "aws_operation"] as const;
export const ORDERS = { failures: "worst first", next: "next first", name: "name", id: "id" } as const;
export const PAGE = 50;

/** What a list of jobs is narrowed to and sorted by, and where its page begins. */
export interface JobFilter {
  search?: string;
  state?: string;
  tag?: string;
  kind?: string;
  failing?: string;
  stopped?: string;
  sort?: string;
  cursor?: string;
  /** How many jobs are on the pages before. */
  before?: string;
}

/** Whether the list is narrowed to something. Pure. */
export function isNarrowed({ search, state, tag, kind, failing, stopped }: JobFilter): boolean {
  return Boolean(search || state || tag || kind || failing || stopped);
}

/** The parameters of `GET /v1/jobs` for a list. What the address says wrongly is left out. Pure. */
export function queryOf(filter: JobFilter) {
  const { search = "", state, tag, kind, failing, stopped, sort, cursor } = filter;
  return {
    limit: PAGE,
    health: true,
    sort: oneOf(Object.keys(ORDERS) as (keyof typeof ORDERS)[], sort) ?? "failures",
    // The API searches for words; signs alone are none.
    ...(/[\p{L}\p{N}]/u.test(search) ? { q: search } : {}),
    ...given("state", oneOf(["active", "paused"] as const, state)),
    ...given("tag", tag),
    ...given("kind", oneOf(KINDS, kind)),
    ...(failing ? { failing: true } : {}),
    ...(stopped ? { not_running: true } : {}),
    ...given("cursor", cursor),
  };
}

/** The value if it is one of these. */
export function oneOf<T extends string>(of: readonly T[], value: string | undefined): T | undefined {
  return of.find((known) => known === value);
}

/** A parameter, if it has a value. */
export function given<N extends string, V>(name: N, value: V | undefined | ""): { [K in N]?: V } {
  return (value ? { [name]: value } : {}) as { [K in N]?: V };
}
