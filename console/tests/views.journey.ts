/** Every view in a real browser, for a tenant whose every text is an attack: by role, in both themes, on a phone. */

import type { Page } from "playwright-core";
import { afterAll, describe, expect, it } from "vitest";
import {
  close,
  expectIsolated,
  expectNoSideScroll,
  expectSound,
  holdPermits,
  newPage,
  settled,
  show,
  signIn,
  stage,
  tabTo,
  viewsOf,
  viewsOfOperator,
  violations,
} from "./stage";

afterAll(close);

const PHONE = { width: 320, height: 640 };
const WIDE = { width: 1280, height: 900 };

describe("the first view", () => {
  it("takes three requests", async () => {
    const page = await newPage(); // with nothing cached
    const requested: string[] = [];
    page.on("request", (request) => requested.push(request.url()));
    await page.goto(stage.url);
    await page.getByLabel("API key or token").waitFor();
    // Images are part of the page, but not of what makes it work.
    expect(requested.filter((url) => !url.endsWith(".svg"))).toHaveLength(3);
    await page.context().close();
  });
});

/** What is wrong with a view, as far as a machine sees it. */
async function look(page: Page, view: string): Promise<string[]> {
  await show(page, view);
  await settled(page);
  await expectNoSideScroll(page, view);
  await expectIsolated(page, view);
  expect(await page.locator("main img, main script, main iframe").count(), view).toBe(0);
  return (await violations(page)).map((violation) => `${view}: ${violation}`);
}

describe("every view", () => {
  it.each([
    ["light", WIDE],
    ["dark", PHONE],
  ] as const)("breaks no rule of axe in the %s theme, and shows attacks as text", async (colorScheme, viewport) => {
    const page = await newPage({ colorScheme, viewport });
    await page.goto(stage.url);
    await page.getByLabel("API key or token").waitFor();
    const found = (await violations(page)).map((violation) => `sign in: ${violation}`);
    await expectNoSideScroll(page, "sign in");
    await signIn(page, stage.keys.mallory);
    await holdPermits(page, "evil");
    await show(page, "jobs");
    // Its jobs were registered with these texts; see tests/end_to_end/test_console.py.
    await page.locator("main bdi", { hasText: "<img src=x onerror=" }).first().waitFor();
    const run = page.getByRole("table", { name: "Runs" }).locator("[data-row]").first();
    for (const view of viewsOf("evil")) {
      found.push(...(await look(page, view)));
      if (view === "runs") found.push(...(await look(page, ((await run.getAttribute("href")) ?? "").slice(2))));
    }
    await page.getByRole("button", { name: "Sign out" }).click();
    await signIn(page, stage.keys.operator);
    for (const view of viewsOfOperator("mallory")) found.push(...(await look(page, view)));
    expect(found).toEqual([]);
    await expectSound(page);
    await page.context().close();
  });

  it("refuses a name of 100 KB in words, beside its field", async () => {
    const page = await newPage({ viewport: PHONE });
    await signIn(page, stage.keys.mallory);
    await show(page, "jobs/evil/edit");
    await page.getByLabel("Name").fill(`\u202e${"x".repeat(100_000)}`);
    await page.getByRole("button", { name: "Save" }).click();
    await page.locator(".wrong", { hasText: "Name" }).waitFor();
    await expectNoSideScroll(page, "after a refusal");
    await expectSound(page);
    await page.context().close();
  });
});

/** The buttons and links of the views that change something. */
async function changes(page: Page): Promise<Set<string>> {
  const found = new Set<string>();
  for (const view of viewsOf("evil").filter((view) => view !== "api")) {
    await show(page, view);
    await settled(page);
    const names = await page
      .locator("main :not(.legend, .presets, .pick, .field) > button, main a.button")
      .allTextContents();
    for (const name of names)
      if (!/^(Explain|Copy|Runs|Filters|Show .+|\d+ [hd]|Clear|[‹›])$/.test(name.trim())) found.add(name.trim());
  }
  return found;
}

describe("what a role may do", () => {
  const OF_WRITERS = [
    "New job",
    "Run now",
    "Resume",
    "Backfill",
    "Edit",
    "Delete",
    "Save",
    "Create",
    "Cancel",
    "Retry",
    "Mute",
    "Retry failed",
    "Cancel waiting",
  ];
  const OF_LISTS = ["New calendar", "New subscription", "New secret", "Replace", "Test"];

  it.each([
    ["reads", []],
    ["writes", [...OF_WRITERS, ...OF_LISTS]],
    ["mallory", [...OF_WRITERS, ...OF_LISTS, "New key", "Revoke"]],
  ] as const)("is what is shown to it: %s", async (key, expected) => {
    const page = await newPage();
    await signIn(page, stage.keys[key]);
    expect([...(await changes(page))].sort()).toEqual([...expected].sort());
    await show(page, "keys");
    expect(await page.getByText("A key of the role admin is needed").count()).toBe(key === "mallory" ? 0 : 1);
    await page.context().close();
  });
});

describe("other tenants", () => {
  it("do not see it, neither in lists nor by its address", async () => {
    const page = await newPage();
    await signIn(page, stage.keys.bob);
    await page.getByText("No jobs yet").waitFor();
    await show(page, "jobs/evil");
    await page.getByRole("alert").waitFor();
    expect(await page.getByRole("main").textContent()).not.toContain("lambda");
    await page.context().close();
  });
});

describe("the operator, by keyboard alone", () => {
  it("reads a dead letter, and discards it", async () => {
    const page = await newPage();
    await signIn(page, stage.keys.operator);
    await tabTo(page, "Show");
    await page.keyboard.press("Enter");
    await page.getByRole("table", { name: "Dead letters of executions" }).getByText("<img src=x").first().waitFor();
    await tabTo(page, "Discard");
    await page.keyboard.press("Enter");
    await tabTo(page, "Discard");
    await page.keyboard.press("Enter");
    await page.getByText("No message was given up").waitFor();
    await expectSound(page);
    await page.context().close();
  });

  it("suspends a tenant, which then reads why, and resumes it", async () => {
    const page = await newPage();
    await signIn(page, stage.keys.operator);
    await page.getByRole("table", { name: "Tenants" }).waitFor();
    await show(page, "tenants/sue");
    await tabTo(page, "Suspend");
    await page.keyboard.press("Enter");
    await tabTo(page, "Note", "textbox");
    await page.keyboard.type("unpaid");
    await page.keyboard.press("Enter");
    await page.getByText("sue is suspended").waitFor();
    expect(await violations(page)).toEqual([]);
    const tenant = await newPage();
    await signIn(tenant, stage.keys.sue);
    await expect
      .poll(
        async () => {
          await tenant.reload();
          await tenant.getByRole("button", { name: "Sign out" }).waitFor();
          return tenant.getByRole("main").textContent();
        },
        { timeout: 30_000, interval: 500 },
      )
      .toContain("unpaid");
    await show(tenant, "new-job");
    await tenant.getByText("Nothing of this tenant can be changed").waitFor();
    await tabTo(page, "Resume");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Suspend" }).waitFor();
    await expectSound(page);
    await page.context().close();
  });
});
