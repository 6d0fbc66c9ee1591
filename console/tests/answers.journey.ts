/** Answers that are none of the API's, and a tenant that changes while somebody looks. */

import type { Page } from "playwright-core";
import { afterAll, describe, expect, it } from "vitest";
import { close, expectSound, newPage, settled, show, signIn, stage, viewsOf, viewsOfOperator } from "./stage";

afterAll(close);

/** The paths that the API was asked for, without what follows them. */
function asked(page: Page): Set<string> {
  const paths = new Set<string>();
  page.on("request", (request) => {
    const { pathname } = new URL(request.url());
    if (pathname.includes("/v1/")) paths.add(pathname);
  });
  return paths;
}

async function other(page: Page, view: string): Promise<void> {
  await show(page, view === "quota" || view === "keys" ? "api" : "quota");
}

describe("an answer of another shape", () => {
  it.each([
    ["wanda", viewsOf("plain")],
    ["operator", viewsOfOperator("wanda")],
  ] as const)("of any route that %s reads is said as one that did not come", async (key, views) => {
    const page = await newPage();
    await signIn(page, stage.keys[key]);
    await settled(page);
    const seen = new Set<string>();
    for (const view of views) {
      await other(page, view);
      const paths = asked(page);
      await show(page, view);
      await settled(page);
      for (const path of [...paths].filter((each) => !seen.has(each) && !each.endsWith("/v1/tenant"))) {
        seen.add(path);
        await other(page, view);
        const is = (url: URL) => url.pathname === path;
        let answered = 0;
        await page.route(is, (route) => {
          answered++;
          return route.fulfill({ json: {} });
        });
        await show(page, view);
        await expect.poll(() => answered, { message: `${view} reads ${path}` }).toBeGreaterThan(0);
        await page.getByText("The API does not answer").or(page.getByText("No answer from the API")).first().waitFor();
        expect(await page.getByText("Something in this page failed").count(), `${view}: ${path}`).toBe(0);
        await page.unroute(is);
      }
    }
    expect(seen.size).toBeGreaterThan(key === "operator" ? 5 : 12);
    await expectSound(page);
    await page.context().close();
  });

  it("leaves the tenant as it was read before", async () => {
    const page = await newPage();
    await page.clock.install();
    await signIn(page, stage.keys.bob);
    let answered = 0;
    await page.route("**/v1/tenant", (route) => {
      answered++;
      return route.fulfill({ json: {} });
    });
    await page.clock.runFor(180_000);
    await expect.poll(() => answered).toBeGreaterThan(0);
    await show(page, "new-job");
    await page.getByRole("button", { name: "Create" }).waitFor();
    await expectSound(page);
    await page.context().close();
  });
});

describe("a tenant that the platform suspends", () => {
  it("is read again while somebody looks, without a reload", async () => {
    const page = await newPage();
    await page.clock.install();
    await signIn(page, stage.keys.bob);
    await show(page, "new-job");
    await page.getByRole("button", { name: "Create" }).waitFor();
    await page.route("**/v1/tenant", async (route) => {
      const answer = await (await route.fetch()).json();
      await route.fulfill({ json: { ...answer, state: "suspended", note: "unpaid" } });
    });
    await page.clock.runFor(180_000);
    await page.getByText("unpaid").first().waitFor();
    await page.getByText("Nothing of this tenant can be changed").waitFor();
    await page.unroute("**/v1/tenant");
    await page.clock.runFor(180_000);
    await page.getByRole("button", { name: "Create" }).waitFor();
    await expectSound(page);
    await page.context().close();
  });
});
