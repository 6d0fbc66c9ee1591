/** What people do most: in how many clicks, which may not become more, and how long it takes, which is printed. */

import type { Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { answered, call, close, end, newPage, settled, show, signIn, stage } from "./stage";

const dialog = (page: Page) => page.getByRole("dialog");
const HOUR = 3_600_000;
const lines: string[] = [];

/** One journey from a view that is there: each step is a click; what is typed is beside the clicks. */
class Journey {
  clicks = 0;
  readonly #began = performance.now();

  async click(control: Locator): Promise<void> {
    this.clicks++;
    await control.click();
  }

  end(name: string): number {
    lines.push(`| ${name} | ${this.clicks} | ${Math.round(performance.now() - this.#began)} ms |`);
    return this.clicks;
  }
}

const nav = (page: Page, name: string) => page.getByRole("navigation").getByRole("link", { name });

async function begin(key: keyof typeof stage.keys): Promise<Page> {
  const page = await newPage();
  await signIn(page, stage.keys[key]);
  await settled(page);
  return page;
}

const job = { schedule: { every: "1h" }, target: { kind: "lambda", arn: stage.target } };

beforeAll(async () => {
  await call(stage.keys.dana, "PUT", "jobs/plain", job);
  const failing = { ...job, payload: { fail_rate: 1 }, retry: { max_attempts: 1 } };
  await call(stage.keys.dana, "PUT", "jobs/timed-fails", failing);
  const { execution_id: id } = await call(stage.keys.dana, "POST", "jobs/timed-fails/run");
  for (let n = 0; n < 20; n++) await call(stage.keys.dana, "PUT", `jobs/timed-old-${n}`, job);
  await call(stage.keys.dana, "PUT", "calendars/timed", { dates: ["2026-12-24"] });
  const hasFailed = async () => (await call(stage.keys.dana, "GET", `runs/${id}`)).status === "failed";
  await vi.waitUntil(hasFailed, { timeout: 45_000, interval: 500 });
});

afterAll(async () => {
  console.info(["| journey | clicks | time |", "| --- | --- | --- |", ...lines].join("\n"));
  await close();
});

describe("a journey", () => {
  it("leads to the error of the only job that fails, in a click", async () => {
    const page = await begin("dana");
    const error = page.getByRole("table", { name: "Latest errors" }).getByRole("link").first();
    await error.waitFor();
    const journey = new Journey();
    await journey.click(error);
    await page.getByRole("region", { name: "Attempt 1" }).first().waitFor();
    expect(journey.end("the traceback of the only job that fails")).toBe(1);
    await end(page);
  });

  it("deletes 20 jobs that a search finds, in four clicks", async () => {
    const page = await begin("dana");
    const journey = new Journey();
    await journey.click(nav(page, "Jobs"));
    await page.getByLabel("Search id, name, tag").fill("timed-old");
    await page.getByText("20 jobs of these filters").waitFor();
    await journey.click(page.getByLabel("Choose all that are shown"));
    await journey.click(page.getByRole("button", { name: "Delete" }));
    await dialog(page).getByLabel("How many jobs are deleted").fill("20");
    await journey.click(dialog(page).getByRole("button", { name: "Delete" }));
    await page.getByText("Delete: 20 of 20 jobs").waitFor();
    expect(journey.end("delete 20 jobs that a search finds")).toBe(4);
    await end(page);
  });

  it("tries failed runs again, in four", async () => {
    const page = await begin("dana");
    const journey = new Journey();
    await journey.click(nav(page, "Runs"));
    journey.clicks++;
    await page.getByLabel("State").selectOption("failed");
    await page.getByRole("table", { name: "Runs" }).getByText("timed-fails").first().waitFor();
    await journey.click(page.getByRole("button", { name: "Retry failed" }));
    await dialog(page)
      .getByRole("heading", { name: /: \d+$/ })
      .waitFor();
    await journey.click(dialog(page).getByRole("button", { name: "Retry" }));
    await page.getByText(/runs? (is|are) tried again/).waitFor();
    expect(journey.end("try the failed runs of a day again")).toBe(4);
    await end(page);
  });

  it("spreads a job of a crowded minute, in three", async () => {
    const page = await begin("dana");
    const minute_at = new Date(Math.ceil(Date.now() / HOUR) * HOUR).toISOString();
    await page.route("**/v1/density?*", async (route) => {
      const answer = await (await answered(route)).json();
      const jobs = [{ job_id: "timed-fails", proposal: { jitter_s: 45 } }];
      await route.fulfill({ json: { ...answer, crowded: [{ minute_at, executions: 12, jobs }] } });
    });
    const journey = new Journey();
    await journey.click(nav(page, "Upcoming"));
    await journey.click(page.getByRole("button", { name: "Apply to timed-fails" }));
    await journey.click(dialog(page).getByRole("button", { name: "Apply" }));
    await page.getByText("timed-fails is spread").waitFor();
    expect(journey.end("spread a job of a crowded minute")).toBe(3);
    await end(page);
  });

  it("says who created many jobs, in one", async () => {
    const page = await begin("dana");
    const journey = new Journey();
    await journey.click(nav(page, "Audit"));
    await page.getByText(/× 2\d/).first().waitFor();
    expect(journey.end("who created 20 jobs")).toBe(1);
    await end(page);
  });

  it("adds a holiday to a calendar, in four", async () => {
    const page = await begin("dana");
    await page.clock.setFixedTime("2026-12-10T12:00:00Z");
    const journey = new Journey();
    await journey.click(nav(page, "Calendars"));
    await journey.click(page.getByRole("button", { name: "Edit" }).first());
    await journey.click(dialog(page).getByRole("button", { name: "2026-12-31" }));
    await journey.click(dialog(page).getByRole("button", { name: "Store" }));
    await page.getByText("is stored with 2 dates").waitFor();
    expect(journey.end("a holiday more in a calendar")).toBe(4);
    await end(page);
  });

  it("blocks a target, in two", async () => {
    const page = await begin("operator");
    const journey = new Journey();
    await journey.click(page.getByRole("button", { name: "Block a target" }));
    await dialog(page).getByLabel("Pattern").fill("timed.example.com");
    await journey.click(dialog(page).getByRole("button", { name: "Block" }));
    const held = page.getByRole("table", { name: "Blocked targets" }).getByText("timed.example.com");
    await held.first().waitFor();
    expect(journey.end("block a target")).toBe(2);
    await call(stage.keys.operator, "POST", "blocks/release", { pattern: "timed.example.com" });
    await end(page);
  });

  it("runs again with a changed payload, in two", async () => {
    const page = await begin("dana");
    const run = await call(stage.keys.dana, "POST", "jobs/plain/run", { payload: { own: "payload" } });
    await show(page, `runs/${run.execution_id}`);
    await page.getByRole("button", { name: "Run again" }).waitFor();
    const journey = new Journey();
    await journey.click(page.getByRole("button", { name: "Run again" }));
    await dialog(page).getByLabel("Payload of this run").fill('{"own": "another"}');
    await journey.click(dialog(page).getByRole("button", { name: "Run now" }));
    await page.getByText('"own": "another"').waitFor();
    expect(journey.end("run again with the payload of a run, changed")).toBe(2);
    await end(page);
  });

  it("skips tomorrow, in three", async () => {
    await call(stage.keys.dana, "PUT", "jobs/daily", { ...job, schedule: { cron: "30 18 * * *" } });
    const page = await begin("dana");
    const journey = new Journey();
    await journey.click(page.getByRole("table", { name: "Next jobs" }).getByRole("link", { name: "daily" }).first());
    await journey.click(page.getByRole("button", { name: "Skip next" }));
    await journey.click(dialog(page).getByRole("button", { name: "Skip" }));
    await dialog(page).waitFor({ state: "detached" });
    const { fires } = await call(stage.keys.dana, "GET", "jobs/daily/next?count=1");
    expect(fires).toMatchObject([{ skipped: true }]);
    expect(journey.end("skip tomorrow")).toBe(3);
    await call(stage.keys.dana, "DELETE", "jobs/daily");
    await end(page);
  });

  it("moves a job by an hour, in three", async () => {
    await call(stage.keys.dana, "PUT", "jobs/daily", { ...job, schedule: { cron: "30 18 * * *" } });
    const page = await begin("dana");
    const journey = new Journey();
    await journey.click(page.getByRole("table", { name: "Next jobs" }).getByRole("link", { name: "daily" }).first());
    await journey.click(page.getByRole("link", { name: "Edit" }));
    await page.getByLabel("Cron expression").fill("30 19 * * *");
    await journey.click(page.getByRole("button", { name: "Save" }));
    await page.getByText("At 19:30").first().waitFor();
    expect(journey.end("move a job by an hour")).toBe(3);
    await call(stage.keys.dana, "DELETE", "jobs/daily");
    await end(page);
  });

  it("finds what crowds 18:30, in two", async () => {
    const ids = Array.from({ length: 12 }, (_, n) => `evening-${n}`);
    for (const id of ids)
      await call(stage.keys.dana, "PUT", `jobs/${id}`, { ...job, schedule: { cron: "30 18 * * *" } });
    const page = await begin("dana");
    const journey = new Journey();
    await journey.click(nav(page, "Upcoming"));
    const crowded = page.getByRole("region", { name: /^Crowded minute .*T18:30:00Z$/ });
    await journey.click(crowded.getByText("By second, with all jobs"));
    for (const id of ids) await crowded.getByRole("link", { name: id, exact: true }).first().waitFor();
    expect(journey.end("what crowds 18:30")).toBe(2);
    for (const id of ids) await call(stage.keys.dana, "DELETE", `jobs/${id}`);
    await end(page);
  });

  it("mutes what somebody knows of, in three", async () => {
    const page = await begin("dana");
    const journey = new Journey();
    await journey.click(nav(page, "Failures"));
    const row = page.getByRole("row", { name: /timed-fails/ });
    await journey.click(row.getByRole("button", { name: "Mute" }));
    await dialog(page).getByLabel("Note").fill("known");
    await journey.click(dialog(page).getByRole("button", { name: "Mute" }));
    await page.getByText("of timed-fails is muted").waitFor();
    expect(journey.end("mute a failure")).toBe(3);
    await end(page);
  });
});
