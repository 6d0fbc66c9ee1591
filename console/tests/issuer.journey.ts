/** Signing in at the platform's issuer of tokens. */

import { createHash } from "node:crypto";
import type { Page } from "playwright-core";
import { afterAll, describe, expect, it } from "vitest";
import { close, expectSound, newPage, stage } from "./stage";

afterAll(close);

/** An issuer of the platform's, which the page meets at this origin; its token counts as cleo's key. */
async function withIssuer(page: Page): Promise<{ asked: () => URL; exchanged: () => URLSearchParams }> {
  let asked = new URL(stage.url);
  let exchanged = new URLSearchParams();
  const { origin } = asked;
  const pages = { authorize: `${origin}/authorize`, token: `${origin}/token`, client_id: "console", scope: "openid" };
  const tag = `<meta name="minute8-issuer" content='${JSON.stringify(pages)}'></head>`;
  await page.route(/\/console(\?[^#]*)?(#.*)?$/, async (route) => {
    const response = await route.fetch({ maxRetries: 3 });
    const body = (await response.text()).replace("</head>", tag);
    await route.fulfill({ response, body });
  });
  await page.route("**/authorize?*", (route) => {
    asked = new URL(route.request().url());
    return route.fulfill({ contentType: "text/html", body: "<h1>Who are you?</h1>" });
  });
  await page.route("**/token", (route) => {
    exchanged = new URLSearchParams(route.request().postData() ?? "");
    const claims = Buffer.from(JSON.stringify({ nonce: asked.searchParams.get("nonce") })).toString("base64url");
    return route.fulfill({ json: { access_token: "opaque", id_token: `e30.${claims}.c2ln` } });
  });
  await page.route("**/v1/**", (route) => {
    const headers = { ...route.request().headers(), authorization: `Bearer ${stage.keys.cleo}` };
    return route.continue({ headers });
  });
  return { asked: () => asked, exchanged: () => exchanged };
}

describe("the issuer's sign-in", () => {
  it("leads back to the view that was asked for, with a proof that only this tab has", async () => {
    const page = await newPage();
    const issuer = await withIssuer(page);
    await page.goto(`${stage.url}#/jobs/plain`);
    await page.getByRole("button", { name: "Sign in at" }).click();
    await page.getByText("Who are you?").waitFor();
    const { searchParams } = issuer.asked();
    const back = `${searchParams.get("redirect_uri")}?code=once&state=${searchParams.get("state")}`;
    await page.goto(back);
    await page.getByRole("heading", { level: 1, name: "plain" }).waitFor();
    expect(page.url()).not.toContain("code=");
    const verifier = issuer.exchanged().get("code_verifier") ?? "";
    expect(createHash("sha256").update(verifier).digest("base64url")).toBe(searchParams.get("code_challenge"));
    expect(searchParams.get("code_challenge_method")).toBe("S256");
    expect(issuer.exchanged().get("code")).toBe("once");
    expect([...issuer.exchanged().keys()]).not.toContain("client_secret");
    await page.reload();
    await page.getByRole("button", { name: "Sign out" }).waitFor();
    await expectSound(page);
    await page.context().close();
  });

  it("is refused where this tab did not begin it", async () => {
    const page = await newPage();
    const issuer = await withIssuer(page);
    await page.goto(`${stage.url}?code=anothers&state=anothers`);
    await page.getByText("not begun in this tab").waitFor();
    expect([...issuer.exchanged().keys()]).toEqual([]);
    expect(page.url()).not.toContain("code=");
    await page.context().close();
  });
});
