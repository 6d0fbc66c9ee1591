/** What the journeys run on: a deployed console, keys of some tenants, a browser; and what every page must hold. */

import axe from "axe-core";
import type { APIResponse, Browser, BrowserContext, Page, Request, Route } from "playwright-core";
import { expect } from "vitest";
import { launch } from "./browser";

interface Stage {
  url: string;
  target: string;
  /** A web server: `/taken` takes a message, `/refused` does not, `/round` lets the notifier send what waits. */
  hooks: string;
  /**
   * Admins of the tenants ada, bob, cleo, who has the job `plain`, dana, finn, sue, who is suspended for a while, wanda,
   * and mallory, whose texts are attacks; an operator; mallory's other roles. Files that run side by side share bob, who
   * has no jobs, cleo, whose job keeps its name, and mallory, who stays as the stage made her.
   */
  keys: Record<
    "ada" | "bob" | "cleo" | "dana" | "finn" | "sue" | "wanda" | "mallory" | "operator" | "reads" | "writes",
    string
  >;
}

export const stage = JSON.parse(process.env.MINUTE8_CONSOLE_STAGE ?? "{}") as Stage;

/** The views of a tenant with this job. */
export function viewsOf(job: string): string[] {
  return [
    ...["", "jobs", `jobs/${job}`, `jobs/${job}/schedule`, `jobs/${job}/definition`, `jobs/${job}/history`],
    ...[`jobs/${job}/edit`, "new-job", "failures", "upcoming", "runs", "permits/a-key"],
    ...["calendars", "secrets", "subscriptions", "keys", "audit", "quota", "api"],
  ];
}

/** The operator's views, with a tenant's page. */
export function viewsOfOperator(tenant: string): string[] {
  return ["", "keys", "audit", "api", `tenants/${tenant}`];
}

