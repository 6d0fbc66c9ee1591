/** Answers that are the API's: something else that answers in its place is not shown as facts. */

import { type Answer, Minute8, type PathsOf, Unreachable } from "minute8-client";

type PartsOf<M extends "get" | "post"> = { [P in PathsOf<M>]?: (keyof Answer<M, P> & string)[] };

const READ_BY_POST = "/v1/schedules/preview";

/** The parts of each answer without which nothing of it can be shown. */
export const PARTS: PartsOf<"get"> & Pick<PartsOf<"post">, typeof READ_BY_POST> = {
  "/v1/audit": ["entries"],
  "/v1/calendars": ["calendars"],
  "/v1/clock-changes": ["moved"],
  "/v1/dead-letters": ["queues"],
  "/v1/dead-letters/{queue}": ["dead_letters"],
  "/v1/density": ["minutes", "paces", "crowded"],
  "/v1/density/minute": ["seconds", "jobs"],
  "/v1/failures/groups": ["groups"],
  "/v1/blocks": ["blocks"],
  "/v1/jobs": ["jobs", "corrupt"],
  "/v1/jobs/{job_id}": ["job_id", "schedule", "schedule_resolved", "target", "tags", "retry"],
  "/v1/jobs/{job_id}/backfills": ["backfills"],
  "/v1/jobs/{job_id}/expected": ["expected", "counts"],
  "/v1/jobs/{job_id}/explain": ["reasons", "found"],
  "/v1/jobs/{job_id}/health": ["outcomes"],
  "/v1/jobs/{job_id}/next": ["fires"],
  "/v1/jobs/{job_id}/runs": ["runs"],
  "/v1/keys": ["keys"],
  "/v1/openapi.json": ["info", "paths", "components"],
  "/v1/operator-audit": ["entries"],
  "/v1/operator-density": ["minutes", "crowded", "tenants"],
  "/v1/operator-keys": ["keys"],
  "/v1/operator-overview": ["totals", "hours", "blocks", "tenants"],
  "/v1/operator-planning": ["windows", "set_aside", "findings"],
  "/v1/overview": ["errors"],
  "/v1/permits": ["holders", "waiting"],
  "/v1/platform/unrecorded": ["executions"],
  "/v1/runs": ["runs"],
  "/v1/runs/{execution_id}": ["execution_id", "attempts"],
  [READ_BY_POST]: ["fires", "warnings"],
  "/v1/secrets": ["secrets"],
  "/v1/subscriptions": ["subscriptions"],
  "/v1/tenant": ["tenant_id", "usage", "quotas", "allowed_targets", "key"],
  "/v1/tenants": ["tenants"],
  "/v1/tenants/{tenant_id}": ["tenant_id", "usage", "quotas", "allowed_targets"],
  "/v1/tenants/{tenant_id}/audit": ["entries"],
  "/v1/tenants/{tenant_id}/health": ["run_totals", "job_counts"],
  "/v1/tenants/{tenant_id}/keys": ["keys"],
  "/v1/upcoming": ["executions"],
};

/** The API, whose answers have the parts that this page needs. Otherwise its methods throw Unreachable. */
export class CheckedApi extends Minute8 {
  override async get<P extends PathsOf<"get">>(...call: Parameters<typeof Minute8.prototype.get<P>>) {
    return checked(call[0], await super.get<P>(...call));
  }

  override async post<P extends PathsOf<"post">>(...call: Parameters<typeof Minute8.prototype.post<P>>) {
    const answer = await super.post<P>(...call);
    return call[0] === READ_BY_POST ? checked(call[0], answer) : answer;
  }
}

function checked<A>(path: string, answer: A): A {
  const parts: readonly string[] = (PARTS as Record<string, string[]>)[path] ?? [];
  const missing = parts.find((part) => (answer as Record<string, unknown> | null)?.[part] == null);
  if (missing) throw new Unreachable(`the answer to ${path} is not one of Minute8: it has no ${missing}`);
  return answer;
}
