/** The same change of many things: chosen ones, a few at a time, or all that a filter takes. */

import type { Shapes } from "minute8-client";
import type { JobFilter } from "./jobs";

export type BulkVerb = "pause" | "resume" | "run" | "delete";

export const VERBS: Record<BulkVerb, string> = { pause: "Pause", resume: "Resume", run: "Run now", delete: "Delete" };

/** The state of the jobs that a verb changes; what is in the wanted state already is left alone. */
const CHANGES: Partial<Record<BulkVerb, "active" | "paused">> = { pause: "active", resume: "paused" };

export interface Outcome<T> {
  done: number;
  refused: { item: T; because: string }[];
}

const AT_ONCE = 6;

/** Change each item; `told` is called after each. Goes on after refusals. */
export async function forEachOf<T>(
  items: readonly T[],
  change: (item: T) => Promise<unknown>,
  told: (done: number) => void,
): Promise<Outcome<T>> {
  const outcome: Outcome<T> = { done: 0, refused: [] };
  const waiting = [...items];
  const work = async () => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) {
      try {
        await change(item);
        outcome.done++;
      } catch (error) {
        outcome.refused.push({ item, because: error instanceof Error ? error.message : String(error) });
      }
      told(outcome.done + outcome.refused.length);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return outcome;
}

/** Which jobs a request changes: the part of its body that the three `_all` routes share. */
export type ManyFilter = Pick<Shapes["ManyJobs"], "state" | "tag" | "all">;

/** What a list shows and a verb changes, as the API's filter; undefined if the API has no such filter. */
export function manyFilterOf(shown: JobFilter, verb: BulkVerb): ManyFilter | undefined {
  if (shown.search || shown.kind || shown.failing || shown.stopped) return undefined;
  const state = CHANGES[verb] ?? shown.state;
  if (shown.state && shown.state !== state) return undefined;
  const filter = {
    ...(state ? { state: state as "active" | "paused" } : {}),
    ...(shown.tag ? { tag: shown.tag } : {}),
  };
  return Object.keys(filter).length ? filter : { all: true };
}

export type ManyDone = Pick<Shapes["ManyDone"], "matched" | "done" | "ids" | "refused">;

/** Ask again with each answer's cursor until there is none; `told` is called with the sum after each answer. */
export async function throughAll(
  ask: (cursor: { cursor?: string }) => Promise<Shapes["ManyDone"]>,
  told: (sum: ManyDone) => void = () => undefined,
): Promise<ManyDone> {
  let sum: ManyDone = { matched: 0, done: 0, ids: [], refused: [] };
  let cursor: string | null = null;
  do {
    const answer: Shapes["ManyDone"] = await ask(cursor ? { cursor } : {});
    sum = {
      matched: sum.matched + answer.matched,
      done: sum.done + answer.done,
      ids: [...sum.ids, ...answer.ids],
      refused: [...sum.refused, ...answer.refused],
    };
    told(sum);
    cursor = answer.next_cursor;
  } while (cursor);
  return sum;
}

type DeadLettersDone = Pick<Shapes["DeadLettersDone"], "done" | "left" | "more" | "began_at">;

/** Repeat a request until it met each dead letter that was there at the first one; what was sent since is passed over. */
export async function eachOnce(
  request: (since: { began_at?: string }) => Promise<DeadLettersDone>,
): Promise<DeadLettersDone> {
  let answer = await request({});
  const sum = { ...answer };
  const stay = new Map(answer.left.map((deadLetter) => [deadLetter.message_id, deadLetter]));
  for (let isNew = true; answer.more && isNew; ) {
    answer = await request({ began_at: answer.began_at });
    isNew = answer.done > 0 || answer.left.some(({ message_id }) => !stay.has(message_id));
    for (const deadLetter of answer.left) stay.set(deadLetter.message_id, deadLetter);
    sum.done += answer.done;
  }
  return { ...sum, left: [...stay.values()], more: answer.more };
}
