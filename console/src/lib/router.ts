/** Where somebody is: a path and filters, all in the address after `#`, so that any base path works. */

import { signal } from "@preact/signals";

export interface Place {
  path: string[];
  query: Record<string, string>;
}

export function parsePlace(hash: string): Place {
  const [path = "", query = ""] = hash.replace(/^#?\/?/, "").split("?", 2);
  return {
    path: path.split("/").filter(Boolean).map(decoded),
    query: Object.fromEntries(new URLSearchParams(query)),
  };
}

/** The address of a view; empty values are left out. */
export function to(path: readonly string[], query: Record<string, string | undefined> = {}): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]));
  const text = new URLSearchParams(given).toString();
  return `#/${path.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

export const place = signal<Place>(parsePlace(location.hash));

// What is kept with a place that was seen: on the way back to it, the browser shows again what was in sight there.
const SEEN = "seen";

addEventListener("hashchange", () => {
  if (history.state !== SEEN) scrollTo(0, 0);
  history.replaceState(SEEN, "");
  place.value = parsePlace(location.hash);
});

export function go(path: readonly string[], query: Record<string, string | undefined> = {}): void {
  location.hash = to(path, query);
}

/** Change filters without a step in the browser's history. */
export function setQuery(changes: Record<string, string | undefined>): void {
  const { path, query } = place.value;
  history.replaceState(SEEN, "", to(path, { ...query, ...changes }));
  place.value = parsePlace(location.hash);
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
