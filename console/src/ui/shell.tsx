/** The frame of every view: navigation, search, zone, updates, theme; and the keyboard. */

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import icon from "../icon.svg";
import { live, refresh } from "../lib/load";
import { go, place, to } from "../lib/router";
import { hasRole, type Role, rereadTenant, session, signOut } from "../lib/session";
import { nextTheme, nextZone } from "../lib/settings";
import { BROWSER_ZONE, relative, zoneChoice } from "../lib/time";
import { type Trouble, trouble } from "../lib/trouble";
import { Messages } from "./actions";
import { Text } from "./parts";

interface Entry {
  name: string;
  path: string[];
  letter: string;
  needs: Role;
}

const OF_TENANT: Entry[] = [
  { name: "Overview", path: [], letter: "o", needs: "read" },
  { name: "Jobs", path: ["jobs"], letter: "j", needs: "read" },
  { name: "Runs", path: ["runs"], letter: "r", needs: "read" },
  { name: "Failures", path: ["failures"], letter: "f", needs: "read" },
  { name: "Upcoming", path: ["upcoming"], letter: "u", needs: "read" },
  { name: "Calendars", path: ["calendars"], letter: "c", needs: "read" },
  { name: "Secrets", path: ["secrets"], letter: "e", needs: "read" },
  { name: "Subscriptions", path: ["subscriptions"], letter: "s", needs: "read" },
  { name: "Keys", path: ["keys"], letter: "k", needs: "admin" },
  { name: "Audit", path: ["audit"], letter: "a", needs: "admin" },
  { name: "Quota", path: ["quota"], letter: "q", needs: "read" },
];
const OF_PLATFORM: Entry[] = [
  { name: "Platform", path: [], letter: "o", needs: "operator" },
  { name: "Operator keys", path: ["keys"], letter: "k", needs: "operator" },
  { name: "Audit", path: ["audit"], letter: "a", needs: "operator" },
];
const API: Entry = { name: "API", path: ["api"], letter: "i", needs: "read" };

function entries(): Entry[] {
  const isOperator = session.value?.role === "operator";
  return [...(isOperator ? OF_PLATFORM : OF_TENANT), { ...API, needs: isOperator ? "operator" : "read" }];
}

const TENANT_EVERY_MS = 120_000;

const TROUBLES: Record<Trouble, string> = {
  offline: "The API does not answer. What is shown was true when it was read.",
  failing: "The API fails. What is shown was true when it was read.",
  throttled: "The tenant’s requests of this minute are used up. What is shown was true when it was read.",
};

/** What is wrong with all requests alike, and one button for all that is shown. */
function InTrouble(): JSX.Element | null {
  if (!trouble.value) return null;
  return (
    <div class="notice bad" role="alert">
      {TROUBLES[trouble.value]}{" "}
      <button type="button" onClick={refresh}>
        Try again
      </button>
    </div>
  );
}

const STATES: Record<Trouble, string> = { offline: "Offline", failing: "Failing", throttled: "Waiting" };

function liveWord(): string {
  if (trouble.value) return STATES[trouble.value];
  return live.value ? "Live" : "Paused";
}

/** Views that have no entry of their own, and whose part they are. */
const PARTS: Record<string, string> = { "new-job": "jobs", permits: "runs", tenants: "" };

