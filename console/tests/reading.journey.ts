/** What the console asks the API for: how much at first, in an hour, while it is hidden; and how it draws the answer. */

import type { Page } from "playwright-core";
import { afterAll, describe, expect, it } from "vitest";
import { answered, close, end, expectSound, newPage, pass, settled, show, signIn, stage } from "./stage";

afterAll(close);

const KB = 1024;

interface Asked {
  path: string;
  status: number;
  bytes: number;
}

/** What the API answers to a page from now on. A browser reports an answer without a body as failed. */
function watch(page: Page): Asked[] {
  const asked: Asked[] = [];
  page.on("response", async (response) => {
    const { pathname } = new URL(response.url());
    if (!pathname.includes("/v1/")) return;
    const headers = (await response.headersArray()).reduce(
      (sum, { name, value }) => sum + name.length + value.length + 4,
      0,
    );
    const answer = { path: pathname.split("/v1/")[1] ?? "", status: response.status(), bytes: headers };
    asked.push(answer);
    if (answer.status !== 304) answer.bytes += (await response.request().sizes()).responseBodySize;
  });
  return asked;
}

const bytesOf = (asked: readonly Asked[]) => asked.reduce((sum, answer) => sum + answer.bytes, 0);

describe("the first look", () => {
  it("takes two requests and 40 KB at most", async () => {
    const page = await newPage();
    const asked = watch(page);
    await signIn(page, stage.keys.mallory);
    await settled(page);
    await page.getByRole("table", { name: "Failing jobs" }).or(page.getByText("No job is failing")).waitFor();
    await page.waitForTimeout(500);
    expect(asked.map(({ path }) => path).sort()).toEqual(["overview", "tenant"]);
    expect(bytesOf(asked)).toBeLessThan(40 * KB);
    await expectSound(page);
    await page.context().close();
  });
});

// Of an hour, in each view.
const PASSED_MINUTES = 10;

