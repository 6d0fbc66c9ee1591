/** What people do in the views: an operator's blocks, failures, the audit, the editor, many jobs and runs at once. */

import type { Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { answered, call, close, end, expectNoSideScroll, newPage, settled, show, signIn, stage } from "./stage";

afterAll(close);

const dialog = (page: Page) => page.getByRole("dialog");

beforeAll(async () => {
  const job = { schedule: { every: "1h" }, target: { kind: "lambda", arn: stage.target } };
  await call(stage.keys.wanda, "PUT", "jobs/plain", job);
  await call(stage.keys.wanda, "PUT", "jobs/breaks", { ...job, payload: { fail_rate: 1 }, retry: { max_attempts: 1 } });
  const { execution_id: id } = await call(stage.keys.wanda, "POST", "jobs/breaks/run");
  const hasFailed = async () => (await call(stage.keys.wanda, "GET", `runs/${id}`)).status === "failed";
  await vi.waitUntil(hasFailed, { timeout: 45_000, interval: 500 });
});

describe("an operator", () => {
  it("blocks a target and releases it, and reads which jobs of a tenant fail", async () => {
    const page = await newPage();
    await page.route("**/v1/operator-overview?*", async (route) => {
      const answer = await (await answered(route)).json();
      const failing = { count: 5, complete: true, jobs: [{ job_id: "invoices", failures_in_row: 3 }] };
      answer.tenants[0] = { ...answer.tenants[0], failing };
      await route.fulfill({ json: answer });
    });
    await signIn(page, stage.keys.operator);
    const tenants = page.getByRole("table", { name: "Tenants" });
    await tenants.getByText("invoices").waitFor();
    await tenants.getByText("and 4 more").waitFor();
    await page.getByRole("button", { name: "Block a target" }).click();
    await dialog(page).getByLabel("Pattern").fill("block.example.com");
    await dialog(page).getByLabel("Note").fill("it answers too slowly");
    await dialog(page).getByRole("button", { name: "Block" }).click();
    const held = page.getByRole("table", { name: "Blocked targets" });
    await held.getByText("it answers too slowly").waitFor();
    await held.getByRole("button", { name: "Release block.example.com" }).click();
    await dialog(page).getByRole("button", { name: "Release" }).click();
    await page.getByText("No target is blocked").waitFor();
    await end(page);
  });
});

describe("findings of the platform", () => {
  it("say since when, for how long, what to do, and on which page of the runbook", async () => {
    const page = await newPage();
    const hoursAgo = (hours: number) => new Date(Date.now() - hours * 3_600_000).toISOString().replace(/\.\d+/, "");
    const runbook = "https://wiki.example.com/runbook/planning-lag.md";
    const findings = [
      {
        ...{ check: "planning", level: "failed", found: "planning is an hour behind", remedy: "look at the ticks" },
        ...{ since_at: hoursAgo(3), runbook },
      },
      { check: "alarms", level: "ok", found: "no alarm is on", remedy: "", since_at: null, runbook: null },
    ];
    await page.route("**/v1/operator-planning", async (route) => {
      const answer = await (await answered(route)).json();
      await route.fulfill({ json: { ...answer, findings } });
    });
    await signIn(page, stage.keys.operator);
    const card = page.getByRole("region", { name: "Findings" });
    const finding = card.getByRole("listitem").filter({ hasText: "planning is an hour behind" });
    await finding.getByText(/since .*, 3 h/).waitFor();
    await finding.getByText("look at the ticks").waitFor();
    const link = finding.getByRole("link", { name: runbook });
    expect(await link.getAttribute("href")).toBe(runbook);
    expect(await link.getAttribute("rel")).toContain("noopener");
    await card.getByText("1 check found nothing wrong").click();
    await card.getByText("alarms: no alarm is on").waitFor();
    // A runbook that is a folder of the sources is named, not linked.
    findings[0] = { ...findings[0], runbook: "docs/runbook/planning-lag.md" } as (typeof findings)[0];
    await page.keyboard.press("r");
    await finding.getByText("docs/runbook/planning-lag.md").waitFor();
    expect(await finding.getByRole("link").count()).toBe(0);
    await end(page);
  });
});

describe("a run", () => {
  it("shows its own payload, and runs again with another one", async () => {
    const page = await newPage();
    await signIn(page, stage.keys.wanda);
    const run = await call(stage.keys.wanda, "POST", "jobs/plain/run", { payload: { own: "payload" } });
    await show(page, `runs/${run.execution_id}`);
    await page.getByText("started with a payload of its own").waitFor();
    await page.getByRole("button", { name: "Run again" }).click();
    const payload = dialog(page).getByLabel("Payload of this run");
    expect(await payload.inputValue()).toContain('"own": "payload"');
    await payload.fill('{"own": "another"}');
    await dialog(page).getByRole("button", { name: "Run now" }).click();
    await page.getByText('"own": "another"').waitFor();
    await end(page);
  });

  it("says its error once, and folds attempts that ended alike", async () => {
    const page = await newPage();
    await signIn(page, stage.keys.wanda);
    const error = { error_type: "Boom", error: "it broke in the same way" };
    const at = (minute: number) => `2026-11-23T10:0${minute}:00Z`;
    const attempt = (n: number) => ({
      ...{ attempt: n, started_at: at(n), finished_at: at(n), outcome: "failed", duration_s: 1 },
      ...{ ...error, log_tail: `log ${n}` },
    });
    const json = {
      ...{ execution_id: "wanda:plain:20261123T100000Z", job_id: "plain", trace_id: "x", status: "failed" },
      ...{ trigger: "schedule", schedule_revision: 1, fire_at: at(0), due_at: at(0), attempt: 3, lateness_s: 60 },
      ...{ attempts: [1, 2, 3].map(attempt), started_at: at(3), finished_at: at(3), ...error },
    };
    await page.route("**/v1/runs/*", (route) => route.fulfill({ json }));
    await show(page, `runs/${json.execution_id}`);
    await page.getByRole("region", { name: "Attempts 1 to 3, alike" }).waitFor();
    expect(await page.getByText("it broke in the same way").count()).toBe(1);
    // Late by a minute: of the first attempt, and so is when it started.
    const facts = page.getByRole("region", { name: "Facts" });
    expect(await facts.textContent()).toMatch(/Started2026-11-23 10:01:00Late by1 min/);
    expect(await facts.textContent()).toMatch(/Attempt 3 started2026-11-23 10:03:00/);
    await page.getByText("The job has changed since this run started").waitFor();
    await end(page);
  });
});

describe("failures and runs", () => {
  it("have a trend, and many are tried again together, counted first", async () => {
    const page = await newPage();
    await signIn(page, stage.keys.wanda);
    await show(page, "failures");
    await page
      .getByRole("img", { name: /^since .* lately$/ })
      .first()
      .waitFor();
    await show(page, "runs");
    await page.getByLabel("State").selectOption("failed");
    await page.getByLabel("Error text").fill("as the payload asked");
    await page.getByText(/\d of the \d+ runs? that (are|is) read say/).waitFor();
    await page.getByRole("button", { name: "Retry failed" }).click();
    await dialog(page)
      .getByRole("heading", { name: /Retry failed runs: \d+$/ })
      .waitFor();
    await dialog(page).getByRole("button", { name: "Retry" }).click();
    await page.getByText(/runs? (is|are) tried again/).waitFor();
    await end(page);
  });
});

describe("failures that somebody knows of", () => {
  it("are muted with a note until they change, folded, and unmuted", async () => {
    const page = await newPage();
    await signIn(page, stage.keys.wanda);
    await page.getByRole("table", { name: "Latest errors" }).getByText("breaks", { exact: true }).waitFor();
    await show(page, "failures");
    const shown = page.getByRole("table", { name: "Failures by job and error" });
    await shown
      .getByRole("row", { name: /breaks/ })
      .getByRole("button", { name: "Mute" })
      .click();
    await dialog(page).getByLabel("Note").fill("the shop is being moved");
    await dialog(page).getByRole("button", { name: "Mute" }).click();
    await page.getByText("of breaks is muted").waitFor();
    await page.getByText("1 muted group").click();
    const muted = page.getByRole("table", { name: "Muted failures" });
    await muted.getByText("the shop is being moved").waitFor();
    // Another file's runs of this tenant may have failed meanwhile.
    const left = (table: Locator) => table.getByRole("row", { name: /breaks/ }).count();
    await expect.poll(() => left(shown)).toBe(0);
    await show(page, "");
    await page.getByText("1 muted error").waitFor();
    expect(await left(page.getByRole("table", { name: "Latest errors" }))).toBe(0);
    await show(page, "failures");
    await page.getByText("1 muted group").click();
    await muted.getByRole("button", { name: "Unmute" }).click();
    await shown.getByText("breaks", { exact: true }).waitFor();
    await end(page);
  });
});

describe("the audit", () => {
  it("has days, and what was done many times in one line", async () => {
    const page = await newPage();
    const entry = (n: number, day: number) => ({
      ...{ entry_id: `${day}-${n}`, at: `2026-11-${day}T10:00:00Z`, action: "job.created", subject: `job-${n}` },
      ...{ by: "key", by_name: "laptop", before: {}, after: { name: "x" } },
    });
    // 689 creations, as an import leaves them, in pages as the API gives them.
    const entries = [...Array.from({ length: 689 }, (_, n) => entry(n, 22)), entry(1, 21)];
    await page.route("**/v1/audit?*", (route) => {
      const { searchParams } = new URL(route.request().url());
      const [from, limit] = [Number(searchParams.get("cursor") ?? 0), Number(searchParams.get("limit"))];
      const next = from + limit < entries.length ? String(from + limit) : null;
      return route.fulfill({ json: { entries: entries.slice(from, from + limit), next_cursor: next } });
    });
    await signIn(page, stage.keys.wanda);
    await show(page, "audit");
    const day = page.getByRole("region", { name: "2026-11-22" });
    await day.getByText("× 689").click();
    await day.getByText("job-3", { exact: true }).waitFor();
    expect(await page.getByRole("region", { name: "2026-11-21" }).locator("details").count()).toBe(0);
    await end(page);
  });
});

describe("the editor", () => {
  it("shows the times of an interval that stays from the anchor that it has", async () => {
    const page = await newPage();
    const { schedule_words: words } = await call(stage.keys.wanda, "GET", "jobs/plain");
    await signIn(page, stage.keys.wanda);
    await show(page, "jobs/plain/edit");
    const preview = page.getByRole("region", { name: "What it will do" });
    await preview.getByText(String(words), { exact: true }).waitFor();
    await page.getByLabel("Every", { exact: true }).fill("2h");
    await preview.getByText(/^Every 2h of elapsed time/).waitFor();
    // A refusal stands at its field and in the preview; what changes does not say it once more.
    await page.getByLabel("Every", { exact: true }).fill("a banana");
    await preview.getByText(/must be a duration/).waitFor();
    await page.locator(".wrong", { hasText: "must be a duration" }).waitFor();
    const changes = page.getByRole("region", { name: "What changes" });
    await changes.getByText("a banana").waitFor();
    await expect.poll(() => changes.getByRole("alert").count()).toBe(0);
    await page.getByRole("link", { name: "Cancel" }).click();
    await end(page);
  });

  it("has fields for each kind of target, presets, words for policies, and its button in sight", async () => {
    const page = await newPage({ viewport: { width: 1280, height: 700 } });
    await signIn(page, stage.keys.wanda);
    await show(page, "new-job");
    await page.getByRole("button", { name: "At 09:00, Monday through Friday" }).click();
    await expect.poll(() => page.getByLabel("Cron expression").inputValue()).toBe("0 9 * * 1-5");
    await page.getByLabel("Kind", { exact: true }).selectOption("sqs");
    await page.getByLabel("Queue", { exact: true }).fill("arn:aws:sqs:us-east-1:000000000000:work");
    // What is wrong stands at the control that says it, and nowhere else.
    await page.getByLabel("Other fields of the target").fill('{"arn": "twice"}');
    await page.locator(".wrong", { hasText: "Other fields of the target" }).getByText("a field of its own").waitFor();
    await page.getByLabel("Other fields of the target").fill("");
    await page.getByLabel("Id", { exact: true }).fill("refused");
    await page.getByRole("button", { name: "Create" }).click();
    await page.locator(".wrong", { hasText: "Queue" }).getByText("target.arn").waitFor();
    await page.getByLabel("Queue", { exact: true }).and(page.locator(":focus")).waitFor();
    await page.getByLabel("Missed fire times").selectOption({ label: "run each of them" });
    await page.evaluate(() => scrollTo(0, 0));
    const button = await page.getByRole("button", { name: "Create" }).boundingBox();
    expect((button?.y ?? 9999) + (button?.height ?? 0)).toBeLessThanOrEqual(700);
    await end(page);
  });
});

describe("dates", () => {
  it("are chosen in a month, by pointer and keyboard, in a calendar and in the editor", async () => {
    const page = await newPage();
    await page.clock.setFixedTime("2026-12-10T12:00:00Z");
    await signIn(page, stage.keys.wanda);
    await show(page, "calendars");
    await page.getByRole("button", { name: "New calendar" }).click();
    await dialog(page).getByLabel("Name").fill("feasts");
    await dialog(page).getByRole("button", { name: "2026-12-24" }).click();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Enter");
    for (const key of ["ArrowDown", "ArrowRight", "Enter"]) await page.keyboard.press(key);
    expect(await dialog(page).getByLabel("Dates", { exact: true }).inputValue()).toBe(
      ["2026-12-24", "2026-12-25", "2027-01-02"].join("\n"),
    );
    await dialog(page).getByRole("button", { name: "Store" }).click();
    await page.getByText("feasts is stored with 3 dates").waitFor();
    const december = page.getByRole("table", { name: "December 2026" });
    await expect
      .poll(() => december.locator(".chosen").allInnerTexts())
      .toEqual([expect.stringMatching(/^24/), expect.stringMatching(/^25/)]);
    await show(page, "new-job");
    await page.getByText("Bounds, excluded dates").click();
    const excluded = page.getByLabel("Not on the dates of these calendars");
    await page.locator("div.field", { has: excluded }).getByRole("button", { name: "feasts" }).click();
    await expect.poll(() => excluded.inputValue()).toBe("feasts");
    await page.getByRole("button", { name: "Choose in a month" }).click();
    await page.getByRole("button", { name: "2026-12-31" }).click();
    await expect.poll(() => page.getByLabel("Not on these dates").first().inputValue()).toBe("2026-12-31");
    await page.getByLabel("Time zone", { exact: true }).last().fill("Europe/Paris");
    const picker = page.locator(".pick", { has: page.getByLabel("Not before", { exact: true }) }).locator(".picker");
    await page.getByRole("img", { name: /Seven days in Europe\/Paris: it fires in 7 hours of 168/ }).waitFor();
    await picker.fill("2027-01-04T09:30");
    await expect.poll(() => page.getByLabel("Not before", { exact: true }).inputValue()).toBe("2027-01-04T08:30:00Z");
    await page.getByText("Not within the next seven days").waitFor();
    await end(page);
  });
});

describe("many jobs", () => {
  it("are found and deleted together, after their number was typed", async () => {
    const page = await newPage();
    const job = { schedule: { every: "1h" }, target: { kind: "lambda", arn: stage.target } };
    for (const name of ["gone-a", "gone-b"]) await call(stage.keys.wanda, "PUT", `jobs/${name}`, job);
    await signIn(page, stage.keys.wanda);
    await show(page, "jobs");
    await page.getByLabel("Search id, name, tag").fill("gone");
    await page.getByText("2 jobs of these filters").waitFor();
    await page.getByLabel("Choose all that are shown").check();
    await page.getByRole("button", { name: "Delete" }).click();
    const sure = dialog(page).getByRole("button", { name: "Delete" });
    expect(await sure.isDisabled()).toBe(true);
    await dialog(page).getByLabel("How many jobs are deleted").fill("2");
    await sure.click();
    await page.getByText("Delete: 2 of 2 jobs").waitFor();
    await page.getByText("No job matches these filters").waitFor();
    await end(page);
  });
});

describe("a page", () => {
  it("does not move while a job's parts come", async () => {
    const page = await newPage();
    await page.addInitScript(() => {
      const sum = { shift: 0 };
      Object.assign(window, { sum });
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries() as (PerformanceEntry & { value: number; hadRecentInput: boolean })[])
          if (!entry.hadRecentInput) sum.shift += entry.value;
      }).observe({ type: "layout-shift", buffered: true });
    });
    await signIn(page, stage.keys.wanda);
    await settled(page);
    const shift = () => page.evaluate(() => (window as unknown as { sum: { shift: number } }).sum.shift);
    const before = await shift();
    await show(page, "jobs/plain");
    await page.getByRole("table", { name: "Runs" }).or(page.getByText("No runs")).first().waitFor();
    await page.waitForTimeout(500);
    expect((await shift()) - before).toBeLessThan(0.1);
    await end(page);
  });

  it("keeps tables in their cards, shows a row on a small phone, and prints without its frame", async () => {
    const page = await newPage();
    await signIn(page, stage.keys.wanda);
    for (const view of ["", "jobs", "jobs/plain", "jobs/plain/schedule", "jobs/plain/edit", "runs", "upcoming"]) {
      await show(page, view);
      await settled(page);
      const wider = await page.evaluate(
        () =>
          [...document.querySelectorAll("main .card")].filter((card) => card.scrollWidth > card.clientWidth + 1).length,
      );
      expect(wider, view).toBe(0);
      await expectNoSideScroll(page, view);
    }
    await page.setViewportSize({ width: 320, height: 640 });
    await show(page, "jobs");
    await settled(page);
    const row = await page.getByRole("table", { name: "Jobs" }).locator("[data-row]").first().boundingBox();
    expect(row?.y).toBeLessThan(440);
    // On paper as wide as A4 nothing is cut off, and what only a screen can do is left out.
    await page.setViewportSize({ width: 794, height: 1123 });
    for (const view of ["", "runs", "jobs/breaks", "jobs"]) {
      await show(page, view);
      await settled(page);
      await page.emulateMedia({ media: "print", colorScheme: "dark" });
      await expect
        .poll(() => page.evaluate(() => document.documentElement.scrollWidth), { message: view })
        .toBeLessThanOrEqual(794);
      for (const control of await page.locator("main button, main select, .tabs").all())
        expect(await control.and(page.locator(":not(.legend button)")).isVisible(), view).toBe(false);
      await page.emulateMedia({ media: "screen" });
    }
    await page.emulateMedia({ media: "print", colorScheme: "dark" });
    expect(await page.evaluate(() => getComputedStyle(document.documentElement).colorScheme)).toBe("light");
    expect(await page.getByRole("navigation").first().isVisible()).toBe(false);
    expect(await page.getByRole("table", { name: "Jobs" }).isVisible()).toBe(true);
    await end(page);
  });
});
