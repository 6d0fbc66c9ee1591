/** Where somebody is stays: the scroll, the focus, the session. When it is, is said with its year, on the right clock. */

import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { call, close, end, newPage, settled, show, signIn, stage, viewsOf } from "./stage";

afterAll(close);

const key = stage.keys.finn;
const job = { schedule: { every: "1h" }, target: { kind: "lambda", arn: stage.target } };
const LISTED = 30;
let failedRun = "";

beforeAll(async () => {
  await call(key, "PUT", "jobs/plain", job);
  await call(key, "PUT", "jobs/breaks", { ...job, payload: { fail_rate: 1 }, retry: { max_attempts: 1 } });
  await call(key, "PUT", "jobs/yearly", { ...job, schedule: { cron: "0 0 1 1 *", timezone: "Europe/Paris" } });
  for (let n = 0; n < LISTED; n++) await call(key, "PUT", `jobs/listed-${n}`, job);
  const runs = await Promise.all(["breaks", "plain", "plain"].map((id) => call(key, "POST", `jobs/${id}/run`)));
  const ids = runs.map((run) => String(run.execution_id));
  const states = () => Promise.all(ids.map(async (id) => (await call(key, "GET", `runs/${id}`)).status));
  const haveEnded = async () => (await states()).every((state) => state === "failed" || state === "succeeded");
  await vi.waitUntil(haveEnded, { timeout: 45_000, interval: 500 });
  failedRun = ids[0] ?? "";
});

const scrolled = (page: Page) => page.evaluate(() => scrollY);

/** Scroll as far as that, which the page may have to grow to first. */
async function scrollTo(page: Page, y: number): Promise<void> {
  const scroll = () =>
    page.evaluate((to) => {
      window.scrollTo(0, to);
      return scrollY;
    }, y);
  await expect.poll(scroll).toBe(y);
  await expect.poll(() => page.evaluate(() => (history.state as { y?: number } | null)?.y)).toBe(y);
}

describe("the scroll", () => {
  it("is where it was left after Back, in a list that was read before, and in a view that is still to come", async () => {
    const page = await newPage({ viewport: { width: 1280, height: 300 } });
    await signIn(page, key);
    await show(page, "jobs/plain/edit");
    await settled(page);
    await scrollTo(page, 400);
    await show(page, "jobs");
    await page
      .getByText(`${LISTED + 3} jobs`)
      .first()
      .waitFor();
    await expect.poll(() => scrolled(page)).toBe(0);
    await scrollTo(page, 700);
    const release: (() => void)[] = [];
    await page.route("**/v1/jobs/plain", (route) => {
      release.push(() => void route.fallback());
    });
    await page.goBack();
    await page.getByRole("heading", { level: 1, name: "Edit plain" }).waitFor();
    await expect.poll(() => release.length).toBe(1);
    expect(await scrolled(page)).toBeLessThan(400);
    for (const answer of release) answer();
    await page.getByRole("button", { name: "Save" }).waitFor();
    await expect.poll(() => scrolled(page)).toBe(400);
    await page.goForward();
    await page.getByRole("heading", { level: 1, name: "Jobs" }).waitFor();
    await expect.poll(() => scrolled(page)).toBe(700);
    await end(page);
  });

  it("is theirs who scroll while a view comes", async () => {
    const page = await newPage({ viewport: { width: 1280, height: 300 } });
    await signIn(page, key);
    await show(page, "jobs");
    await settled(page);
    await scrollTo(page, 700);
    await show(page, "quota");
    await settled(page);
    await page.goBack();
    await expect.poll(() => scrolled(page)).toBe(700);
    await page.mouse.move(600, 150);
    await page.mouse.wheel(0, -300);
    await expect.poll(() => scrolled(page)).toBe(400);
    await page.keyboard.press("r");
    await settled(page);
    expect(await scrolled(page)).toBe(400);
    await end(page);
  });
});

/** What has the focus: its tag and its text or label. */
function focused(page: Page): Promise<string> {
  return page.evaluate(() => {
    const { activeElement: element } = document;
    if (!element || element === document.body) return "nothing";
    const label = (element as HTMLInputElement).labels?.[0]?.textContent;
    return `${element.localName} ${label ?? element.textContent}`;
  });
}

async function press(page: Page, name: string): Promise<void> {
  await page.getByRole("button", { name, exact: true }).focus();
  await page.keyboard.press("Enter");
}

