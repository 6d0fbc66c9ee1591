/**
 * Who is signed in. The key is kept in this tab's session alone: never in an address, never in localStorage. A new tab
 * of the same origin asks the open ones for it (docs/console.md has the threats).
 */

import { signal } from "@preact/signals";
import { type Minute8, Minute8Problem, type Shapes } from "minute8-client";
import { CheckedApi } from "./answers";
import { dropDrafts } from "./drafts";
import { tokensOfIssuer } from "./issuer";
import { addressOfApi } from "./router";
import { noticing } from "./trouble";

export type Tenant = Shapes["Tenant"];
export type Role = "read" | "write" | "admin" | "operator";

export interface Session {
  api: Minute8;
  role: Role;
  /** Null for a key of the platform. */
  tenant: Tenant | null;
}

const PLACE = "minute8.key";
// Somebody signed out of this tab on purpose: it asks no other tab.
const LEFT = "minute8.signed-out";
const OTHER_TAB_MS = 150;
const TABS = "minute8";
const SHOWN_OF_TENANT = ["state", "note", "name"] as const;
const RANK: Record<Role, number> = { read: 0, write: 1, admin: 2, operator: 3 };

export const session = signal<Session | null>(null);
/** Why somebody has to sign in again. */
export const signedOutBecause = signal("");

/** Sign in with a key or token. Throws what the API refuses, Unreachable. */
export async function signIn(key: string): Promise<void> {
  const api = new CheckedApi({ url: addressOfApi(location.href), key, fetch: noticing });
  session.value = await sessionOf(api);
  signedOutBecause.value = "";
  sessionStorage.setItem(PLACE, key);
  sessionStorage.removeItem(LEFT);
}

/** Answer new tabs that ask for the key while somebody is signed in here. */
export function answerTabs(): void {
  const tabs = new BroadcastChannel(TABS);
  tabs.addEventListener("message", ({ data }) => {
    const key = sessionStorage.getItem(PLACE);
    if (data === "key?" && key && session.value) tabs.postMessage({ key });
  });
}

/** The key of another open tab; null if there is none that is signed in. */
function keyOfOtherTab(): Promise<string | null> {
  return new Promise((resolve) => {
    const tabs = new BroadcastChannel(TABS);
    const end = (key: string | null) => {
      tabs.close();
      resolve(key);
    };
    tabs.addEventListener("message", ({ data }) => typeof data?.key === "string" && end(data.key));
    tabs.postMessage("key?");
    setTimeout(end, OTHER_TAB_MS, null);
  });
}

/** Sign in with what the issuer sent back, again after a reload of the tab, or as another open tab is. */
export async function resume(): Promise<void> {
  try {
    if (new URL(location.href).searchParams.has("state")) {
      return await signInWithOneOf(await tokensOfIssuer());
    }
    const key = sessionStorage.getItem(PLACE) ?? (sessionStorage.getItem(LEFT) ? null : await keyOfOtherTab());
    if (key) await signIn(key);
  } catch (error) {
    signOut(error instanceof Error ? error.message : String(error));
  }
}

async function signInWithOneOf([key, ...others]: readonly string[]): Promise<void> {
  try {
    await signIn(key ?? "");
  } catch (error) {
    if (!others.length) throw error;
    await signInWithOneOf(others);
  }
}

/** Somebody who signs out leaves nothing; if the API ended the session, drafts stay for the next sign-in. */
export function signOut(because = ""): void {
  sessionStorage.removeItem(PLACE);
  if (!because) {
    dropDrafts();
    sessionStorage.setItem(LEFT, "1");
  }
  session.value = null;
  signedOutBecause.value = because;
}

/** The API; only for views that are shown to somebody who is signed in. */
export function api(): Minute8 {
  if (!session.value) throw new Error("nobody is signed in");
  return session.value.api;
}

/** Whether the role covers `needed`. An operator's key does nothing of a tenant's. */
export function hasRole(needed: Role): boolean {
  const role = session.value?.role;
  if (!role) return false;
  if (needed === "operator" || role === "operator") return role === needed;
  return RANK[role] >= RANK[needed];
}

/** Whether the role may change what needs `needed`: of a tenant that is not active, nothing. */
export function may(needed: Role): boolean {
  return hasRole(needed) && (session.value?.tenant?.state ?? "active") === "active";
}

/** Read the tenant again: its state, note and name can change while somebody looks. */
export async function rereadTenant(): Promise<void> {
  const current = session.value;
  if (!current?.tenant) return;
  const tenant = await current.api.get("/v1/tenant").catch(() => null);
  // A new session empties what views keep. The counts of the tenant's use change all the time.
  const isSame = tenant && SHOWN_OF_TENANT.every((field) => tenant[field] === current.tenant?.[field]);
  if (tenant && !isSame && session.value === current) session.value = { ...current, tenant };
}

async function sessionOf(api: Minute8): Promise<Session> {
  try {
    const tenant = await api.get("/v1/tenant");
    return { api, tenant, role: tenant.key.role };
  } catch (error) {
    if (!(error instanceof Minute8Problem) || error.name !== "forbidden") throw error;
    await api.get("/v1/tenants", { query: { limit: 1 } });
    return { api, tenant: null, role: "operator" };
  }
}
