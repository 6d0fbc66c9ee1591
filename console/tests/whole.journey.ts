/** Nothing is hidden: not a column on a phone, not the scale of a bar, not a refusal, and not that a page is too large. */

import type { Page } from "playwright-core";
import { afterAll, describe, expect, it } from "vitest";
import {
  answered,
  call,
  close,
  end,
  expectNoSideScroll,
  newPage,
  settled,
  show,
  signIn,
  stage,
  viewsOf,
} from "./stage";

const job = { schedule: { every: "1h" }, target: { kind: "lambda", arn: stage.target } };

afterAll(close);

const nodes = (page: Page) => page.evaluate(() => document.querySelectorAll("*").length);
const MOST_NODES = 3_000;

describe("a view of many things", () => {
  const refused = {
    ...{ job_id: "many", tenant_id: "bob", trigger: "schedule", schedule_revision: 1, attempts: [], status: "failed" },
    ...{ trace_id: "0", fire_at: "2026-11-28T03:00:00Z", due_at: "2026-11-28T03:00:00Z", attempt: 1, error: "no" },
  };

  it("is light: an audit of 5,000 creations in one line, of which some are drawn", async () => {
    const page = await newPage();
    await signIn(page, stage.keys.wanda);
    const after = Object.fromEntries(Array.from({ length: 12 }, (_, n) => [`field${n}`, "value"]));
    const entries = Array.from({ length: 5_000 }, (_, n) => ({
      ...{ entry_id: `e${n}`, at: "2026-11-28T03:00:00Z", action: "job.created", subject: `job-${n}` },
      ...{ by: "k", by_name: "me", before: {}, after },
    }));
    await page.route("**/v1/audit?*", (route) => route.fulfill({ json: { entries, next_cursor: null } }));
    await show(page, "audit");
    await page.getByText("× 5,000").click();
    await page.getByText("1 to 20 of 5,000").waitFor();
    expect(await nodes(page)).toBeLessThan(MOST_NODES);
    await page.getByRole("button", { name: "Next 20" }).click();
    await page.getByRole("link", { name: "job-39", exact: true }).waitFor();
    expect(await page.getByRole("link", { name: "job-0", exact: true }).count()).toBe(0);
    await end(page);
  });

  it("is light: a full page of many jobs", async () => {
    await call(stage.keys.wanda, "PUT", "jobs/one-of-many", { ...job, tags: ["one", "two", "three"] });
    const page = await newPage();
    await signIn(page, stage.keys.wanda);
    await page.route(/\/v1\/jobs\?/, async (route) => {
      const { jobs, ...others } = await (await answered(route)).json();
      const shown = Number(new URL(route.request().url()).searchParams.get("limit"));
      const copies = Array.from({ length: shown }, (_, n) => ({ ...jobs[0], job_id: `copy-${n}` }));
      const health = Object.fromEntries(copies.map(({ job_id }) => [job_id, others.health["one-of-many"]]));
      await route.fulfill({ json: { ...others, jobs: copies, health, next_cursor: "more" } });
    });
    await show(page, "jobs?search=one-of-many");
    await page.getByRole("link", { name: "copy-49", exact: true }).waitFor();
    expect(await nodes(page)).toBeLessThan(MOST_NODES);
    await end(page);
    await call(stage.keys.wanda, "DELETE", "jobs/one-of-many");
  });

  it("is light: a thousand runs", async () => {
    const page = await newPage();
    await signIn(page, stage.keys.wanda);
    const runs = Array.from({ length: 1_000 }, (_, n) => ({ ...refused, execution_id: `bob:many:${n}` }));
    await page.route("**/v1/runs?*", (route) => route.fulfill({ json: { runs, next_cursor: null, unreadable: [] } }));
    await show(page, "runs");
    await page.getByText("1 to 50 of 1,000").waitFor();
    expect(await nodes(page)).toBeLessThan(MOST_NODES);
    await end(page);
  });
});

