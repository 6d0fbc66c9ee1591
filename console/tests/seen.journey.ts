/** What an action comes to is seen where the eye is: on a desk, on a laptop and on a phone. */

import type { Locator, Page } from "playwright-core";
import { afterAll, expect, it } from "vitest";
import { call, close, end, expectNoSideScroll, newPage, settled, show, signIn, stage } from "./stage";

afterAll(close);

const SIZES = [
  [1920, 1080],
  [1280, 800],
  [375, 740],
] as const;

/** The whole text is in the window, and nothing lies on it. */
async function expectInSight(message: Locator): Promise<void> {
  await message.waitFor();
  const place = () =>
    message.evaluate((element) => {
      const { x, y, width, bottom } = element.getBoundingClientRect();
      const top = document.elementFromPoint(x + width / 2, Math.max(0, y) + 4);
      if (y < 0 || bottom > innerHeight) return `from ${Math.round(y)} to ${Math.round(bottom)} of ${innerHeight}`;
      return top && element.contains(top) ? "in sight" : `below ${top?.outerHTML.slice(0, 80)}`;
    });
  await expect.poll(place).toBe("in sight");
}

it.each(SIZES)("at %i × %i an edit conflict, a refusal, a failure and a success", async (width, height) => {
  const [id, path] = ["seen", "jobs/seen"];
  const job = { schedule: { every: "1h" }, target: { kind: "lambda", arn: stage.target } };
  await call(stage.keys.wanda, "PUT", path, job);
  const page = await newPage({ viewport: { width, height } });
  await signIn(page, stage.keys.wanda);
  await show(page, `${path}/edit`);
  await settled(page);
  const save = page.getByRole("button", { name: "Save" });
  // Somebody else changes the job meanwhile.
  await call(stage.keys.wanda, "PUT", path, { ...job, name: "by another" });
  await page.getByLabel("Name", { exact: true }).fill("by me");
  await page.evaluate(() => scrollTo(0, 0));
  await save.click();
  await expectInSight(page.getByText("The job was changed since you opened it."));
  await page.getByRole("button", { name: "Show that version with my changes" }).click();
  await page.getByText("The job was changed since you opened it.").waitFor({ state: "hidden" });
  // What the API refuses and no field stands for.
  const refusal = { status: 409, title: "Conflict", detail: "this tenant has enough", type: "about:blank" };
  await page.route(`**/v1/${path}`, (route) =>
    route.request().method() === "PUT"
      ? route.fulfill({ status: 409, contentType: "application/problem+json", json: refusal })
      : route.continue(),
  );
  await page.evaluate(() => scrollTo(0, 0));
  await save.click();
  await expectInSight(page.getByText("this tenant has enough"));
  await page.unroute(`**/v1/${path}`);
  await save.click();
  await expectInSight(page.getByText(/^seen is stored as revision \d+$/));
  // A dialog that failed says so by its button.
  await page.route(/\/(run|resume)$/, (route) =>
    route.fulfill({ status: 409, contentType: "application/problem+json", json: refusal }),
  );
  await page.getByRole("button", { name: "Run now" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Run now" }).click();
  await expectInSight(page.getByRole("dialog").getByText("this tenant has enough"));
  await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
  // An action of one click has no place for it but a message.
  await call(stage.keys.wanda, "POST", `${path}/pause`, {});
  await page.keyboard.press("r");
  await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
  await page.getByRole("button", { name: "Resume" }).click();
  await expectInSight(page.getByRole("status").getByText("this tenant has enough"));
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await call(stage.keys.wanda, "DELETE", `jobs/${id}`);
  await end(page);
});

it.each([1280, 768, 375])(
  "at %i px tells all of a job with long texts, in a table that says that it goes on",
  async (width) => {
    const [long, name] = ["n".repeat(128), "N".repeat(128)];
    const tags = ["a-tag-of-many-letters-and-more", "second", "third", "fourth"];
    const job = { schedule: { cron: "3,17,41 1-5/2 * * 1,3" }, target: { kind: "lambda", arn: stage.target }, tags };
    await call(stage.keys.wanda, "PUT", `jobs/${long}`, { ...job, name });
    const page = await newPage({ viewport: { width, height: 800 } });
    await signIn(page, stage.keys.wanda);
    for (const view of ["jobs", `jobs/${long}`]) {
      await show(page, view);
      await settled(page);
      await expectNoSideScroll(page, view);
    }
    await show(page, "jobs");
    await page.getByRole("table", { name: "Jobs" }).getByText("fourth").first().waitFor();
    const cut = await page.evaluate(
      () =>
        [...document.querySelectorAll("main td, main .tag")].filter(
          (box) => box.scrollWidth > box.clientWidth + 1 && getComputedStyle(box).overflowX !== "visible",
        ).length,
    );
    expect(cut).toBe(0);
    const shade = (box: string) => page.locator(box).evaluate((element) => getComputedStyle(element).backgroundImage);
    for (const box of ["main .flush .scroll", ...(width > 800 ? [] : ["nav ul"])])
      expect(await shade(box)).toContain("linear-gradient");
    await call(stage.keys.wanda, "DELETE", `jobs/${long}`);
    await end(page);
  },
);

/** Views with actions, and the buttons of each that change something. */
const ACTIONS: Record<string, string[]> = {
  "jobs/seen-actions": ["Run now", "Skip next", "Pause", "Backfill", "Delete"],
  calendars: ["New calendar", "Edit", "Delete"],
  // This deployment keeps no secrets.
  secrets: ["New secret"],
  subscriptions: ["New subscription", "Edit", "Test", "Delete"],
  keys: ["New key", "Revoke"],
};

// What fields take that do not take any text.
const FITTING: [asked: RegExp, text: string][] = [
  [/dates/i, "2026-12-24"],
  [/job’s id/, "seen-actions"],
  [/target|address/i, "https://a.example.com"],
];

/** Fill what a dialog asks for, so that it can be sent. */
async function fillAll(page: Page): Promise<void> {
  const fields = page.getByRole("dialog").locator("input:not([type=checkbox]):not([type=radio]), textarea");
  for (const field of await fields.all()) {
    if (!(await field.isEditable()) || (await field.inputValue())) continue;
    const label = await field.evaluate((element: HTMLInputElement) => element.labels?.[0]?.textContent ?? "");
    const fitting = FITTING.find(([asked]) => asked.test(label))?.[1];
    await field.fill(fitting ?? "x");
  }
}

it.each(SIZES)("at %i × %i the refusal of each action", async (width, height) => {
  const { wanda } = stage.keys;
  const job = { schedule: { every: "1h" }, target: { kind: "lambda", arn: stage.target } };
  await call(wanda, "PUT", "jobs/seen-actions", job);
  await call(wanda, "PUT", "calendars/seen", { dates: ["2026-12-24"] });
  await call(wanda, "PUT", "subscriptions/seen", { target: { kind: "http", url: `${stage.hooks}/taken` } });
  await call(wanda, "POST", "keys", { role: "read", name: "seen" });
  const page = await newPage({ viewport: { width, height } });
  await signIn(page, wanda);
  const json = { status: 409, title: "Conflict", detail: "nothing of this today", type: "about:blank" };
  await page.route("**/v1/**", (route) =>
    route.request().method() === "GET" || route.request().url().endsWith("/preview")
      ? route.fallback()
      : route.fulfill({ status: 409, contentType: "application/problem+json", json }),
  );
  for (const [view, names] of Object.entries(ACTIONS)) {
    for (const name of names) {
      await show(page, view);
      await settled(page);
      await page
        .getByRole("main")
        .getByRole("button", { name: new RegExp(`^${name}`) })
        .first()
        .click();
      const dialog = page.getByRole("dialog");
      const refusal = page.getByText("nothing of this today").first();
      await Promise.race([dialog.waitFor(), refusal.waitFor()]);
      if (await dialog.count()) {
        await fillAll(page);
        await dialog.locator("button[type=submit]").click();
      }
      await refusal.waitFor().catch(() => expect.unreachable(`${name} of ${view} says nothing`));
      await expectInSight(refusal);
      if (await dialog.count()) await dialog.getByRole("button", { name: "Cancel" }).click();
      await refusal.waitFor({ state: "detached" });
    }
  }
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await end(page);
});
