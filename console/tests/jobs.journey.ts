/** A developer's journeys by keyboard alone, in a real browser, through the deployed console. They build on one another. */

import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { close, expectSound, newPage, show, stage, tabTo } from "./stage";

let page: Page;

beforeAll(async () => {
  page = await newPage();
});
afterAll(close);

const heading = (name: string | RegExp) => page.getByRole("heading", { level: 1, name });
const dialog = () => page.getByRole("dialog");
const region = (name: string) => page.getByRole("region", { name });
const runs = () => page.getByRole("table", { name: "Runs" });

async function press(...keys: string[]): Promise<void> {
  for (const key of keys) await page.keyboard.press(key);
}

/** Go to a button or link by Tab, and press it. */
async function choose(name: string | RegExp, role: "button" | "link" = "button"): Promise<void> {
  await tabTo(page, name, role);
  await press("Enter");
}

/** Go to a field by Tab, and write into it what it shall hold. */
async function write(
  name: string,
  text: string,
  role: "textbox" | "combobox" | "spinbutton" = "textbox",
): Promise<void> {
  await tabTo(page, name, role);
  await press("Control+A");
  await page.keyboard.insertText(text);
}

const instant = (at: number) => new Date(at).toISOString().replace(".000", "");
const wholeMinute = () => Math.floor(Date.now() / 60_000) * 60_000;

describe("signing in", () => {
  it("refuses a wrong key in words, and keeps a right one out of the address and localStorage", async () => {
    await page.goto(stage.url);
    await page.getByLabel("API key or token").waitFor();
    await page.keyboard.type(`${stage.keys.ada.slice(0, -1)}_`);
    await press("Enter");
    await page.getByRole("alert").waitFor();
    await press("Control+A");
    await page.keyboard.type(stage.keys.ada);
    await press("Enter");
    await page.getByRole("button", { name: "Sign out" }).waitFor();
    const kept = await page.evaluate(() => location.href + JSON.stringify({ ...localStorage }) + document.cookie);
    expect(kept).not.toContain("m8_");
    await page.reload();
    await page.getByRole("button", { name: "Sign out" }).waitFor();
  });
});