describe("the focus", () => {
  it("is back on the button after its dialog", async () => {
    const page = await newPage();
    await signIn(page, key);
    await show(page, "jobs/plain");
    await press(page, "Run now");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await expect.poll(() => focused(page)).toBe("button Run now");
    await end(page);
  });

  it("is among the run’s buttons after a retry, whose own button goes", async () => {
    const page = await newPage();
    await signIn(page, key);
    await show(page, `runs/${failedRun}`);
    await press(page, "Retry");
    await page.getByText("One more attempt begins").waitFor();
    await page.getByRole("rowheader", { name: "attempt 2" }).waitFor();
    await expect.poll(() => focused(page)).toMatch(/^button (Retry|Run again|Cancel)$/);
    await end(page);
  });

  it("is among the job’s buttons after a pause and after it was resumed", async () => {
    const page = await newPage();
    await signIn(page, key);
    await show(page, "jobs/plain");
    await press(page, "Pause");
    await page.getByRole("dialog").getByLabel("Note").fill("for a while");
    await page.keyboard.press("Enter");
    await page.getByText("Paused: for a while").waitFor();
    await expect.poll(() => focused(page)).toMatch(/^button (Resume|Run now)$/);
    await press(page, "Resume");
    await page.getByRole("button", { name: "Pause", exact: true }).waitFor();
    await expect.poll(() => focused(page)).toMatch(/^button (Pause|Skip next|Run now)$/);
    await end(page);
  });

  it("is in the field that was refused; on the button if none was", async () => {
    const page = await newPage();
    await signIn(page, key);
    await show(page, "new-job");
    await page.getByLabel("Id", { exact: true }).fill("no id!");
    await page.getByLabel("Function", { exact: true }).fill(stage.target);
    await press(page, "Create");
    await page.locator(".wrong", { hasText: "Id" }).waitFor();
    await expect.poll(() => focused(page)).toBe("input Id");
    const json = { type: "urn:minute8:problem:quota-exceeded", title: "too many jobs", status: 403 };
    await page.route("**/v1/jobs", (route) => route.fulfill({ status: 403, json }));
    await page.getByLabel("Id", { exact: true }).fill("an-id");
    await press(page, "Create");
    await page.locator(".problem", { hasText: "too many jobs" }).waitFor();
    await expect.poll(() => focused(page)).toBe("button Create");
    await page.getByRole("link", { name: "Cancel" }).click();
    await end(page);
  });
});

describe("the session", () => {
  it("goes on in a new tab, and ends in the tab that signs out", async () => {
    const page = await newPage();
    await signIn(page, key);
    const tab = await page.context().newPage();
    await tab.goto(stage.url);
    await tab.getByRole("button", { name: "Sign out" }).click();
    await tab.reload();
    await tab.getByLabel("API key or token").waitFor();
    await page.getByRole("button", { name: "Sign out" }).waitFor();
    await end(page);
  });
});

/** Texts with a date that has no year. In the browser. */
function datesWithoutYear(): string[] {
  const MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec";
  const ofDigits = /(?<![\w-])\d\d-\d\d(?![\w-])/;
  const ofWords = new RegExp(`\\b(\\d{1,2} (${MONTHS})[a-z]*|(${MONTHS})[a-z]* \\d{1,2})\\b(?!,? \\d{4})`);
  const found: string[] = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    const shown = text.textContent ?? "";
    if (ofDigits.test(shown) || ofWords.test(shown)) found.push(shown.slice(0, 200));
  }
  return found;
}

describe("a date", () => {
  it("has its year in every view, in tables and on axes", async () => {
    const page = await newPage();
    await signIn(page, key);
    for (const view of [...viewsOf("plain"), "jobs/yearly", "jobs/yearly/schedule", `runs/${failedRun}`]) {
      await show(page, view);
      await settled(page);
      expect(await page.evaluate(datesWithoutYear), view).toEqual([]);
    }
    // The runs of plain have an axis, and the job of each year fires in another year.
    await show(page, "jobs/plain");
    const axis = page.getByRole("img", { name: /Durations of the last \d+ runs/ });
    await axis
      .getByText(/^\d{4}-\d\d-\d\d \d\d:\d\d$/)
      .first()
      .waitFor();
    await show(page, "jobs/yearly");
    await page.getByText(/next \d{4}-12-31 23:00:00/).waitFor();
    await end(page);
  });

  it("of a clock change is on the clock of its zone", async () => {
    const page = await newPage();
    await page.clock.setFixedTime("2026-12-10T12:00:00Z");
    await page.route("**/v1/clock-changes*", (route) => {
      const moved = { job_id: "yearly", change_at: "2027-03-28T01:00:00Z", timezone: "Europe/Paris", text: "it moves" };
      return route.fulfill({ json: { moved: [moved], next_cursor: null } });
    });
    await signIn(page, key);
    await show(page, "jobs/yearly/schedule");
    await page.getByText("2027-03-28: +01:00 → +02:00, the clock skips 60 min").waitFor();
    await show(page, "upcoming");
    const row = page.getByRole("table", { name: "Jobs that a clock change moves" }).getByRole("row");
    expect(await row.first().textContent()).toMatch(/2027-03-28 03:00:00\s+Europe\/Paris/);
    await end(page);
  });
});
