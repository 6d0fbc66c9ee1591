/** What a page does while it loads, when requests fail, and with what somebody typed. */

import type { Page, Route } from "playwright-core";
import { afterAll, describe, expect, it } from "vitest";
import { close, end, expectSound, newPage, settled, show, signIn, stage } from "./stage";

afterAll(close);

describe("a view that is not whole", () => {
  it("says of which part its rate is, and shows what is not known as no good news", async () => {
    const page = await newPage();
    const at = (hoursAgo: number) => new Date(Date.now() - hoursAgo * 3_600_000).toISOString();
    const spread = { count: 0 };
    const past = {
      ...{ from_at: at(2), fresh_at: at(0), runs: 9, statuses: { succeeded: 3, failed: 1, skipped: 5 }, reasons: {} },
      ...{ due: 4, success_rate: 0.75, lateness_s: spread, duration_s: spread, hours: [] },
    };
    const json: Record<string, unknown> = {
      at: at(0),
      job_counts: null,
      past: null,
      ahead: null,
      failing: null,
      errors: [],
    };
    await page.route("**/v1/overview", (route) => route.fulfill({ json }));
    await signIn(page, stage.keys.mallory);
    await page.getByText("is being counted for the first time").waitFor();
    expect(await page.locator(".figure .value").allTextContents()).toEqual(Array(6).fill("–"));
    expect(await page.locator(".figure.good").count()).toBe(0);
    json.past = past;
    await page.keyboard.press("r");
    const rate = page.locator(".figure", { hasText: /Succeeded, since/ });
    await rate.getByText("75 %").waitFor();
    await rate.getByText("of 4 that were due").waitFor();
    await page.context().close();
  });

  it("says once that the API does not answer, and goes on when it does", async () => {
    const page = await newPage();
    await signIn(page, stage.keys.bob);
    await settled(page);
    const refused = (route: Route) => route.fulfill({ status: 400, body: "<html>", contentType: "text/html" });
    await page.route("**/v1/**", (route) => route.fulfill({ body: "<html>a proxy</html>", contentType: "text/html" }));
    await show(page, "calendars");
    await page.getByText("The API does not answer").waitFor();
    expect(await page.getByRole("alert").count()).toBe(1);
    await page.getByText("Offline").waitFor();
    await page.unroute("**/v1/**");
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByText("The API does not answer").waitFor({ state: "detached" });
    await page.route("**/v1/**", refused);
    await show(page, "subscriptions");
    await page.getByRole("alert").waitFor();
    expect(await page.getByText("The API does not answer").count()).toBe(0);
    await page.context().close();
  });

  it("says once that the API fails, keeps what it shows, and goes on when the API does", async () => {
    const page = await newPage();
    await signIn(page, stage.keys.cleo);
    await show(page, "jobs/plain");
    await settled(page);
    const json = { type: "urn:minute8:problem:internal", title: "It broke", status: 500 };
    await page.route("**/v1/**", (route) => route.fulfill({ status: 500, json }));
    await page.keyboard.press("r");
    const said = page.getByRole("alert").filter({ hasText: "The API fails. What is shown was true" });
    await said.waitFor();
    await page.getByRole("button", { name: "Failing" }).waitFor();
    // The job, its runs and its times were asked for; each of them failed.
    await page.getByRole("region", { name: "Runs", exact: true }).waitFor();
    expect(await page.getByRole("alert").count()).toBe(1);
    await show(page, "calendars");
    await settled(page);
    expect(await page.getByRole("alert").count()).toBe(1);
    await page.unroute("**/v1/**");
    await page.keyboard.press("r");
    await page.getByText("No calendars yet").waitFor();
    await said.waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Live" }).waitFor();
    await end(page);
  });

  it("asks again for each part when the API is back, though nobody asks", async () => {
    const page = await newPage();
    await signIn(page, stage.keys.cleo);
    await show(page, "jobs/plain/history");
    await settled(page);
    const json = { type: "urn:minute8:problem:internal", title: "It broke", status: 500 };
    let refused = 0;
    await page.route("**/v1/**", async (route) => {
      await route.fulfill({ status: 500, json });
      // The page reads the job every ten seconds, but its audit once; the client tries four times.
      if (new URL(route.request().url()).pathname.endsWith("/v1/audit")) refused++;
    });
    await page.keyboard.press("r");
    await page.getByRole("alert").filter({ hasText: "The API fails" }).waitFor();
    await expect.poll(() => refused, { timeout: 45_000 }).toBeGreaterThanOrEqual(4);
    await page.unroute("**/v1/**");
    await page.mouse.move(5, 5);
    await expect.poll(() => page.getByRole("alert").count(), { timeout: 90_000 }).toBe(0);
    await settled(page);
    await end(page);
  });

  it("says at once that the requests of the minute are used up, and that they are not any more", async () => {
    const page = await newPage();
    await signIn(page, stage.keys.bob);
    await settled(page);
    const json = { type: "urn:minute8:problem:too-many-requests", title: "too many", status: 429 };
    // Each address once: however slow this machine is, the first repetition is answered.
    const refused = new Set<string>();
    await page.route("**/v1/**", (route) => {
      const { pathname } = new URL(route.request().url());
      if (refused.has(pathname)) return route.fallback();
      refused.add(pathname);
      return route.fulfill({ status: 429, headers: { "retry-after": "10" }, json });
    });
    await show(page, "calendars");
    await page.getByText("The tenant’s requests of this minute are used up").waitFor({ timeout: 4000 });
    expect(await page.getByRole("alert").count()).toBe(1);
    await page.getByText("No calendars yet").waitFor();
    await page.getByText("The tenant’s requests of this minute are used up").waitFor({ state: "detached" });
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await page.context().close();
  });

  it("is none for a name that objects have by themselves", async () => {
    const page = await newPage();
    await signIn(page, stage.keys.bob);
    await page.evaluate(() => {
      location.hash = "#/__proto__";
    });
    await page.getByText("There is no such view").waitFor();
    await expectSound(page);
    await page.context().close();
  });
});