/** Ask the API as a tenant. */
export async function call(
  key: string,
  method: string,
  path: string,
  body?: unknown,
): Promise<Record<string, unknown>> {
  const api = stage.url.replace(/console$/, "");
  const answer = await fetch(`${api.replace(/\/$/, "")}/v1/${path}`, {
    method,
    headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return answer.status === 204 ? {} : ((await answer.json()) as Record<string, unknown>);
}

/** Let the page of a concurrency key show one run that has a permit and one that waits: no target here takes so long. */
export async function holdPermits(page: Page, job: string): Promise<void> {
  const [since_at, until_at] = ["2026-11-01T00:00:00Z", "2036-11-01T00:00:00Z"];
  const entry = (name: string) => ({ execution_id: `mallory:${job}:${name}`, job_id: job, since_at, until_at });
  const json = { key: "a-key", holders: [entry("held")], waiting: [entry("waits")] };
  await page.route(/\/v1\/permits\?/, (route) => route.fulfill({ json }));
}

/** The API's whole answer to a request, also if the page has one already, or a kept connection was reset. */
export async function answered(route: Route): Promise<APIResponse> {
  return route.fetch({ headers: { ...route.request().headers(), "if-none-match": "" }, maxRetries: 3 });
}

let browser: Browser | undefined;

type Role = Parameters<Page["getByRole"]>[0];

export async function newPage(options: Parameters<Browser["newContext"]>[0] = {}): Promise<Page> {
  browser ??= await launch();
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  return watched(await pageOf(context));
}

async function pageOf(context: BrowserContext): Promise<Page> {
  context.setDefaultTimeout(45_000);
  // Whoever runs foreign code in the page would call it; whoever breaks the policy is reported.
  await context.addInitScript(() => {
    const seen: string[] = [];
    Object.assign(window, { pwned: (place: string) => seen.push(`pwned: ${place}`), seen });
    addEventListener("securitypolicyviolation", (event) =>
      seen.push(`policy: ${event.violatedDirective} ${event.blockedURI}`),
    );
  });
  return context.newPage();
}

const faults = new WeakMap<Page, string[]>();
const unanswered = new WeakMap<Page, Set<Request>>();

function watched(page: Page): Page {
  const found: string[] = [];
  faults.set(page, found);
  const waiting = new Set<Request>();
  unanswered.set(page, waiting);
  page.on("request", (request) => waiting.add(request));
  page.on("requestfinished", (request) => waiting.delete(request));
  page.on("requestfailed", (request) => waiting.delete(request));
  page.on("pageerror", (error) => found.push(String(error)));
  page.on("dialog", (dialog) => {
    found.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  return page;
}

/** Nothing failed in the page, nothing foreign ran, and nothing was blocked. */
export async function expectSound(page: Page): Promise<void> {
  const seen = await page.evaluate(() => (window as unknown as { seen: string[] }).seen);
  expect([...(faults.get(page) ?? []), ...seen]).toEqual([]);
}

/** Close a page in which nothing went wrong. */
export async function end(page: Page): Promise<void> {
  await expectSound(page);
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await page.context().close();
}

export async function signIn(page: Page, key: string): Promise<void> {
  await page.goto(stage.url);
  await page.getByLabel("API key or token").fill(key);
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Sign out" }).waitFor();
}

export async function show(page: Page, view: string): Promise<void> {
  await page.evaluate((hash) => {
    location.hash = hash;
  }, `#/${view}`);
  await page.getByRole("heading", { level: 1 }).first().waitFor();
}

/** Press Tab until what is wanted has the focus; nothing here uses a pointer or `focus()`. */
export async function tabTo(page: Page, name: string | RegExp, role: Role = "button"): Promise<void> {
  const wanted = page.getByRole(role, { name, exact: typeof name === "string" });
  await wanted.first().waitFor();
  for (let presses = 0; presses < 80; presses++) {
    await page.keyboard.press("Tab");
    if (await wanted.and(page.locator(":focus")).count()) return;
  }
  throw new Error(`no Tab reaches the ${role} ${name}`);
}

/** Everything that a view loads is there; if not, it says which part of which view still waits. */
export async function settled(page: Page): Promise<void> {
  const waiting = () =>
    page
      .locator(".waiting")
      .evaluateAll((parts) =>
        parts.map((part) => part.closest("section, main")?.getAttribute("aria-label") ?? "the view"),
      );
  await expect.poll(waiting, { message: page.url(), timeout: 45_000 }).toEqual([]);
}

// Shorter than the time after which the client gives a request up: that time passes on the page's clock, too.
const STEP_S = 30;

/** Let some minutes pass on the clock of a page that nobody touches. Each request is answered before time goes on. */
export async function pass(page: Page, minutes: number): Promise<void> {
  const waitsFor = () => [...(unanswered.get(page) ?? [])].map((request) => request.url());
  const allAnswered = () => expect.poll(waitsFor).toEqual([]);
  await allAnswered();
  for (let passed_s = 0; passed_s < minutes * 60; passed_s += STEP_S) {
    await page.clock.runFor(1000 * STEP_S);
    await page.waitForTimeout(50);
    await allAnswered();
  }
}

/** What breaks axe's rules. */
export async function violations(page: Page): Promise<string[]> {
  // The page's policy allows no script of ours in a tag; evaluated by the browser's own tools, it runs.
  await page.evaluate(axe.source);
  return page.evaluate(async () => {
    type Violation = { id: string; nodes: { html: string; failureSummary: string }[] };
    const { axe } = window as unknown as { axe: { run: (root: Document) => Promise<{ violations: Violation[] }> } };
    const result = await axe.run(document);
    return result.violations.map(
      (violation) =>
        `${violation.id}: ${violation.nodes.map((node) => `${node.html.slice(0, 200)} ${node.failureSummary}`).join("\n  ")}`,
    );
  });
}

/** The page is not wider than the window. */
export async function expectNoSideScroll(page: Page, where: string): Promise<void> {
  const [content, shown] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  expect(content, where).toBeLessThanOrEqual(shown ?? 0);
}

/** Right-to-left marks of a tenant turn nothing around them: each text with one stands alone in a box of its own. */
export async function expectIsolated(page: Page, where: string): Promise<void> {
  const turned = await page.evaluate(() => {
    const found: string[] = [];
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let text = texts.nextNode(); text; text = texts.nextNode()) {
      if (!/[\u202a-\u202e\u2066-\u2069]/.test(text.textContent ?? "")) continue;
      let box = text.parentElement;
      while (box && getComputedStyle(box).display === "inline" && getComputedStyle(box).unicodeBidi === "normal")
        box = box.parentElement;
      if (box?.textContent !== text.textContent) found.push(box?.outerHTML.slice(0, 300) ?? "");
    }
    return found;
  });
  expect(turned, where).toEqual([]);
}

export async function close(): Promise<void> {
  await browser?.close();
}