export function Shell({ children }: { children: ComponentChildren }): JSX.Element {
  const [help, setHelp] = useState(false);
  const search = useRef<HTMLInputElement>(null);
  useKeyboard(search, () => setHelp((shown) => !shown));
  const current = session.value;
  const view = place.value.path[0] ?? "";
  const here = PARTS[view] ?? view;
  useEffect(() => {
    // On a phone the views are in one line, wider than the window; a phone may be turned.
    const showEntry = () => {
      const entry = document.querySelector("nav [aria-current]");
      const list = entry?.closest("ul");
      if (!entry || !list) return;
      // Only along its line: the page stays where it is.
      const [inner, outer] = [entry.getBoundingClientRect(), list.getBoundingClientRect()];
      list.scrollLeft += inner.left + inner.width / 2 - outer.left - outer.width / 2;
    };
    showEntry();
    addEventListener("resize", showEntry);
    return () => removeEventListener("resize", showEntry);
  }, [here]);
  useEffect(() => {
    // The platform may suspend or rename the tenant while somebody looks.
    const timer = setInterval(() => {
      if (live.value && !document.hidden) void rereadTenant();
    }, TENANT_EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  const tenant = current?.tenant;
  return (
    <div class="shell">
      <button type="button" class="skip" onClick={() => document.getElementById("main")?.focus()}>
        Skip to the content
      </button>
      <header class="bar">
        <a class="brand" href={to([])} aria-label="Minute8">
          <img src={icon} alt="" width="22" height="22" /> <span>Minute8</span>
        </a>
        {tenant ? (
          <form
            aria-label="Search jobs"
            onSubmit={(event) => {
              event.preventDefault();
              go(["jobs"], { search: search.current?.value });
              // So that `j` and `k` move through what was found.
              search.current?.blur();
            }}
          >
            <input ref={search} type="search" placeholder="Search jobs  /" aria-label="Search jobs" />
          </form>
        ) : (
          <span class="grow" />
        )}
        <div class="switches">
          <label class="small">
            <span class="sr">Time zone</span>
            <select
              value={zoneChoice.value}
              onChange={(event) => {
                zoneChoice.value = event.currentTarget.value as "utc" | "job" | "browser";
              }}
            >
              <option value="utc">UTC</option>
              <option value="job">Job’s zone</option>
              <option value="browser">{BROWSER_ZONE}</option>
            </select>
          </label>
          <button
            type="button"
            class="quiet"
            aria-pressed={relative.value}
            title="Relative times (t)"
            onClick={() => {
              relative.value = !relative.value;
            }}
          >
            Ago
          </button>
          <button
            type="button"
            class={`quiet live ${live.value && !trouble.value ? "on" : ""}`}
            aria-pressed={live.value}
            title="Live updates (p)"
            onClick={() => {
              live.value = !live.value;
            }}
          >
            <span class="dot" /> {liveWord()}
          </button>
          <button type="button" class="quiet" title="Dark or light (d)" aria-label="Dark or light" onClick={nextTheme}>
            ◐
          </button>
          <button
            type="button"
            class="quiet"
            aria-label="Keyboard shortcuts"
            title="Keyboard (?)"
            onClick={() => setHelp(true)}
          >
            ?
          </button>
        </div>
      </header>
      <nav aria-label="Views">
        <div class="inside">
          <ul>
            {entries().map((entry) => (
              <li key={entry.name}>
                <a
                  href={to(entry.path)}
                  class={hasRole(entry.needs) ? "" : "locked"}
                  {...((entry.path[0] ?? "") === here ? { "aria-current": "page" as const } : {})}
                >
                  {entry.name}
                </a>
              </li>
            ))}
          </ul>
          <div class="who">
            <div>{tenant ? <Text most={60}>{tenant.name || tenant.tenant_id}</Text> : "The platform"}</div>
            <div class="muted small">
              {tenant?.name ? <code>{tenant.tenant_id}</code> : null} {current?.role}
            </div>
            <button type="button" class="quiet" onClick={() => signOut()}>
              Sign out
            </button>
          </div>
        </div>
      </nav>
      <main id="main" tabIndex={-1}>
        <InTrouble />
        {tenant?.state === "suspended" ? (
          <div class="notice bad" role="status">
            The platform has suspended this tenant: everything can be read, nothing runs and nothing can be changed.{" "}
            <Text>{tenant.note}</Text>
          </div>
        ) : null}
        {children}
      </main>
      <Messages />
      {help ? <Help close={() => setHelp(false)} /> : null}
    </div>
  );
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest("input, textarea, select, dialog") !== null;
}

/** Out of a field, where it is in no dialog: then the shortcuts work again. */
function leaveField(target: EventTarget | null): void {
  if (target instanceof HTMLElement && isTyping(target) && !target.closest("dialog")) target.blur();
}

function useKeyboard(search: { current: HTMLInputElement | null }, help: () => void): void {
  useEffect(() => {
    let going = false;
    const pressed = (event: KeyboardEvent) => {
      if (event.key === "Escape") leaveField(event.target);
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      const entry = entries().find((known) => known.letter === event.key);
      if (going) {
        going = false;
        if (entry) go(entry.path);
        return;
      }
      const act: Record<string, () => void> = {
        "/": () => search.current?.focus(),
        "?": help,
        g: () => {
          going = true;
          setTimeout(() => {
            going = false;
          }, 1500);
        },
        p: () => {
          live.value = !live.value;
        },
        r: refresh,
        z: nextZone,
        d: nextTheme,
        t: () => {
          relative.value = !relative.value;
        },
        j: () => moveRow(1),
        k: () => moveRow(-1),
      };
      const doing = act[event.key];
      if (doing) {
        event.preventDefault();
        doing();
      }
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}

/** Move to the next or previous row's link. */
function moveRow(step: number): void {
  const links = [...document.querySelectorAll<HTMLAnchorElement>("main [data-row]")];
  const at = links.indexOf(document.activeElement as HTMLAnchorElement);
  links[Math.max(0, Math.min(links.length - 1, at + step))]?.focus();
}

const KEYS: [string, string][] = [
  ["/", "search jobs"],
  [
    "g then a letter",
    "go to a view: o overview, j jobs, r runs, f failures, u upcoming, c calendars, e secrets, s subscriptions, k keys, a audit, q quota, i API",
  ],
  ["j, k", "next and previous row; Enter opens it"],
  ["Esc", "leave a field or a dialog"],
  ["r", "load again"],
  ["p", "pause live updates"],
  ["z", "next time zone: UTC, the job’s, yours"],
  ["t", "relative or absolute times"],
  ["d", "dark or light"],
  ["?", "this list"],
];

function Help({ close }: { close: () => void }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} aria-label="Keyboard" onClose={close}>
      <h2>Keyboard</h2>
      <dl class="facts">
        {KEYS.map(([keys, effect]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{effect}</dd>
          </div>
        ))}
      </dl>
      <div class="buttons">
        <button type="button" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </div>
    </dialog>
  );
}