const nameField = (page: Page) => page.getByLabel("Name", { exact: true });
const targetField = (page: Page) => page.getByLabel("Function", { exact: true });

describe("what somebody typed", () => {
  it("survives leaving, a reload, the end of the session and a change of the target’s kind", async () => {
    const page = await newPage();
    await signIn(page, stage.keys.cleo);
    await show(page, "new-job");
    await nameField(page).fill("half an hour of work");
    await targetField(page).fill("mine");
    await page.getByLabel("Kind", { exact: true }).selectOption("http");
    await page.getByLabel("Kind", { exact: true }).selectOption("lambda");
    expect(await targetField(page).inputValue()).toContain("mine");
    await show(page, "jobs");
    await show(page, "new-job");
    await page.getByText("Your unsaved changes are back").waitFor();
    expect(await nameField(page).inputValue()).toBe("half an hour of work");
    await page.reload();
    await nameField(page).waitFor();
    expect(await nameField(page).inputValue()).toBe("half an hour of work");
    const refuse = (route: Route) =>
      route.fulfill({ status: 401, json: { type: "urn:minute8:problem:unauthenticated", title: "no", status: 401 } });
    await page.route("**/v1/**", refuse);
    await show(page, "calendars");
    await page.getByText("The key is no longer valid").waitFor();
    await page.unroute("**/v1/**");
    await page.getByLabel("API key or token").fill(stage.keys.cleo);
    await page.keyboard.press("Enter");
    await show(page, "new-job");
    expect(await nameField(page).inputValue()).toBe("half an hour of work");
    await page.getByRole("button", { name: "Discard them" }).click();
    expect(await nameField(page).inputValue()).toBe("");
    await page.context().close();
  });

  it("makes one job, also if the first answer is lost", async () => {
    const page = await newPage();
    await signIn(page, stage.keys.cleo);
    await show(page, "new-job");
    await targetField(page).fill(stage.target);
    const keys: (string | undefined)[] = [];
    await page.route("**/v1/jobs", (route) => {
      if (route.request().method() !== "POST") return route.fallback();
      keys.push(route.request().headers()["idempotency-key"]);
      return route.fulfill({ status: 400, json: { type: "urn:minute8:problem:conflict", title: "lost", status: 400 } });
    });
    for (const times of [1, 2]) {
      await page.getByRole("button", { name: "Create" }).click();
      await expect.poll(() => keys.length).toBe(times);
      await page.locator(".problem", { hasText: "lost" }).waitFor();
    }
    expect(keys[0]).toBe(keys[1]);
    await nameField(page).fill("another");
    await page.getByRole("button", { name: "Create" }).click();
    await expect.poll(() => keys.length).toBe(3);
    expect(keys[2]).not.toBe(keys[0]);
    await page.context().close();
  });

  it("is kept if somebody else changes the job meanwhile, and is stored with that change", async () => {
    const page = await newPage();
    await signIn(page, stage.keys.cleo);
    await show(page, "jobs/plain/edit");
    await page.getByLabel("Runbook", { exact: true }).fill("https://example.com/mine");
    const other = await newPage();
    await signIn(other, stage.keys.cleo);
    await show(other, "jobs/plain/edit");
    const ownerField = (of: Page) => of.getByLabel("Owner", { exact: true });
    await ownerField(other).fill("theirs");
    await other.getByRole("button", { name: "Save" }).click();
    await other.getByText("is stored as revision").waitFor();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("The job was changed since you opened it").waitFor();
    await page.getByRole("button", { name: "Show that version with my changes" }).click();
    await expect.poll(() => ownerField(page).inputValue()).toBe("theirs");
    await expect.poll(() => page.getByLabel("Runbook", { exact: true }).inputValue()).toBe("https://example.com/mine");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("is stored as revision").waitFor();
    await expectSound(page);
    for (const each of [page, other]) await each.context().close();
  });
});
