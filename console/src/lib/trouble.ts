import { signal } from "@preact/signals";
import { Minute8Problem, Unreachable } from "minute8-client";

/** What is wrong with all requests alike: it is said once, not by each part of a view. */
export type Trouble = "offline" | "failing" | "throttled";
export const trouble = signal<Trouble | null>(null);

export function troubleOf(error: unknown): Trouble | null {
  if (error instanceof Unreachable) return "offline";
  if (!(error instanceof Minute8Problem)) return null;
  if (error.status === 429) return "throttled";
  return error.status >= 500 ? "failing" : null;
}

/** What asks again for parts of a view whose requests failed as all do. */
const failed = new Set<() => void>();

/** A request succeeded: each part that failed asks again, once. */
export function noteSuccess(): void {
  const asking = [...failed];
  failed.clear();
  trouble.value = null;
  for (const again of asking) again();
}

/** A request failed. If all fail alike, the next success calls `again`. */
export function noteFailure(error: unknown, again?: () => void): void {
  const found = troubleOf(error);
  if (!found) return;
  trouble.value = found;
  if (again) failed.add(again);
}

/** A part asks by itself, or has gone. */
export function forget(again: () => void): void {
  failed.delete(again);
}

/** Fetch, and say at once that requests are used up: the client waits then, and asks again by itself. */
export async function noticing(...request: Parameters<typeof fetch>): Promise<Response> {
  const answer = await fetch(...request);
  if (answer.status === 429) trouble.value ??= "throttled";
  return answer;
}
