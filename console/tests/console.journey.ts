/** Journeys through the deployed console in a real browser. They build on one another, and share one deployment. */

import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { close, expectNoSideScroll, expectSound, newPage, settled, show, signIn, stage, violations } from "./stage";

let page: Page;

beforeAll(async () => {
  page = await newPage();
});
afterAll(close);

const heading = (name: string | RegExp) => page.getByRole("heading", { level: 1, name });
const button = (name: string) => page.getByRole("main").getByRole("button", { name, exact: true });
const dialog = () => page.getByRole("dialog");

describe("signing in", () => {
  it("shows the first view after three requests", async () => {
    const asked: string[] = [];
    page.on("request", (request) => asked.push(request.url()));
    await page.goto(stage.url);
    await page.getByLabel("API key or token").waitFor();
    // Images that are part of the page, but not of what makes it work.
    expect(asked.filter((url) => !url.endsWith(".svg"))).toHaveLength(3);
    page.removeAllListeners("request");
  });

  it("shows the first view soon, beside a bare answer of the API in the same browser", async () => {
    const timeOf = async (address: string, isThere: (other: Page) => Promise<unknown>) => {
      const other = await newPage(); // with nothing cached
      const began = performance.now();
      await other.goto(address);
      await isThere(other);
      const took = performance.now() - began;
      await other.context().close();
      return took;
    };
    // A busy machine slows both; single figures are noise there, so one good comparison is enough.
    const ratio = async () => {
      const view = await timeOf(stage.url, (other) => other.getByLabel("API key or token").waitFor());
      const bare = await timeOf(stage.url.replace(/console$/, "v1"), (other) => other.getByText("version").waitFor());
      return view < 1000 ? 1 : view / bare;
    };
    await expect.poll(ratio, { timeout: 40_000 }).toBeLessThan(10);
  });

  it("refuses a wrong key in words, and keeps a right one out of the address and localStorage", async () => {
    await page.getByLabel("API key or token").fill(`${stage.keys.ada.slice(0, -1)}_`);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("alert").waitFor();
    await signIn(page, stage.keys.ada);
    const kept = await page.evaluate(() => location.href + JSON.stringify({ ...localStorage }) + document.cookie);
    expect(kept).not.toContain("m8_");
    await page.reload();
    await page.getByRole("button", { name: "Sign out" }).waitFor();
  });
});