describe("a part that failed", () => {
  it("comes back within seconds by itself, after an answer that is no JSON, and at once when the network is back", async () => {
    const page = await newPage();
    await page.clock.install();
    await signIn(page, stage.keys.wanda);
    let asked = 0;
    await page.route("**/v1/secrets", (route) =>
      asked++
        ? route.fulfill({ json: { secrets: [] } })
        : route.fulfill({ body: '{"secrets": [', contentType: "application/json", headers: { ETag: 'W/"1"' } }),
    );
    await show(page, "secrets");
    await page.getByText("The API does not answer").waitFor();
    await page.clock.runFor(2_000);
    await page.getByText("No secrets yet").first().waitFor();
    expect(await page.getByText("The API does not answer").count()).toBe(0);
    await page.unroute("**/v1/secrets");
    await page.context().setOffline(true);
    await page.keyboard.press("r");
    // The client tries four times.
    for (let tries = 0; tries < 8; tries++) await page.clock.runFor(1_000);
    await page.getByText("The API does not answer").waitFor();
    // No time passes from here on.
    await page.context().setOffline(false);
    await page.getByText("The API does not answer").waitFor({ state: "detached" });
    await end(page);
  });
});

describe("of many jobs", () => {
  it("what is next stands in the order of time, and a job that does not run needs attention", async () => {
    const day_ms = 24 * 3_600_000;
    const at = (ms: number) => new Date(Date.now() + ms).toISOString().replace(/\.\d+Z/, "Z");
    const body = Array.from({ length: 60 }, (_, n) => ({
      ...{ job_id: `a-late-${String(n).padStart(2, "0")}`, target: job.target, tags: ["in-order"] },
      // The first by its id is the last by its time.
      schedule: { at: at(day_ms / 2 - n * 60_000) },
    }));
    await call(stage.keys.wanda, "POST", "jobs/_bulk", [
      ...body,
      { ...body[0], job_id: "z-soon", schedule: { at: at(day_ms / 48) } },
    ]);
    const page = await newPage();
    await signIn(page, stage.keys.wanda);
    await page.route("**/v1/overview", async (route) => {
      const answer = await (await answered(route)).json();
      const [reason, detail] = ["paused_after_failures", "paused after 2 failed runs in a row"];
      const stopped = { job_id: "b-stopped", reason, detail, since_at: at(0), address: null };
      await route.fulfill({ json: { ...answer, not_running: { count: 1, first: [stopped], reasons: {} } } });
    });
    await page.keyboard.press("r");
    const attention = page.getByRole("region", { name: "Needs attention" });
    await attention
      .getByRole("row", { name: /^b-stopped paused after failures: paused after 2 failed runs/ })
      .waitFor();
    const ids = async (table: string) => {
      const links = await page.getByRole("table", { name: table }).getByRole("link").allInnerTexts();
      return links.filter((id) => /^(a-late|z-soon)/.test(id)).slice(0, 3);
    };
    await expect.poll(() => ids("Next jobs")).toEqual(["z-soon", "a-late-59", "a-late-58"]);
    await show(page, "upcoming");
    await expect.poll(() => ids("Coming executions")).toEqual(["z-soon"]);
    await end(page);
    await call(stage.keys.wanda, "POST", "jobs/_all/delete", { tag: "in-order" });
  });
});