describe("a job", () => {
  it("is created with a preview, which says what is wrong while one types", async () => {
    await choose("create it here", "link");
    await heading("New job").waitFor();
    await write("Id", "beat");
    await write("Cron expression", "0 25 * * *");
    await page.locator(".wrong", { hasText: "Cron expression" }).waitFor();
    await write("Cron expression", "*/2 * * * * *");
    await page.getByText("Every 2 seconds").first().waitFor();
    await write("Function", stage.target, "combobox");
    await write("Payload", '{"duration_s": 0.1}');
    await choose("Create");
    await heading("beat").waitFor();
  });

  it("is seen firing, without a reload", async () => {
    await runs().getByText("succeeded").first().waitFor();
    await press("r");
    await page.getByRole("img", { name: /Expected against actual: .*on time/ }).waitFor();
  });

  it("is made to fail by an edit that says what it changes", async () => {
    await choose("Edit", "link");
    await heading("Edit beat").waitFor();
    await write("Payload", '{"fail_rate": 1}');
    await write("Runbook", "https://wiki.example.com/beat");
    await write("Attempts", "1");
    const changes = region("What changes");
    await changes.getByText("payload").first().waitFor();
    await changes.getByText("retry.max_attempts").waitFor();
    await choose("Save");
    await heading(/^beat$/).waitFor();
    await runs().getByText("failed").first().waitFor();
    await page.getByText(/The last (\d+ )?scheduled runs? failed/).waitFor();
    await page.getByRole("link", { name: "https://wiki.example.com/beat" }).first().waitFor();
  });

  it("says why a run failed, and tries it again", async () => {
    await tabTo(page, "failed", "link");
    await press("Enter");
    await heading("Run").waitFor();
    await page.getByRole("table", { name: "Steps of this run" }).getByText("failed").first().waitFor();
    await page.getByText("as the payload asked").first().waitFor();
    await choose("Retry");
    await page.getByText("One more attempt begins").waitFor();
    await page.getByRole("rowheader", { name: "attempt 2" }).waitFor();
  });

  it("is skipped, paused with a note, run with another payload, and resumed", async () => {
    await show(page, "jobs/beat/schedule");
    await choose("Skip next");
    await choose("Skip");
    await page.getByText("The next fire time is skipped").waitFor();
    // It is too late for those within a minute; the others run again.
    await choose("Skip next");
    await write("How many", "50", "spinbutton");
    await press("Enter");
    await page.getByText("The next 50 fire times are skipped").waitFor();
    await choose("Undo skips");
    await page.getByText(/\d+ skips undone/).waitFor();
    await choose("Pause");
    await write("Note", "while we look");
    await press("Enter");
    await page.getByText("Paused: while we look").waitFor();
    await choose("Run now");
    await write("Payload of this run", '{"duration_s": 0.2}');
    await choose("Run now");
    await heading("Run").waitFor();
    await page.getByRole("main").getByText("succeeded").first().waitFor();
    await show(page, "jobs/beat/schedule");
    // A later instant: the second of the pause itself began before the pause.
    await write("At", "2030-01-01T00:00:00Z");
    await press("Enter");
    await region("Why, or why not?").getByText("The job is paused").waitFor();
    await choose("Resume");
    await page.getByText("beat is active again").waitFor();
  });

  it("explains an instant at which it is not due", async () => {
    await write("At", "2030-01-01T00:00:03Z");
    await press("Enter");
    await page.getByText("Its seconds are not 3.").waitFor();
  });

  it("runs a past range again, counted first, and says that its runs failed", async () => {
    await show(page, "jobs/beat");
    await choose("Backfill");
    const end = wholeMinute();
    await write("From", instant(end - 4_000));
    await write("Until", instant(end));
    await press("Enter");
    await dialog().getByText("That is 2 fire times").waitFor();
    await choose("Run 2 fire times");
    await page.getByText("2 runs of beat begin").waitFor();
    await region("Backfills")
      .getByRole("row", { name: /failed 2 of its runs.*2 of 2/ })
      .waitFor();
  });

  it("stops a past range that is too long", async () => {
    await choose("Backfill");
    await write("From", instant(wholeMinute() - 40 * 86_400_000));
    await press("Enter");
    // So many days are more than a backfill may have.
    await dialog().getByRole("alert").waitFor();
    await write("From", instant(wholeMinute() - 1_200_000));
    await press("Enter");
    await choose(/Run [67]\d\d fire times/);
    await region("Backfills").getByText("under way").waitFor();
    await choose("Cancel the backfill");
    await region("Backfills").getByText("cancelled").waitFor();
  });

  it("is found, and changed together with others", async () => {
    await press("/");
    await page.keyboard.type("bea");
    await press("Enter");
    await page.waitForURL(/search=bea/);
    await page.getByRole("table", { name: "Jobs" }).getByRole("link", { name: "beat" }).waitFor();
    await press("j", "Enter");
    await heading(/^beat$/).waitFor();
    await press("?");
    await dialog().getByRole("heading", { name: "Keyboard" }).waitFor();
    await press("Escape", "g", "j");
    await heading("Jobs").waitFor();
    await tabTo(page, "Choose all that are shown", "checkbox");
    await press("Space");
    await choose("Pause");
    await dialog().getByRole("heading", { name: "Pause: 1 job" }).waitFor();
    await dialog().getByText("Every active job").waitFor();
    await choose("Pause");
    await page.getByRole("table", { name: "Jobs" }).getByText("paused").first().waitFor();
    await page.getByLabel("State").selectOption("paused");
    expect(page.url()).toContain("state=paused");
    await page.getByRole("table", { name: "Jobs" }).getByRole("link", { name: "beat" }).waitFor();
    await page.getByLabel("State").selectOption("active");
    await page.getByText("No job matches these filters").waitFor();
  });

  it("shows its failures together, and a group is tried again", async () => {
    await press("Escape", "g", "f");
    await heading("Failures").waitFor();
    const row = page.getByRole("row", { name: /beat.*as the payload asked/ }).first();
    await row.waitFor();
    await choose("Runs");
    await runs().getByText("failed").first().waitFor();
    await choose("Retry");
    await choose("Retry");
    await page.getByText(/\d+ runs are tried again/).waitFor();
    await expectSound(page);
  });
});

describe("a subscription", () => {
  it("is created, tested, and says whether the test arrived; one that does not arrive says why", async () => {
    await press("g", "s");
    await heading("Subscriptions").waitFor();
    for (const [name, address] of [
      ["works", `${stage.hooks}/taken`],
      ["refused", `${stage.hooks}/refused`],
    ] as const) {
      await choose("New subscription");
      await write("Name", name);
      await write("Address", address);
      await press("Enter");
      await page.getByText(`${name} is stored`).waitFor();
      await dialog().waitFor({ state: "detached" });
    }
    const table = page.getByRole("table", { name: "Subscriptions" });
    await expect.poll(() => table.getByRole("row").count()).toBe(3);
    // "refused" is the first by name.
    await choose("Test");
    await page.getByText("A test message goes to refused within two minutes").waitFor();
    await press("Tab", "Tab", "Tab", "Enter");
    await page.getByText("A test message goes to works within two minutes").waitFor();
    await fetch(`${stage.hooks}/round`); // the notifier's, which comes each minute
    await press("r");
    await table.getByRole("row", { name: /works.*The test arrived/ }).waitFor();
    await table.getByRole("row", { name: /refused.*The test failed: .*503/ }).waitFor();
  });

  it("is deleted", async () => {
    // The focus is still in the row of "works".
    for (const name of ["works", "refused"]) {
      await choose("Delete");
      await dialog().getByText(name).waitFor();
      await choose("Delete");
      await page.getByRole("cell", { name, exact: true }).waitFor({ state: "detached" });
    }
    await page.getByText("No subscriptions yet").waitFor();
    await expectSound(page);
  });
});