describe("a job", () => {
  it("is created with a preview, which says what is wrong while one types", async () => {
    await page.getByRole("link", { name: "Create the first one" }).click();
    await page.getByLabel("Id", { exact: true }).fill("beat");
    const cron = page.getByLabel("Cron expression");
    await cron.fill("0 25 * * *");
    await page.locator(".wrong", { hasText: "Cron expression" }).waitFor();
    await cron.fill("*/5 * * * * *");
    await page.getByText("Every 5 seconds").first().waitFor();
    await page.getByRole("textbox", { name: "Target" }).fill(JSON.stringify({ kind: "lambda", arn: stage.target }));
    await page.getByRole("textbox", { name: "Payload" }).fill('{"duration_s": 0.1}');
    await button("Create").click();
    await heading("beat").waitFor();
  });

  it("is seen firing, without a reload", async () => {
    await page.getByRole("table", { name: "Runs" }).getByText("succeeded").first().waitFor({ timeout: 45_000 });
    await page.getByRole("img", { name: /Expected against actual: .*on time/ }).waitFor();
  });

  it("is made to fail by an edit that says what it changes", async () => {
    await page.getByRole("link", { name: "Edit" }).click();
    await page.getByRole("textbox", { name: "Payload" }).fill('{"fail_rate": 1}');
    await page.getByLabel("Attempts").fill("1");
    const changes = page.getByRole("region", { name: "What changes" });
    await changes.getByText("payload").first().waitFor();
    await changes.getByText("retry.max_attempts").waitFor();
    await button("Save").click();
    await page.getByRole("table", { name: "Runs" }).getByText("failed").first().waitFor({ timeout: 45_000 });
  });

  it("says why a run failed, and tries it again", async () => {
    await page.getByRole("table", { name: "Runs" }).getByText("failed").first().click();
    await heading("Run").waitFor();
    await page.getByRole("table", { name: "The way of this execution" }).getByText("failed").first().waitFor();
    await page.getByText("as the payload asked").first().waitFor();
    await button("Retry").click();
    await page.getByText("One more attempt begins").waitFor();
    await page.getByRole("rowheader", { name: "attempt 2" }).waitFor();
  });

  it("is paused with a note, and skipped, run and resumed", async () => {
    await show(page, "jobs/beat");
    await button("Skip next").click();
    await dialog().getByRole("button", { name: "Skip", exact: true }).click();
    await page.getByText("The next fire time is skipped").waitFor();
    await button("Pause").click();
    await dialog().getByLabel("Note").fill("while we look");
    await dialog().getByRole("button", { name: "Pause", exact: true }).click();
    await page.getByText("while we look").first().waitFor();
    await button("Run now").click();
    await dialog().getByLabel("Payload of this run").fill('{"duration_s": 0.2}');
    await dialog().getByRole("button", { name: "Run now" }).click();
    await heading("Run").waitFor();
    await page.getByRole("main").getByText("succeeded").first().waitFor({ timeout: 45_000 });
    await show(page, "jobs/beat");
    await button("Resume").click();
    await page.getByText("beat is active again").waitFor();
  });

  it("explains an instant at which it is not due", async () => {
    await page.getByLabel("At", { exact: true }).fill("2030-01-01T00:00:03Z");
    await button("Explain").click();
    await page.getByText("Its seconds are not 3.").waitFor();
  });

  it("runs a past range again, counted first", async () => {
    await button("Backfill").click();
    const end = new Date(Math.floor(Date.now() / 60_000) * 60_000);
    await dialog()
      .getByLabel("From")
      .fill(new Date(end.getTime() - 10_000).toISOString().replace(".000", ""));
    await dialog().getByLabel("Until").fill(end.toISOString().replace(".000", ""));
    await dialog().getByRole("button", { name: "Count" }).click();
    await dialog().getByText("That is 2 fire times").waitFor();
    await dialog().getByRole("button", { name: "Run 2 fire times" }).click();
    await page.getByText("2 runs of beat begin").waitFor();
    const progress = page.getByRole("region", { name: "Backfill" });
    await progress.getByText("2 of 2 executions are handed over").waitFor();
    await progress.getByRole("link", { name: "Close" }).click();
    await progress.waitFor({ state: "detached" });
  });

  it("stops a past range that is too long", async () => {
    await button("Backfill").click();
    await dialog().getByRole("button", { name: "Count" }).click();
    // The whole day is more than a backfill may have.
    await dialog().getByRole("alert").waitFor();
    const from = new Date(Math.floor(Date.now() / 60_000) * 60_000 - 3_600_000);
    await dialog().getByLabel("From").fill(from.toISOString().replace(".000", ""));
    await dialog().getByRole("button", { name: "Count" }).click();
    await dialog()
      .getByRole("button", { name: /Run 7\d\d fire times/ })
      .click();
    const progress = page.getByRole("region", { name: "Backfill" });
    await progress.getByRole("button", { name: "Cancel the backfill" }).click();
    await progress.getByText("cancelled").waitFor();
    // Its runs of the past would fill the lists of what follows.
    await show(page, "jobs/beat");
  });

  it("is changed together with others", async () => {
    await show(page, "jobs");
    await page.getByLabel("Choose all that are shown").check();
    await button("Pause").click();
    await dialog().getByRole("heading", { name: "Pause: 1 job" }).waitFor();
    await dialog().getByText("Every active job").waitFor();
    await dialog().getByRole("button", { name: "Pause" }).click();
    await page.getByRole("table", { name: "Jobs" }).getByText("paused").first().waitFor();
    await page.getByLabel("Health").selectOption("paused");
    expect(page.url()).toContain("health=paused");
    await expectSound(page);
  });

  it("shows its failures together", async () => {
    await show(page, "failures");
    const row = page.getByRole("row", { name: /beat.*as the payload asked/ }).first();
    await row.getByRole("button", { name: "Runs" }).click();
    await page.getByRole("table", { name: "Runs" }).getByText("failed").first().waitFor();
    await row.getByRole("button", { name: "Retry" }).click();
    await dialog().getByRole("button", { name: "Retry" }).click();
    await page.getByText(/\d+ runs are tried again/).waitFor();
  });
});

/** Press Tab until what is wanted has the focus; nothing here uses a pointer or `focus()`. */
async function tabTo(of: Page, name: string | RegExp, role = "button"): Promise<void> {
  for (let presses = 0; presses < 80; presses++) {
    await of.keyboard.press("Tab");
    const focused = of.locator(":focus");
    const found = of.getByRole(role as "button", { name, exact: typeof name === "string" });
    if ((await focused.count()) && (await found.and(focused).count())) return;
  }
  throw new Error(`no Tab reaches the ${role} ${name}`);
}

