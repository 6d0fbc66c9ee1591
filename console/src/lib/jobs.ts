/** All jobs of the tenant, page by page, so that the first are shown at once and search needs no request. */

import { signal } from "@preact/signals";
import { Minute8Problem, type Shapes } from "minute8-client";
import { useEffect } from "preact/hooks";
import { jobsOf } from "./groups";
import { MOST_HEALTHS } from "./health";
import { live, round } from "./load";
import { api, session } from "./session";

export type Job = Shapes["Job"];
export type Run = Shapes["Run"];
export type JobHealth = Shapes["JobHealth"];

/** What a list of jobs is narrowed to, as its address says. */
export interface JobFilter {
  search?: string;
  state?: string;
  tag?: string;
  kind?: string;
  health?: string;
}

export const jobs = signal<readonly Job[]>([]);
/** Whether the list is whole. */
export const complete = signal(false);
export const jobsError = signal<unknown>(undefined);
/** The health of the first jobs of the list, by their ids. */
export const healths = signal<ReadonlyMap<string, JobHealth>>(new Map());
/** Whether these are all that are asked for: before, no health that is missing means that nothing is wrong. */
export const healthsKnown = signal(false);

let loading: AbortController | undefined;
let loadedFor: unknown;
let loadedIn = 0;
let loadedAt = 0;

const OFTEN_MS = 15_000;
// As many as a view lists, and some more; each is a request of its own.
const MOST_FAILED = 20;
// A page is a request of its own: a tenant of 10,000 jobs asks less often, also when a view is opened again.
const MS_A_JOB = 100;

export async function loadJobs(): Promise<void> {
  loading?.abort();
  const mine = new AbortController();
  loading = mine;
  loadedIn = round.value;
  if (loadedFor !== session.value) {
    loadedFor = session.value;
    jobs.value = [];
    healths.value = new Map();
    complete.value = false;
    healthsKnown.value = false;
  }
  try {
    const found: Job[] = [];
    let ofHealth: Promise<void> | undefined;
    for await (const page of api().pages("/v1/jobs", { query: { limit: 200 }, signal: mine.signal })) {
      found.push(...page.jobs);
      if (!complete.value) jobs.value = [...found];
      // What is wrong is wanted before the rest of a long list.
      if (found.length >= MOST_HEALTHS) ofHealth ??= loadHealths(mine.signal, true);
      ofHealth?.catch(() => undefined);
    }
    jobs.value = found;
    complete.value = true;
    jobsError.value = undefined;
    await (ofHealth ?? loadHealths(mine.signal, false));
  } catch (error) {
    if (!mine.signal.aborted) jobsError.value = error;
  } finally {
    if (loading === mine) {
      loading = undefined;
      loadedAt = Date.now();
    }
  }
}

/** Whether the list need not be loaded for a view that is opened: it is on its way, or was loaded lately. */
function isRecent(): boolean {
  if (loadedFor !== session.value || loadedIn !== round.value) return false;
  return loading !== undefined || (complete.value && Date.now() - loadedAt < jobs.value.length * MS_A_JOB);
}

/** The health of the first jobs; of a long list also that of the jobs that failed last, wherever they stand. */
async function loadHealths(ended: AbortSignal, isLong: boolean): Promise<void> {
  const found = new Map<string, JobHealth>();
  if (isLong) {
    const { groups } = await api().get("/v1/failures/groups", { signal: ended });
    for (const id of jobsOf(groups).slice(0, MOST_FAILED)) {
      const health = await api()
        .get("/v1/jobs/{job_id}/health", { path: { job_id: id }, signal: ended })
        .catch(unlessGone);
      if (health) found.set(id, health);
    }
  }
  let read = 0;
  const query = { limit: 200, health: true };
  for await (const page of api().pages("/v1/jobs", { query, signal: ended })) {
    for (const [id, health] of Object.entries(page.health ?? {})) found.set(id, health);
    if (healths.value.size < found.size) healths.value = new Map(found);
    read += page.jobs.length;
    if (read >= MOST_HEALTHS) break;
  }
  healths.value = found;
  healthsKnown.value = true;
}

/** Failures outlive their job. */
function unlessGone(error: unknown): undefined {
  if (!(error instanceof Minute8Problem && error.status === 404)) throw error;
}

/** Put what a change answered into the list, without loading it again. */
export function putJob(job: Job): void {
  const isNew = !jobs.value.some((one) => one.job_id === job.job_id);
  jobs.value = isNew ? [...jobs.value, job] : jobs.value.map((one) => (one.job_id === job.job_id ? job : one));
}

export function removeJob(id: string): void {
  jobs.value = jobs.value.filter((one) => one.job_id !== id);
}

/** Load the list while a view shows it. */
export function useJobs(): void {
  const turn = round.value;
  useEffect(() => {
    if (!isRecent()) void loadJobs();
  }, [turn]);
  useEffect(() => {
    const timer = setInterval(() => {
      const patience = Math.max(OFTEN_MS, jobs.value.length * MS_A_JOB);
      if (live.value && !document.hidden && !loading && Date.now() - loadedAt > patience) void loadJobs();
    }, 5000);
    return () => clearInterval(timer);
  }, []);
}