describe("on a phone", () => {
  it("each table gives all of its columns by their names, in the width of the window", async () => {
    const page = await newPage({ viewport: { width: 375, height: 740 } });
    await signIn(page, stage.keys.mallory);
    let cards = 0;
    // The longest state that a job can have.
    await page.route(/\/v1\/jobs\?/, async (route) => {
      const answer = await (await answered(route)).json();
      for (const health of Object.values<object>(answer.health))
        Object.assign(health, { not_running: "paused_after_failures" });
      await route.fulfill({ json: answer });
    });
    for (const view of viewsOf("evil")) {
      await show(page, view);
      await settled(page);
      const found = await page.evaluate(() =>
        [...document.querySelectorAll<HTMLTableElement>("main table.cards")].map((table) => ({
          label: table.getAttribute("aria-label"),
          over: (table.parentElement?.scrollWidth ?? 0) - (table.parentElement?.clientWidth ?? 0),
          hidden: [...table.querySelectorAll("tbody td")].filter(
            (cell) => cell.textContent?.trim() && cell.getBoundingClientRect().width < 24,
          ).length,
          unnamed: [...table.querySelectorAll("thead th")]
            .filter((name) => name.textContent?.trim() && !name.querySelector(".sr, .choose"))
            .filter((name) => !table.querySelector(`td[data-label="${name.textContent?.trim()}"]`)).length,
        })),
      );
      for (const { label, ...faults } of found)
        expect(faults, `${label} of ${view}`).toEqual({ over: 0, hidden: 0, unnamed: 0 });
      cards += found.length;
    }
    expect(cards).toBeGreaterThan(5);
    await end(page);
  });

  it.each([
    [375, 2],
    [768, 3],
    [1440, 6],
  ])("and at %i px the six figures stand in lines of %i", async (width, inLine) => {
    const page = await newPage({ viewport: { width, height: 740 } });
    await signIn(page, stage.keys.mallory);
    await settled(page);
    const tops = await page.evaluate(() =>
      [...document.querySelectorAll(".figures > .figure")].map((figure) => figure.getBoundingClientRect().top),
    );
    expect(tops).toHaveLength(6);
    for (const top of new Set(tops)) expect(tops.filter((other) => other === top)).toHaveLength(inLine);
    await end(page);
  });
});

describe("a text", () => {
  it("that a field shows while it is empty stands whole on a phone, and the result of each step of a run at 768 px", async () => {
    const page = await newPage({ viewport: { width: 375, height: 740 } });
    await signIn(page, stage.keys.mallory);
    for (const view of viewsOf("evil")) {
      await show(page, view);
      await settled(page);
      const cut = await page.evaluate(() => {
        const pen = document.createElement("canvas").getContext("2d");
        return [...document.querySelectorAll<HTMLInputElement>("main input[placeholder]")]
          .filter((field) => field.clientWidth)
          .filter((field) => {
            const { font, paddingLeft } = getComputedStyle(field);
            if (pen) pen.font = font;
            const needed_px = (pen?.measureText(field.placeholder).width ?? 0) + 2 * Number.parseFloat(paddingLeft);
            return needed_px > field.clientWidth;
          })
          .map((field) => field.placeholder);
      });
      expect(cut, view).toEqual([]);
    }
    await page.setViewportSize({ width: 768, height: 740 });
    const { runs } = (await call(stage.keys.mallory, "GET", "runs?status=failed&limit=1")) as {
      runs: { execution_id: string }[];
    };
    await show(page, `runs/${runs[0]?.execution_id}`);
    const steps = page.getByRole("table", { name: "Steps of this run" });
    await steps.waitFor();
    const over = await steps.evaluate(({ parentElement: box }) => (box?.scrollWidth ?? 0) - (box?.clientWidth ?? 0));
    expect(over).toBe(0);
    await end(page);
  });
});

