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
    const known = found.get(keyOf(group));
    if (!known) {
      found.set(keyOf(group), { ...group });
      continue;
    }
    known.count += group.count;
    known.hours = [...known.hours, ...group.hours];
    if (group.first_at < known.first_at) known.first_at = group.first_at;
    if (group.last_at > known.last_at)
      Object.assign(known, { last_at: group.last_at, last_execution_id: group.last_execution_id });
  }
  return [...found.values()].sort((first, second) => (first.last_at < second.last_at ? 1 : -1));
}
