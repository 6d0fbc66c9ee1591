/** Failures that are alike, together. Pure. */

import type { Shapes } from "minute8-client";

export type Group = Shapes["FailureGroup"];

export function keyOf(group: Group): string {
  return `${group.job_id} ${group.fingerprint}`;
}

/** The groups of several pages: one that is on two of them counts once, the latest first. Pure. */
export function merged(groups: readonly Group[]): Group[] {
  const found = new Map<string, Group>();
  for (const group of groups) {
    const other = found.get(keyOf(group));
    if (!other) {
      found.set(keyOf(group), { ...group });
      continue;
    }
    other.count += group.count;
    other.hours = [...other.hours, ...group.hours];
    if (group.first_at < other.first_at) other.first_at = group.first_at;
    if (group.last_at > other.last_at)
      Object.assign(other, { last_at: group.last_at, last_execution_id: group.last_execution_id });
  }
  return [...found.values()].sort((one, other) => (one.last_at < other.last_at ? 1 : -1));
}
