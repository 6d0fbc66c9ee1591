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

// A view has to be loaded and drawn before it can be scrolled; a busy machine or a slow line takes long over that.
const PATIENCE_MS = 30_000;
const SETTLED_MS = 150;

function seenOf(state: unknown): Seen | null {
  return typeof state === "object" && state !== null && "y" in state ? (state as Seen) : null;
}

/** Scroll to where the place was left, until all of the view is there; not against who scrolls or types meanwhile. */
function scrollBack(y: number): AbortController {
  const stop = new AbortController();
  for (const kind of ["wheel", "touchstart", "pointerdown", "keydown"])
    addEventListener(kind, () => stop.abort(), { signal: stop.signal, passive: true });
  const until = performance.now() + PATIENCE_MS;
  let height = 0;
  const step = () => {
    if (stop.signal.aborted) return;
    const { scrollHeight } = document.documentElement;
    if (scrollHeight !== height) scrollTo(0, y);
    height = scrollHeight;
    const isThere = Math.abs(scrollY - y) < 2 && !document.querySelector(".waiting");
    if (isThere || !y || performance.now() > until) stop.abort();
    else requestAnimationFrame(step);
  };
  // The first frame draws the view that comes, no longer the one that goes.
  requestAnimationFrame(step);
  return stop;
}

/** Follow the address, and bring somebody back to where a place was left. */
export function followAddress(): void {
  history.scrollRestoration = "manual";
  let settling: ReturnType<typeof setTimeout> | undefined;
  let goingBack: AbortController | undefined;
  const keepScroll = () => {
    clearTimeout(settling);
    // Browsers refuse more than some 20 changes a second.
    settling = setTimeout(() => {
      // What is still on its way back is nowhere that somebody chose.
      if (!goingBack || goingBack.signal.aborted) history.replaceState({ y: scrollY } satisfies Seen, "");
    }, SETTLED_MS);
  };
  addEventListener("scroll", keepScroll, { passive: true });
  addEventListener("hashchange", () => {
    clearTimeout(settling);
    goingBack?.abort();
    const seen = seenOf(history.state);
    place.value = parsePlace(location.hash);
    if (!seen) history.replaceState({ y: 0 } satisfies Seen, "");
    goingBack = scrollBack(seen?.y ?? 0);
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