describe("the keyboard alone", () => {
  it("signs in, finds a job, and opens what it has", async () => {
    const other = await newPage();
    await other.goto(stage.url);
    await other.getByLabel("API key or token").waitFor();
    await other.keyboard.type(stage.keys.ada);
    await other.keyboard.press("Enter");
    await other.getByRole("button", { name: "Sign out" }).waitFor();
    await other.keyboard.press("g");
    await other.keyboard.press("j");
    await other.getByRole("heading", { level: 1, name: "Jobs" }).waitFor();
    await other.keyboard.press("/");
    await other.keyboard.type("bea");
    await other.keyboard.press("Enter");
    await other.waitForURL(/search=bea/);
    await other.getByRole("table", { name: "Jobs" }).getByRole("link", { name: "beat" }).waitFor();
    await other.keyboard.press("j");
    await other.keyboard.press("Enter");
    await other.getByRole("heading", { level: 1, name: "beat" }).waitFor();
    await other.keyboard.press("?");
    await other.getByRole("dialog").getByRole("heading", { name: "Keyboard" }).waitFor();
    await other.keyboard.press("Escape");
    await other.context().close();
  });

  it("resumes, skips, pauses, runs and explains", async () => {
    await show(page, "jobs/beat");
    await tabTo(page, "Resume");
    await page.keyboard.press("Enter");
    await page.getByText("beat is active again").last().waitFor();
    await tabTo(page, "Skip next");
    await page.keyboard.press("Enter");
    await tabTo(page, "Skip");
    await page.keyboard.press("Enter");
    await page.getByText("The next fire time is skipped").last().waitFor();
    await tabTo(page, "Pause");
    await page.keyboard.press("Enter");
    await tabTo(page, "Note", "textbox");
    await page.keyboard.type("by hand");
    await page.keyboard.press("Enter");
    await page.getByText("Paused: by hand").waitFor();
    // A later instant: the second of the pause itself began before the pause.
    await tabTo(page, "At", "textbox");
    await page.keyboard.type("2030-01-01T00:00:00Z");
    await page.keyboard.press("Enter");
    await page.getByRole("region", { name: "Why, or why not?" }).getByText("The job is paused").waitFor();
    await tabTo(page, "Run now");
    await page.keyboard.press("Enter");
    await tabTo(page, "Run now");
    await page.keyboard.press("Enter");
    await heading("Run").waitFor();
  });

  it("retries a group of failures, and chooses jobs", async () => {
    await page.keyboard.press("g");
    await page.keyboard.press("f");
    await heading("Failures").waitFor();
    await tabTo(page, "Retry");
    await page.keyboard.press("Enter");
    await tabTo(page, "Retry");
    await page.keyboard.press("Enter");
    await page
      .getByText(/\d+ runs are tried again/)
      .last()
      .waitFor();
    await page.keyboard.press("g");
    await page.keyboard.press("j");
    await heading("Jobs").waitFor();
    await tabTo(page, "Choose all that are shown", "checkbox");
    await page.keyboard.press("Space");
    await tabTo(page, "Resume");
    await page.keyboard.press("Enter");
    await dialog().getByRole("heading", { name: "Resume: 1 job" }).waitFor();
    await page.keyboard.press("Escape");
    await dialog().waitFor({ state: "detached" });
  });

  it("creates a job", async () => {
    await page.keyboard.press("g");
    await page.keyboard.press("j");
    await tabTo(page, "New job", "link");
    await page.keyboard.press("Enter");
    await tabTo(page, "Id", "textbox");
    await page.keyboard.type("typed");
    await tabTo(page, "Target", "textbox");
    await page.keyboard.press("Control+A");
    await page.keyboard.type(JSON.stringify({ kind: "lambda", arn: stage.target }));
    await page.keyboard.press("Enter");
    await tabTo(page, "Create");
    await page.keyboard.press("Enter");
    await heading("typed").waitFor();
  });
});

const VIEWS = [
  "",
  "jobs",
  "jobs/beat",
  "jobs/beat/edit",
  "new-job",
  "failures",
  "runs",
  "calendars",
  "subscriptions",
  "keys",
  "audit",
  "quota",
  "api",
];

describe("every view", () => {
  it.each(["light", "dark"] as const)(
    "breaks no rule of axe in the %s theme, and fits 320 px in the light one",
    async (theme) => {
      const other = await newPage({ colorScheme: theme });
      await signIn(other, stage.keys.ada);
      const found: string[] = [];
      const run = await firstRun(other);
      for (const view of [...VIEWS, run]) {
        await show(other, view);
        await settled(other);
        found.push(...(await violations(other)).map((one) => `${view}: ${one}`));
      }
      expect(found).toEqual([]);
      await other.setViewportSize({ width: 320, height: 640 });
      for (const view of theme === "light" ? [...VIEWS, run] : []) {
        await show(other, view);
        await settled(other);
        await expectNoSideScroll(other, view);
      }
      await expectSound(other);
      await other.context().close();
    },
  );
});

