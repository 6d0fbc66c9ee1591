/** Failures that are alike, together. Pure. */

import type { Run } from "./jobs";

export interface Group {
  key: string;
  jobId: string;
  errorType: string;
  error: string;
  runs: Run[];
  first: string;
  last: string;
}

/** What makes two errors alike: their text without numbers, ids and quoted values. */
export function fingerprint(text: string): string {
  return text
    .replace(/0x[0-9a-f]+|[0-9a-f]{8}-[0-9a-f-]{27}|\b[0-9a-f]{16,}\b/gi, "#")
    .replace(/'[^']*'|"[^"]*"/g, "“”")
    .replace(/\d+(\.\d+)?/g, "#")
    .slice(0, 200);
}

/** The failed runs by job and error, the latest first. */
export function grouped(runs: readonly Run[]): Group[] {
  const groups = new Map<string, Group>();
  for (const run of runs) {
    const errorType = run.error_type ?? "";
    const error = run.error ?? "";
    const key = [run.job_id, errorType, fingerprint(error)].join("\n");
    const at = run.finished_at ?? run.fire_at;
    const group = groups.get(key);
    if (!group) groups.set(key, { key, jobId: run.job_id, errorType, error, runs: [run], first: at, last: at });
    else {
      group.runs.push(run);
      if (at < group.first) group.first = at;
      if (at > group.last) group.last = at;
    }
  }
  return [...groups.values()].sort((one, other) => (one.last < other.last ? 1 : -1));
}
