/** Answers that are none of the API's, and a tenant that changes while somebody looks. */

import { afterAll, describe, expect, it } from "vitest";
import { call, close, expectSound, newPage, settled, show, signIn, stage, viewsOfOperator } from "./stage";

afterAll(close);

describe("an answer of another shape", () => {
  it("of any route that an operator reads is said as one that did not come", async () => {
    const page = await newPage();
    await signIn(page, stage.keys.operator);
    await settled(page);
    const read = new Set<string>();
    await page.route("**/v1/**", (route) => {
      const { pathname } = new URL(route.request().url());
      if (pathname.endsWith("/v1/tenant")) return route.fallback();
      read.add(pathname.replace(/.*\/v1\//, ""));
      return route.fulfill({ json: {} });
    });
    const failed = page.getByText("Something in this page failed");
    for (const view of viewsOfOperator("wanda")) {
      await show(page, view);
      await page.waitForTimeout(300); // what the view asks for first
      expect(await failed.count(), view).toBe(0);
      await page.keyboard.press("r");
      await page.getByText("The API does not answer").waitFor();
      expect(await failed.count(), view).toBe(0);
    }
    expect(read.size).toBeGreaterThan(6);
    await page.unroute("**/v1/**");
    await page.keyboard.press("r");
    await page.getByText("The API does not answer").waitFor({ state: "detached" });
    await expectSound(page);
    await page.unrouteAll({ behavior: "ignoreErrors" });
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
    await page.unrouteAll({ behavior: "ignoreErrors" });
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
    const json = { ...(await call(stage.keys.bob, "GET", "tenant")), state: "suspended", note: "unpaid" };
    await page.route("**/v1/tenant", (route) => route.fulfill({ json }));
    await page.clock.runFor(180_000);
    await page.getByText("unpaid").first().waitFor();
    await page.getByText("Nothing of this tenant can be changed").waitFor();
    await page.unroute("**/v1/tenant");
    await page.clock.runFor(180_000);
    await page.getByRole("button", { name: "Create" }).waitFor();
    await expectSound(page);
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await page.context().close();
  });
});