/** The address of the newest run. */
async function firstRun(of: Page): Promise<string> {
  await show(of, "runs");
  const link = of.getByRole("table", { name: "Runs" }).locator("[data-row]").first();
  return ((await link.getAttribute("href")) ?? "").replace("#/", "");
}

describe("every view of an operator, and the signing in", () => {
  it.each(["light", "dark"] as const)("breaks no rule of axe in the %s theme, and fits 320 px", async (theme) => {
    const other = await newPage({ colorScheme: theme });
    await other.goto(stage.url);
    await other.getByLabel("API key or token").waitFor();
    const found = (await violations(other)).map((one) => `sign in: ${one}`);
    await other.setViewportSize({ width: 320, height: 640 });
    await expectNoSideScroll(other, "sign in");
    await signIn(other, stage.keys.operator);
    for (const view of ["", "keys", "audit", "api", `tenants/${stage.tenant}`]) {
      await show(other, view);
      await settled(other);
      await expectNoSideScroll(other, view);
      found.push(...(await violations(other)).map((one) => `${view}: ${one}`));
    }
    expect(found).toEqual([]);
    await expectSound(other);
    await other.context().close();
  });
});

describe("a hostile tenant", () => {
  it("writes markup, which stays text", async () => {
    const other = await newPage();
    await signIn(other, stage.keys.mallory);
    await show(other, "jobs");
    // Its job was registered with these texts; see tests/end_to_end/test_console.py.
    await other.getByText("<img src=x onerror=").first().waitFor();
    for (const view of ["", "jobs", "jobs/evil", "jobs/evil/edit", "failures", "runs", "audit", "quota", "calendars"]) {
      await show(other, view);
      await settled(other);
      await expectNoSideScroll(other, view);
      expect(await other.locator("main img, main script, main iframe").count(), view).toBe(0);
    }
    await show(other, "jobs/evil/edit");
    await other.getByLabel("Name").fill("x".repeat(100_000));
    await other.getByRole("button", { name: "Save" }).click();
    await other.locator(".wrong", { hasText: "Name" }).waitFor();
    await expectNoSideScroll(other, "after a refusal");
    await expectSound(other);
    await other.context().close();
  });
});

describe("other tenants", () => {
  it("do not see it, neither in lists nor by its address", async () => {
    const other = await newPage();
    await signIn(other, stage.keys.bob);
    await other.getByText("No jobs yet").waitFor();
    await show(other, "jobs/beat");
    await other.getByRole("alert").waitFor();
    expect(await other.getByRole("main").textContent()).not.toContain("lambda");
    await other.context().close();
  });

  it("may only look with a key of the role read", async () => {
    const other = await newPage();
    await signIn(other, stage.keys.reader);
    await show(other, "jobs/beat");
    await other.getByText("Expected against actual").waitFor();
    expect(await other.getByRole("button", { name: "Run now" }).count()).toBe(0);
    await show(other, "keys");
    await other.getByText("A key of the role admin is needed").waitFor();
    await other.context().close();
  });
});

describe("the operator", () => {
  it("suspends a tenant, which then reads why, and resumes it", async () => {
    const other = await newPage();
    await signIn(other, stage.keys.operator);
    await other.getByRole("table", { name: "Tenants" }).waitFor();
    await settled(other);
    await show(other, `tenants/${stage.tenant}`);
    await other.getByRole("main").getByRole("button", { name: "Suspend" }).click();
    await other.getByRole("dialog").getByLabel("Note").fill("unpaid");
    await other.getByRole("dialog").getByRole("button", { name: "Suspend" }).click();
    await other.getByText(`${stage.tenant} is suspended`).waitFor();
    expect(await violations(other)).toEqual([]);
    const ada = await newPage();
    await signIn(ada, stage.keys.ada);
    await expect
      .poll(
        async () => {
          await ada.reload();
          await ada.getByRole("button", { name: "Sign out" }).waitFor();
          return ada.getByRole("main").textContent();
        },
        { timeout: 30_000, interval: 1000 },
      )
      .toContain("unpaid");
    await other.getByRole("button", { name: "Resume" }).click();
    await other.getByRole("button", { name: "Suspend" }).waitFor();
    await expectSound(other);
  });
});
