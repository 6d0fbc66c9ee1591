/** What an action comes to is seen where the eye is: on a desk, on a laptop and on a phone; of each action there is. */

import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Shapes } from "minute8-client";
import type { Locator, Page, Request } from "playwright-core";
import { afterAll, expect, it } from "vitest";
import { answered, call, close, end, expectNoSideScroll, newPage, settled, show, signIn, stage } from "./stage";

afterAll(close);

const SIZES = [
  [1280, 1080],
  [1280, 800],
  [1280, 740],
  [375, 740],
] as const;

// As wide and as high as an action is walked at; what is seen there is looked for in higher windows, too.
const WALKED = [
  [1280, 740],
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

async function expectInSightAtEachHeight(page: Page, message: Locator): Promise<void> {
  const size = page.viewportSize() ?? { width: 0, height: 0 };
  for (const height of [size.height, 800, 1080]) {
    await page.setViewportSize({ ...size, height });
    await expectInSight(message);
  }
  await page.setViewportSize(size);
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
  // What waits and would not run by the new times is named before it is saved, and counted then.
  await call(stage.keys.wanda, "POST", `${path}/skip`, { count: 1 });
  await page.getByLabel("Every", { exact: true }).fill("7h");
  await expectInSight(page.getByText(/^the skip of \S+Z has nothing left to skip: the job's schedule no longer has/));
  await save.click();
  await expectInSight(page.getByText(/it ended 1 fire time that waited$/));
  await expectInSight(page.getByText(/^seen is stored as revision \d+/));
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
    // Nor is a dialog about it wider than its box.
    for (const name of ["Run now", "Skip next", "Pause", "Backfill", "Delete"]) {
      await page.getByRole("main").getByRole("button", { name, exact: true }).click();
      const dialog = page.getByRole("dialog");
      await dialog.waitFor();
      expect(await dialog.evaluate((box) => box.scrollWidth - box.clientWidth), name).toBe(0);
      await page.keyboard.press("Escape");
      await dialog.waitFor({ state: "detached" });
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

/** An action: who does it, where, and the button that begins it; `first` is what has to be pressed before. */
interface Action {
  who: "wanda" | "mallory" | "operator";
  view: string;
  button: string | RegExp;
  first?: (main: Locator) => Locator;
  /** What the API shows, where this deployment has nothing of the kind: to what it answers, by the address's end. */
  shows?: Record<string, object>;
}

// An instant that is past, and one to come.
const [PAST, TO_COME] = ["2026-11-01T00:00:00Z", "2036-11-01T00:00:00Z"];

/** An answer that fits whatever an action asks for. */
const DONE = {
  ...{ matched: 1, done: 1, ids: ["a"], refused: [], next_cursor: null, more: false, left: [], total: 1, revision: 2 },
  ...{ freed: ["a-permit"], not_covered: ["the log"], sent: ["a"], recorded: [], fires: [{}], key: "m8_shown-once" },
  ...{ job_id: "seen-actions", tenant_id: "mallory", jobs: [], known: [], schedule_words: "Every hour" },
};

const BULK = (main: Locator) => main.getByRole("checkbox", { name: /all/ });
const PICKED = (main: Locator) => main.getByRole("checkbox", { name: /seen-actions/ });
const DEAD_LETTER = { message_id: "m", sent_at: PAST, about: ["a job"], problem: null, bytes: 9 };

function actionsOf(failed: Shapes["Run"]): Action[] {
  const run = (id: string, changes: object) => ({
    view: `runs/${id}`,
    shows: { [`/runs/${id}`]: { ...failed, execution_id: id, ...changes } },
  });
  const held = run("mallory:evil:held", { status: "running", work_until: TO_COME });
  const queued = run("mallory:evil:queued", { status: "queued", attempts: [] });
  const group = { ...{ job_id: "evil", fingerprint: "f", error_type: "Boom", error: "no", count: 1 } };
  const times = { first_at: PAST, last_at: PAST, hours: [], last_execution_id: failed.execution_id };
  const holder = { execution_id: "mallory:evil:held", job_id: "evil", since_at: PAST, until_at: TO_COME };
  const backfill = { ...{ backfill_id: "b", start_at: PAST, end_at: PAST, created_at: PAST, cancelled_at: null } };
  const dead_letters = { "/dead-letters": { queues: [{ queue: "executions", dead_letters: 1 }] } };
  const crowded = {
    minute_at: TO_COME,
    executions: 12,
    jobs: [{ job_id: "seen-actions", proposal: { jitter_s: 60 } }],
  };
  const of = (who: Action["who"], view: string, buttons: (string | RegExp)[], more: Partial<Action> = {}): Action[] =>
    buttons.map((button) => ({ who, view, button, ...more }));
  return [
    ...of("wanda", "jobs", ["Pause", "Resume", "Run now", "Delete"], { first: BULK }),
    ...of("wanda", "jobs", ["Pause", "Run now", "Delete"], { first: PICKED }),
    ...of("wanda", "jobs/seen-actions", ["Run now", "Skip next", "Pause", "Backfill", "Delete"]),
    ...of("wanda", "jobs/seen-actions/schedule", ["Undo skips"]),
    ...of("wanda", "jobs/seen-paused", ["Resume"]),
    ...of("wanda", "jobs/seen-actions", [/^Cancel the backfill/], {
      shows: { "/backfills": { backfills: [{ ...backfill, total: 9, sent: 1, concurrency: 1 }] } },
    }),
    ...of("wanda", "upcoming", ["Apply to seen-actions"], { shows: { "/density": { crowded: [crowded] } } }),
    ...of("wanda", "calendars", ["New calendar", "Edit", "Delete"]),
    ...of("wanda", "secrets", ["New secret", "Replace", "Delete"], {
      shows: { "/secrets": { secrets: [{ name: "seen", revision: 1, created_at: PAST, updated_at: PAST }] } },
    }),
    ...of("wanda", "subscriptions", ["New subscription", "Edit", "Test", "Delete"]),
    ...of("wanda", "keys", ["New key", "Revoke"]),
    ...of("wanda", "new-job", ["Create"]),
    ...of("wanda", "jobs/seen-actions/edit", ["Save"]),
    ...of("mallory", `runs/${failed.execution_id}`, ["Retry", "Run again", "Erase texts"]),
    { who: "mallory", button: "Cancel", ...queued },
    { who: "mallory", button: "End by force", ...held },
    ...of("mallory", "permits/a-key", [/^End by force/], {
      shows: { "/permits": { key: "a-key", holders: [holder], waiting: [] } },
    }),
    ...of("mallory", "runs", ["Retry failed"]),
    ...of("mallory", "runs?status=queued", ["Cancel waiting"]),
    ...of("mallory", "failures", [/^Mute/, /^Retry/]),
    ...of("mallory", "failures", [/^Unmute/], {
      first: (main) => main.getByText(/^\d+ muted group/),
      shows: { "/failures/groups": { groups: [{ ...group, ...times, muted: { note: "", by: "", at: PAST } }] } },
    }),
    ...of("operator", "", ["New tenant", "Block a target", /^Suspend/]),
    ...of("operator", "", ["Send all again", "Discard all"], { shows: dead_letters }),
    ...of("operator", "", [/^Send again/, /^Discard$/], {
      first: (main) => main.getByRole("button", { name: "Show" }),
      shows: {
        ...dead_letters,
        "/dead-letters/executions": { queue: "executions", dead_letters: [DEAD_LETTER], more: false },
      },
    }),
    ...of("operator", "", [/^Release/], {
      shows: { "/operator-overview": { blocks: [{ pattern: "*", note: "", blocked_at: PAST, by: "a person" }] } },
    }),
    ...of("operator", "", ["Send these again"], {
      shows: {
        "/platform/unrecorded": {
          executions: [{ execution_id: "a:b:c", tenant_id: "mallory", due_at: PAST, sent_at: null }],
        },
      },
    }),
    ...of("operator", "tenants/mallory", ["Change what it may do", "Suspend", "New key", "Revoke"]),
    ...of("operator", "tenants/mallory", ["Resume"], { shows: { "/tenants/mallory": { state: "suspended" } } }),
    ...of("operator", "keys", ["New key", "Revoke"]),
  ];
}

// What fields take that do not take any text.
const FITTING: [asked: RegExp, text: string][] = [
  [/dates/i, "2026-12-24"],
  [/job’s id/, "seen-actions"],
  [/How many jobs/, "2"],
  [/target|address/i, "https://a.example.com"],
];

/** Fill what a dialog asks for, so that it can be sent. */
async function fillAll(page: Page): Promise<void> {
  const fields = page.getByRole("dialog").locator("input:not([type=checkbox]):not([type=radio]), textarea");
  for (const field of await fields.all()) {
    if (!(await field.isEditable()) || (await field.inputValue())) continue;
    const label = await field.evaluate((element: HTMLInputElement) => element.labels?.[0]?.textContent ?? "");
    const fitting = FITTING.find(([asked]) => asked.test(label))?.[1];
    await field.fill(fitting ?? "seen");
  }
}

const REFUSAL = "nothing of this today";
/** What the actions asked of the API: a method and a path each. */
const walked = new Set<string>();

/** What only looks though it is sent as a change. */
function onlyLooks(request: Request): boolean {
  const body = request.postData() ?? "";
  return /\/preview$|dry_run=true/.test(request.url()) || /"dry_run":true|"send":false/.test(body);
}

/** Press one button. What it sends is refused first and done then; either is in sight. */
async function expectSeen(page: Page, action: Action): Promise<void> {
  const name = `${action.button} of ${action.view}`;
  let isRefused = true;
  const pathOf = (request: Request) => decodeURIComponent(new URL(request.url()).pathname.split("/v1")[1] ?? "");
  await page.route("**/v1/**", async (route) => {
    const request = route.request();
    const path = pathOf(request);
    if (request.method() === "GET") {
      const shown = Object.entries(action.shows ?? {}).find(([end]) => path === end || path.endsWith(end))?.[1];
      if (!shown) return route.fallback();
      const answer = await answered(route);
      return route.fulfill({ json: { ...(answer.ok() ? ((await answer.json()) as object) : {}), ...shown } });
    }
    if (path.endsWith("/preview")) return route.fallback();
    if (onlyLooks(request)) return route.fulfill({ json: DONE });
    walked.add(`${request.method()} ${path}`);
    const json = { status: 409, title: "Conflict", detail: REFUSAL, type: "about:blank" };
    return isRefused
      ? route.fulfill({ status: 409, contentType: "application/problem+json", json })
      : route.fulfill({ json: DONE });
  });
  await page.evaluate((hash) => {
    location.hash = hash;
  }, `#/${action.view}`);
  await page.reload();
  await page.getByRole("heading", { level: 1 }).first().waitFor();
  await settled(page);
  const main = page.getByRole("main");
  if (action.first) await action.first(main).first().click();
  if (action.view === "new-job") await page.getByLabel("Function").fill(stage.target);
  const press = async () => {
    await main
      .getByRole("button", { name: action.button, exact: typeof action.button === "string" })
      .first()
      .click();
  };
  await press();
  const dialog = page.getByRole("dialog");
  const refusal = page.getByText(REFUSAL).first();
  await Promise.race([dialog.waitFor(), refusal.waitFor()]);
  const isAsked = (await dialog.count()) > 0;
  const send = () => (isAsked ? dialog.locator("button[type=submit]").click() : press());
  if (isAsked) {
    await fillAll(page);
    await send();
    // A backfill is counted before it is asked for.
    if (action.button === "Backfill") await dialog.getByRole("button", { name: "Run 1 fire time" }).click();
  }
  await refusal.waitFor().catch(() => expect.unreachable(`${name} says nothing of a refusal`));
  await expectInSightAtEachHeight(page, refusal);
  isRefused = false;
  const before = page.url();
  await send();
  const said = page.locator(".messages > div", { hasNotText: REFUSAL }).or(page.getByText("This is the only time"));
  await expect
    .poll(async () => page.url() !== before || (await said.count()) > 0, { message: `${name} says nothing of success` })
    .toBe(true);
  if (await said.count()) await expectInSightAtEachHeight(page, said.last());
  await page.unrouteAll({ behavior: "ignoreErrors" });
}

/** A regular expression for the addresses of an operation: `/v1/jobs/{job_id}` takes `/jobs/x`. */
const addressesOf = (path: string) => new RegExp(`^${path.replace("/v1", "").replaceAll(/\{\w+\}/g, "[^/]+")}$`);

it.each(WALKED)(
  "at %i × %i the refusal and the success of each action",
  { timeout: 900_000 },
  async (width, height) => {
    const { wanda, mallory } = stage.keys;
    const job = { schedule: { every: "1h" }, target: { kind: "lambda", arn: stage.target } };
    for (const id of ["seen-actions", "seen-paused"]) await call(wanda, "PUT", `jobs/${id}`, job);
    await call(wanda, "POST", "jobs/seen-actions/skip", { count: 3 });
    await call(wanda, "POST", "jobs/seen-paused/pause", {});
    await call(wanda, "PUT", "calendars/seen", { dates: ["2026-12-24"] });
    await call(wanda, "PUT", "subscriptions/seen", { target: { kind: "http", url: `${stage.hooks}/taken` } });
    await call(wanda, "POST", "keys", { role: "read", name: "seen" });
    const { runs } = (await call(mallory, "GET", "jobs/evil/runs?status=failed&limit=1")) as { runs: Shapes["Run"][] };
    const actions = actionsOf(runs[0] as Shapes["Run"]);
    const faults: string[] = [];
    for (const who of ["wanda", "mallory", "operator"] as const) {
      const page = await newPage({ viewport: { width, height } });
      await signIn(page, stage.keys[who]);
      for (const action of actions.filter((each) => each.who === who)) {
        await expectSeen(page, action).catch((error: Error) =>
          faults.push(`${action.button} of ${action.view}: ${error.message}`),
        );
      }
      await end(page);
    }
    expect(faults).toEqual([]);
  },
);

it("is walked with each change that the code asks the API for", () => {
  const folder = fileURLToPath(new URL("../src", import.meta.url));
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => /\.tsx?$/.test(name));
  const asked = files
    .flatMap((name) => [
      ...readFileSync(`${folder}/${name}`, "utf8").matchAll(/\bapi\(\)\s*\.(post|put|patch|delete)\(\s*"([^"]+)"/g),
    ])
    .map(([, method, path]) => [method?.toUpperCase(), path ?? ""] as const)
    .filter(([, path]) => !path.endsWith("/preview"));
  expect(asked.length).toBeGreaterThan(40);
  const isWalked = (method: string | undefined, path: string) =>
    [...walked].some((each) => each.startsWith(`${method} `) && addressesOf(path).test(each.split(" ")[1] ?? ""));
  expect(asked.filter(([method, path]) => !isWalked(method, path))).toEqual([]);
});