describe("an open tab", () => {
  it("takes 400 requests and 2 MB an hour at most, whatever it shows", async () => {
    const page = await newPage();
    await page.clock.install();
    await signIn(page, stage.keys.cleo);
    const asked = watch(page);
    let sum = 0;
    for (const view of ["", "jobs", "jobs/plain", "jobs/plain/schedule", "runs", "failures", "upcoming"]) {
      await show(page, view);
      await settled(page);
      asked.length = 0;
      await pass(page, PASSED_MINUTES);
      expect((asked.length * 60) / PASSED_MINUTES, view).toBeLessThanOrEqual(400);
      expect((bytesOf(asked) * 60) / PASSED_MINUTES, view).toBeLessThan(2 * KB * KB);
      sum += asked.length;
    }
    expect(sum).toBeGreaterThan(PASSED_MINUTES);
    await page.context().close();
  });

  it("asks for nothing while it is hidden, and at once when it is seen again", async () => {
    const page = await newPage();
    await page.clock.install();
    await signIn(page, stage.keys.cleo);
    await page.getByRole("table", { name: "Next jobs" }).waitFor();
    const hide = (hidden: boolean) =>
      page.evaluate((value) => {
        Object.defineProperty(document, "hidden", { value, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
      }, hidden);
    await hide(true);
    const asked = watch(page);
    await pass(page, 30);
    expect(asked).toEqual([]);
    await hide(false);
    await pass(page, 0.5);
    expect(asked.map(({ path }) => path)).toContain("overview");
    await page.context().close();
  });

  it("gets a few hundred bytes where there is no news", async () => {
    const page = await newPage();
    await page.clock.install();
    await signIn(page, stage.keys.bob);
    await page.getByText("Watch it run").waitFor();
    const asked = watch(page);
    // A tick may bring news meanwhile: that runs are counted from now on. Three looks in a row have none.
    const lastAfterAMinute = async () => {
      await pass(page, 1);
      return asked.filter(({ path }) => path === "overview").slice(-3);
    };
    const noNews = { status: 304, bytes: expect.toSatisfy((bytes: number) => bytes < 600) };
    await expect.poll(lastAfterAMinute).toEqual(Array(3).fill(expect.objectContaining(noNews)));
    await page.context().close();
  });
});

const HOUR = 3_600_000;
const instant = (at: number) => new Date(at).toISOString();

describe("a time line", () => {
  it("is read by pointer and keyboard, filtered by its legend, and leads to the executions of a column", async () => {
    const page = await newPage();
    const hour = Math.floor(Date.now() / HOUR) * HOUR;
    await page.route("**/v1/overview", async (route) => {
      const answer = await (await answered(route)).json();
      const spread = { count: 0 };
      const statuses = { succeeded: 90, failed: 10 };
      const hours = [{ at: instant(hour - 3 * HOUR), runs: 100, statuses, late: 0 }];
      const past = {
        from_at: instant(hour - 24 * HOUR),
        fresh_at: instant(Date.now()),
        runs: 100,
        statuses,
        reasons: {},
      };
      await route.fulfill({
        json: {
          ...answer,
          past: { ...past, due: 10, success_rate: 0.9, lateness_s: spread, duration_s: spread, hours },
        },
      });
    });
    await signIn(page, stage.keys.cleo);
    const line = page.getByRole("img", { name: /All jobs: .*10 failed/ });
    await line.waitFor();
    // The word for the present is above all columns.
    const overlap = await line.evaluate((svg) => {
      const word = [...svg.querySelectorAll("text")].find((text) => text.textContent === "now");
      const tops = [...svg.querySelectorAll("rect")].map((bar) => bar.getBoundingClientRect().top);
      return (word?.getBoundingClientRect().bottom ?? Number.NaN) - Math.min(...tops);
    });
    expect(overlap).toBeLessThanOrEqual(0);
    await page.getByRole("slider", { name: "All jobs, by time" }).focus();
    await page.keyboard.press("Home");
    for (let n = 0; n < 21; n++) await page.keyboard.press("ArrowRight");
    await page.locator(".reading", { hasText: "10 failed, 90 succeeded" }).waitFor();
    await page.getByRole("button", { name: "90 succeeded" }).click();
    expect(await page.getByRole("button", { name: "90 succeeded" }).getAttribute("aria-pressed")).toBe("false");
    const box = await line.boundingBox();
    if (!box) throw new Error("the time line is not shown");
    // 49 hours between two margins of 40 px; the 22nd is the one with runs.
    const x = box.x + 40 + ((box.width - 80) * 21.5) / 49;
    await page.mouse.move(x, box.y + 60);
    await page.locator(".reading", { hasText: /: 10 failed$/ }).waitFor();
    await page.mouse.click(x, box.y + 60);
    await page.getByRole("heading", { level: 1, name: "Runs" }).waitFor();
    expect(decodeURIComponent(page.url())).toContain(`from=${instant(hour - 3 * HOUR).replace(".000", "")}`);
    await page.goBack();
    await line.waitFor();
    await end(page);
  });
});

describe("what is coming", () => {
  it("lists a whole hour, a time that is dragged over, and spreads a crowded minute", async () => {
    const page = await newPage();
    // The hour that is shown ends with a whole minute: in the minute in which the job was made, it would have none.
    await page.clock.setFixedTime(Date.now() + HOUR / 30);
    const minute_at = instant(Math.ceil(Date.now() / HOUR) * HOUR);
    await page.route("**/v1/density?*", async (route) => {
      const answer = await (await answered(route)).json();
      const jobs = [{ job_id: "plain", proposal: { jitter_s: 45 } }];
      await route.fulfill({ json: { ...answer, crowded: [{ minute_at, executions: 12, jobs }] } });
    });
    await signIn(page, stage.keys.cleo);
    await show(page, "upcoming");
    const line = page.getByRole("img", { name: /The next 24 hours: \d+ to come/ });
    await line.waitFor();
    const rows = page.getByRole("table", { name: "Coming executions" }).getByRole("row");
    await expect.poll(() => rows.count()).toBe(2); // its head, and the hour's one
    const box = await line.boundingBox();
    if (!box) throw new Error("the time line is not shown");
    await page.mouse.move(box.x + 60, box.y + 60);
    await page.mouse.down();
    await page.mouse.move(box.x + 60 + (box.width - 80) / 4, box.y + 60, { steps: 3 });
    await page.mouse.up();
    await page.getByRole("heading", { name: "Executions of this time" }).waitFor();
    await expect.poll(() => rows.count()).toBeGreaterThanOrEqual(6);
    await page.getByRole("button", { name: "Apply to plain" }).click();
    await page
      .getByRole("dialog")
      .getByText(/^Every 1h of elapsed time, .*, each up to 45 s later$/)
      .waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Apply" }).click();
    await page.getByText("plain is spread").waitFor();
    await show(page, "jobs/plain/definition");
    await page.getByText('"jitter_s": 45').waitFor();
    await end(page);
  });
});
