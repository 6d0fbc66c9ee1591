/** Answers that are none of the API's, and a tenant that changes while somebody looks. */

import { afterAll, describe, expect, it } from "vitest";
import { call, close, end, newPage, pass, settled, show, signIn, stage, viewsOf, viewsOfOperator } from "./stage";

afterAll(close);

describe("an answer of another shape", () => {
  it.each([
    ["an operator", "operator", viewsOfOperator("wanda"), 6],
    ["a tenant", "wanda", viewsOf("plain").filter((view) => view !== "quota"), 12],
  ] as const)("of any route that %s reads is said as one that did not come", async (_, key, views, routes) => {
    const page = await newPage();
    await signIn(page, stage.keys[key]);
    await settled(page);
    const read: string[] = [];
    await page.route("**/v1/**", async (route) => {
      const { pathname } = new URL(route.request().url());
      if (pathname.endsWith("/v1/tenant")) return route.fallback();
      await route.fulfill({ json: {} });
      read.push(pathname.replace(/.*\/v1\//, ""));
    });
    for (const view of views) {
      await show(page, view);
      const before = read.length;
      await page.keyboard.press("r");
      await expect.poll(() => read.length, { message: view }).toBeGreaterThan(before);
      await page.getByText("The API does not answer").waitFor();
      await settled(page);
      await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
      expect(await page.getByText("Something in this page failed").count(), view).toBe(0);
      expect(await page.getByRole("alert").count(), view).toBe(1);
    }
    expect(new Set(read).size).toBeGreaterThan(routes);
    await page.unroute("**/v1/**");
    await page.keyboard.press("r");
    await page.getByText("The API does not answer").waitFor({ state: "detached" });
    await end(page);
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
    await pass(page, 3);
    await expect.poll(() => answered).toBeGreaterThan(0);
    await show(page, "new-job");
    await page.getByRole("button", { name: "Create" }).waitFor();
    await end(page);
  });
});

describe("a tenant that the platform suspends", () => {
  it("is read again while somebody looks, without a reload", async () => {
    const page = await newPage();
    await page.clock.install();
    await signIn(page, stage.keys.bob);
    await show(page, "new-job");
    await page.getByRole("button", { name: "Create" }).waitFor();
    const json = { ...(await call(stage.keys.bob, "GET", "tenant")), state: "suspended", note: "unpaid" };
    await page.route("**/v1/tenant", (route) => route.fulfill({ json }));
    await pass(page, 3);
    await page.getByText("unpaid").first().waitFor();
    await page.getByText("Nothing of this tenant can be changed").waitFor();
    await page.unroute("**/v1/tenant");
    await pass(page, 3);
    await page.getByRole("button", { name: "Create" }).waitFor();
    await end(page);
  });
});
