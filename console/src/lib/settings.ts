/** How somebody likes to read: kept in the browser, and nothing else is. */

import { effect, signal } from "@preact/signals";
import { relative, type ZoneChoice, zoneChoice } from "./time";

export type Theme = "system" | "light" | "dark";
export const theme = signal<Theme>("system");

const PLACE = "minute8.settings";

export function loadSettings(): void {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(PLACE) ?? "{}");
    if (typeof kept === "object" && kept !== null) {
      const { theme: colours, zone, relative: isRelative } = kept as Record<string, unknown>;
      if (colours === "light" || colours === "dark") theme.value = colours;
      if (zone === "utc" || zone === "job" || zone === "browser") zoneChoice.value = zone satisfies ZoneChoice;
      relative.value = isRelative === true;
    }
  } catch {
    // Kept by another version, or no storage: the defaults do.
  }
  effect(() => {
    const chosen = theme.value;
    if (chosen === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = chosen;
    localStorage.setItem(PLACE, JSON.stringify({ theme: chosen, zone: zoneChoice.value, relative: relative.value }));
  });
}

export function nextTheme(): void {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const system = dark ? "dark" : "light";
  const shown = theme.value === "system" ? system : theme.value;
  theme.value = shown === "dark" ? "light" : "dark";
}

export function nextZone(): void {
  const NEXT = { utc: "job", job: "browser", browser: "utc" } as const;
  zoneChoice.value = NEXT[zoneChoice.value];
}
