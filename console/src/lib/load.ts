/** Data of the API in a view: loaded when it is shown, again while updates are live, and never after it has gone. */

import { effect, signal } from "@preact/signals";
import { Minute8Problem } from "minute8-client";
import { useEffect, useRef, useState } from "preact/hooks";
import { session, signOut } from "./session";
import { now } from "./time";
import { forget, noteFailure, noteSuccess, troubleOf } from "./trouble";

/** Whether views load by themselves. */
export const live = signal(true);
/** Grows when everything shown is to be loaded again. */
export const round = signal(0);

export interface Loaded<T> {
  data: T | undefined;
  error: unknown;
  loading: boolean;
  reload: () => void;
}

interface State<T> {
  key: string;
  data?: T;
  /** Whether nothing of the data is missing. */
  whole?: boolean;
  error?: unknown;
  loading: boolean;
}

export function refresh(): void {
  round.value++;
}

/** Shows what is read of a list whose other pages are still to come. */
export type Show<T> = (part: T) => void;

// Who has touched nothing for so long looks at something else, and each list is read once a minute.
const WATCHED_MS = 60_000;
const UNWATCHED_S = 60;
let touchedAt = Date.now();

/** After how many seconds a list is read again that a view wants every `everyS` while somebody watches. */
export function pauseOf(everyS: number, untouchedMs: number): number {
  return untouchedMs < WATCHED_MS ? everyS : Math.max(everyS, UNWATCHED_S);
}

/** Notice that somebody is there. */
export function watchForPeople(): void {
  for (const kind of ["pointermove", "pointerdown", "keydown", "wheel", "focus"])
    addEventListener(
      kind,
      () => {
        touchedAt = Date.now();
      },
      { passive: true },
    );
}

/** What was read of keys that are kept, in which round. */
const kept = new Map<string, { data: unknown; round: number }>();
const MOST_KEPT = 24;
function keep(key: string, found: { data: unknown; round: number }): void {
  kept.delete(key);
  kept.set(key, found);
  for (const oldest of kept.keys()) {
    if (kept.size <= MOST_KEPT) break;
    kept.delete(oldest);
  }
}
effect(() => {
  void session.value;
  kept.clear();
});

// What failed as all requests may is asked for again after so long; the last wait is repeated.
const WAITS_MS = [2_000, 4_000, 8_000];

// What takes long is loaded again after a rest of as many times its length.
const REST = 3;

/**
 * Load what `key` names, and again every `everyS` seconds, but not before the last load has ended, nor while the page
 * is hidden, and less often while nobody touches it. After a failure of all requests, it loads again within seconds, at
 * once when the browser is online again, and with the first that succeeds.
 * Data stays while the same key is loaded again; the first time, parts of it are shown.
 *
 * With `keeps`, what was read is shown at once when the view is opened again, and `load` gets it as `before`: so it may
 * read only what has changed since. It does not after a change in this page, or when somebody asks for all again.
 */
export function useLoad<T>(
  key: string,
  load: (signal: AbortSignal, show: Show<T>, before?: T) => Promise<T>,
  everyS = 0,
  keeps = false,
): Loaded<T> {
  const [state, setState] = useState<State<T>>(() => {
    const before = kept.get(key);
    return before && keeps ? { key, data: before.data as T, whole: true, loading: true } : { key, loading: true };
  });
  const [asked, setAsked] = useState(0);
  const latest = useRef(load);
  const restsUntil = useRef(Number.POSITIVE_INFINITY);
  const begun = useRef(0);
  const isAgain = useRef(false);
  const failures = useRef(0);
  latest.current = load;
  const turn = round.value;
  useEffect(() => {
    const ended = new AbortController();
    const begunAt = Date.now();
    begun.current = begunAt;
    restsUntil.current = Number.POSITIVE_INFINITY;
    // Once between two loads of its own: else a part that always fails would ask with each success of another.
    const mayAskAgain = !isAgain.current;
    isAgain.current = false;
    const again = () => {
      isAgain.current = true;
      setState((before) => ({ ...before, error: undefined }));
      setAsked((before) => before + 1);
    };
    const show: Show<T> = (data) => {
      if (!ended.signal.aborted) setState((before) => (before.whole ? before : { key, data, loading: true }));
    };
    setState((before) => (before.key === key ? { ...before, loading: true } : { key, loading: true }));
    // What still waits for an answer of the network that has gone is asked for anew.
    const askAnew = () => setAsked((before) => before + 1);
    let timer: ReturnType<typeof setTimeout> | undefined;
    addEventListener("online", askAnew);
    const before = kept.get(key);
    latest
      .current(ended.signal, show, before && keeps && before.round === turn ? (before.data as T) : undefined)
      .then((data) => {
        if (ended.signal.aborted) return;
        if (keeps) keep(key, { data, round: turn });
        failures.current = 0;
        noteSuccess();
        setState({ key, data, whole: true, loading: false });
      })
      .catch((error: unknown) => {
        if (ended.signal.aborted) return;
        if (error instanceof Minute8Problem && error.status === 401) signOut("The key is no longer valid.");
        else {
          noteFailure(error, mayAskAgain ? again : undefined);
          setState((before) => ({ ...before, error, loading: false }));
          const wait = WAITS_MS[Math.min(failures.current++, WAITS_MS.length - 1)];
          if (troubleOf(error)) timer = setTimeout(askAnew, wait);
        }
      })
      .finally(() => {
        if (!ended.signal.aborted) restsUntil.current = Date.now() + REST * (Date.now() - begunAt);
      });
    return () => {
      ended.abort();
      clearTimeout(timer);
      removeEventListener("online", askAnew);
      forget(again);
    };
  }, [key, asked, turn]);
  useEffect(() => {
    if (!everyS) return;
    const look = () => {
      const present = Date.now();
      const isDue = present - begun.current >= 1000 * pauseOf(everyS, present - touchedAt);
      if (isDue && live.value && !document.hidden && present > restsUntil.current) setAsked((before) => before + 1);
    };
    const timer = setInterval(look, everyS * 1000);
    document.addEventListener("visibilitychange", look);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, [everyS]);
  const isCurrent = state.key === key;
  return {
    data: isCurrent ? state.data : undefined,
    error: isCurrent ? state.error : undefined,
    loading: state.loading || !isCurrent,
    reload: () => setAsked((before) => before + 1),
  };
}

/** Move the present on while updates are live. */
export function startClock(): void {
  effect(() => {
    if (!live.value) return;
    const timer = setInterval(() => {
      if (!document.hidden) now.value = Date.now();
    }, 1000);
    return () => clearInterval(timer);
  });
}

/** What was loaded last, also while that of another key is on its way: so that a list stays while its filter changes. */
export function useLast<T>(data: T | undefined): T | undefined {
  const last = useRef(data);
  if (data !== undefined) last.current = data;
  return last.current;
}
