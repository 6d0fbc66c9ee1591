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

/** What the browser's history keeps with a place that was seen: how far it was scrolled. */
interface Seen {
  y: number;
}

// A list has to be drawn before it can be scrolled.
const PATIENCE_MS = 3000;
const SETTLED_MS = 150;

function seenOf(state: unknown): Seen | null {
  return typeof state === "object" && state !== null && "y" in state ? (state as Seen) : null;
}

/** Scroll to where the place was left, as soon as the page is that long; not against who scrolls meanwhile. */
function scrollBack(y: number): void {
  const until = performance.now() + PATIENCE_MS;
  const stop = new AbortController();
  for (const kind of ["wheel", "touchstart", "keydown", "hashchange"])
    addEventListener(kind, () => stop.abort(), { signal: stop.signal, passive: true });
  const step = () => {
    if (stop.signal.aborted) return;
    scrollTo(0, y);
    if (Math.abs(scrollY - y) < 2 || performance.now() > until) stop.abort();
    else requestAnimationFrame(step);
  };
  step();
}

/** Follow the address, and bring somebody back to where a place was left. */
export function followAddress(): void {
  history.scrollRestoration = "manual";
  let settling: ReturnType<typeof setTimeout> | undefined;
  const keepScroll = () => {
    clearTimeout(settling);
    // Browsers refuse more than some 20 changes a second.
    settling = setTimeout(() => history.replaceState({ y: scrollY } satisfies Seen, ""), SETTLED_MS);
  };
  addEventListener("scroll", keepScroll, { passive: true });
  addEventListener("hashchange", () => {
    clearTimeout(settling);
    const seen = seenOf(history.state);
    place.value = parsePlace(location.hash);
    if (!seen) history.replaceState({ y: 0 } satisfies Seen, "");
    scrollBack(seen?.y ?? 0);
  });
}

export function go(path: readonly string[], query: Record<string, string | undefined> = {}): void {
  location.hash = to(path, query);
}

/** Change filters without a step in the browser's history. */
export function setQuery(changes: Record<string, string | undefined>): void {
  const { path, query } = place.value;
  history.replaceState({ y: scrollY } satisfies Seen, "", to(path, { ...query, ...changes }));
  place.value = parsePlace(location.hash);
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** The API's address: the console is served beside it, as `…/console`, below any base path. */
export function addressOfApi(page: string): string {
  const { origin, pathname } = new URL(page);
  return origin + pathname.replace(/(\/console)?(\/|\/index\.html)?$/, "");
}