describe("a picture", () => {
  it("has a scale: 40 ms of lateness is little, and green; a late run is not", async () => {
    const page = await newPage();
    await signIn(page, stage.keys.mallory);
    let p99 = 0.04;
    await page.route("**/v1/overview", async (route) => {
      const answer = await (await answered(route)).json();
      const spread = { count: 9, p50: 0.01, p95: p99, p99, max: p99 };
      const past = { ...answer.past, lateness_s: spread, duration_s: { ...spread, p99: 0.2 } };
      await route.fulfill({ json: { ...answer, past } });
    });
    const bar = page
      .getByRole("row", { name: /^Minute8/ })
      .locator("rect")
      .nth(1);
    const drawn = async () => [await bar.getAttribute("class"), Number(await bar.getAttribute("width"))];
    await page.keyboard.press("r");
    await page.getByText("from 0 to 1 s").waitFor();
    // The bar of what the tenant's own runs took has this scale, too.
    await expect.poll(drawn).toEqual(["f-good", 40]);
    p99 = 3;
    await page.keyboard.press("r");
    await page.getByText("from 0 to 3 s").waitFor();
    await expect.poll(drawn).toEqual(["f-late", 1000]);
    await end(page);
  });

  it("of a young job begins with the job, and says which scale is whose", async () => {
    await call(stage.keys.wanda, "PUT", "jobs/young", job);
    const page = await newPage();
    await signIn(page, stage.keys.wanda);
    await show(page, "jobs/young");
    const picture = page.getByRole("img", { name: /^Expected against actual/ });
    await picture.getByText("what is due →").waitFor();
    const [now, whole] = await picture.evaluate((svg) => [
      Number([...svg.querySelectorAll("text")].find((text) => text.textContent?.trim() === "now")?.getAttribute("x")),
      svg.getBoundingClientRect().width,
    ]);
    expect(now).toBeLessThan((whole ?? 0) / 10);
    await call(stage.keys.wanda, "DELETE", "jobs/young");
    await end(page);
  });
});

describe("a concurrency key", () => {
  it("says who has its permits and who waits since when, ends a run by hand, and is named in the run’s story", async () => {
    const keyed = { ...job, payload: { duration_s: 20 }, concurrency: { key: "whole", limit: 1 } };
    for (const id of ["keyed-1", "keyed-2"]) await call(stage.keys.wanda, "PUT", `jobs/${id}`, keyed);
    const runs = await Promise.all(
      ["keyed-1", "keyed-2"].map((id) => call(stage.keys.wanda, "POST", `jobs/${id}/run`)),
    );
    const page = await newPage({ viewport: { width: 375, height: 740 } });
    await signIn(page, stage.keys.wanda);
    await show(page, "jobs/keyed-1/definition");
    await page.getByRole("link", { name: "whole", exact: true }).click();
    const [held, waits] = ["Have a permit", "Wait for a permit"].map((name) => page.getByRole("table", { name }));
    await held
      ?.getByRole("link", { name: /keyed-/ })
      .first()
      .waitFor();
    await waits
      ?.getByRole("link", { name: /keyed-/ })
      .first()
      .waitFor();
    await waits?.getByRole("button", { name: /^End by force/ }).click();
    await page.getByRole("dialog").getByLabel("Note").fill("not needed");
    await page.getByRole("dialog").getByRole("button", { name: "End the run" }).click();
    await page.getByText("The run has ended; freed: concurrency key whole").waitFor();
    await page.getByText("No run waits").waitFor();
    // A third waits until the first one's permit is free; its story then has that wait, the call and the end.
    const { execution_id: third } = await call(stage.keys.wanda, "POST", "jobs/keyed-2/run", { payload: {} });
    await waits?.getByRole("link", { name: "keyed-2" }).waitFor();
    for (const run of runs) await call(stage.keys.wanda, "POST", `runs/${run.execution_id}/end`, { note: "the end" });
    await show(page, `runs/${third}`);
    const story = page.getByRole("table", { name: "Steps of this run" });
    await story.getByRole("row", { name: /^recorded/ }).waitFor();
    const steps = await story.getByRole("row").allInnerTexts();
    const told = /registered|waited for its turn: a permit of whole|claimed, called, answered|recorded/;
    expect(steps.map((step) => told.exec(step)?.[0]).filter(Boolean)).toEqual([
      ...["registered", "waited for its turn: a permit of whole", "claimed, called, answered", "recorded"],
    ]);
    for (const step of steps) expect(step).toMatch(/\d\d:\d\d:\d\d/);
    expect(steps[1]).toMatch(/\d (s|min|ms)/);
    await expectNoSideScroll(page, "a run's story");
    await end(page);
    for (const id of ["keyed-1", "keyed-2"]) await call(stage.keys.wanda, "DELETE", `jobs/${id}`);
  });
});
