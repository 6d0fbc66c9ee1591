/** What somebody types in the editor: kept in this tab until it is stored or discarded, whatever happens to the page. */

import type { Form } from "./definition";

export interface Draft {
  form: Form;
  /** The revision that the form was begun with; 0 for a new job. */
  revision: number;
  /** The last creation that was sent, and its idempotency key: the same creation is sent with the same key. */
  sent?: { text: string; key: string };
}

const PREFIX = "minute8.draft.";

/** The place of a tenant's draft of a job; without a job's id, of a new one. */
export function placeOfDraft(tenant: string, id: string): string {
  return `${PREFIX}${tenant}.${id}`;
}

export function draftOf(place: string): Draft | undefined {
  try {
    return (JSON.parse(sessionStorage.getItem(place) ?? "null") as Draft | null) ?? undefined;
  } catch {
    return undefined;
  }
}

export function keepDraft(place: string, draft: Draft): void {
  try {
    sessionStorage.setItem(place, JSON.stringify(draft));
  } catch {
    // The tab's storage is full: the form itself stays.
  }
}

export function dropDraft(place: string): void {
  sessionStorage.removeItem(place);
}

/** Drop all drafts: somebody signs out on purpose. */
export function dropDrafts(): void {
  for (const name of Object.keys(sessionStorage)) if (name.startsWith(PREFIX)) sessionStorage.removeItem(name);
}

/** The same creation has the same key, so that a lost answer makes no second job. */
export function keyOf(draft: Draft, text: string): string {
  return draft.sent?.text === text ? draft.sent.key : crypto.randomUUID();
}

/** What somebody changed in `begun`, applied to what is stored by now. Pure. */
export function rebased(form: Form, begun: Form, stored: Form): Form {
  const mine = Object.entries(form).filter(([name, value]) => begun[name as keyof Form] !== value);
  return { ...stored, ...Object.fromEntries(mine) };
}
