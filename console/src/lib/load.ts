/** Data of the API in a view: loaded when it is shown, again while updates are live, and never after it has gone. */

import { effect, signal } from "@preact/signals";
import { Minute8Problem } from "minute8-client";
import { useEffect, useRef, useState } from "preact/hooks";
import { signOut } from "./session";
import { now } from "./time";

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

export function refresh(): void {
  round.value++;
}

/** Load what `key` names, and again every `everyS` seconds. Data stays while the same key is loaded again. */
export function useLoad<T>(key: string, load: (signal: AbortSignal) => Promise<T>, everyS = 0): Loaded<T> {
  const [state, setState] = useState<{ key: string; data?: T; error?: unknown; loading: boolean }>({
    key,
    loading: true,
  });
  const [asked, setAsked] = useState(0);
  const latest = useRef(load);
  latest.current = load;
  const turn = round.value;
  useEffect(() => {
    const ended = new AbortController();
    setState((before) => (before.key === key ? { ...before, loading: true } : { key, loading: true }));
    latest
      .current(ended.signal)
      .then((data) => {
        if (!ended.signal.aborted) setState({ key, data, loading: false });
      })
      .catch((error: unknown) => {
        if (ended.signal.aborted) return;
        if (error instanceof Minute8Problem && error.status === 401) signOut("The key is no longer valid.");
        else setState((before) => ({ ...before, error, loading: false }));
      });
    return () => ended.abort();
  }, [key, asked, turn]);
  useEffect(() => {
    if (!everyS) return;
    const timer = setInterval(() => {
      if (live.value && !document.hidden) setAsked((before) => before + 1);
    }, everyS * 1000);
    return () => clearInterval(timer);
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
