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

/** Fetch, and say at once that requests are used up: the client waits then, and asks again by itself. */
export async function noticing(...request: Parameters<typeof fetch>): Promise<Response> {
  const answer = await fetch(...request);
  if (answer.status === 429) trouble.value ??= "throttled";
  return answer;
}
