/**
 * Each view × theme × width, before a change and after it: `python -m scripts.pictures` runs this on the demo's workload.
 *
 * Both consoles are shown at one instant and get the same answers, so that only their own code can differ.
 */

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { extname } from "node:path";
import type { Page, Route } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { close, newPage, settled, show, signIn } from "./stage";

interface Stage {
  directory: string;
  /** Where each console is built. */
  consoles: { before: string; after: string };
  /** The views of each key. */
  views: { who: string; key: string; views: string[] }[];
}

const { directory, consoles, views } = JSON.parse(process.env.MINUTE8_CONSOLE_STAGE ?? "{}") as Stage;
const WIDTHS = [320, 768, 1280];
const THEMES = ["light", "dark"] as const;
const TYPES: Record<string, string> = {
  ...{ ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html" },
};
const present = Date.now();
/** What the API answered to each request, in any of the pages. */
const answers = new Map<string, Promise<{ status: number; headers: Record<string, string>; body: Buffer }>>();

let underWay = 0;

async function answer(route: Route): Promise<void> {
  const request = route.request();
  const asked = [request.headers().authorization, request.method(), request.url(), request.postData()].join(" ");
  underWay++;
  const known =
    answers.get(asked) ??
    route.fetch({ headers: { ...request.headers(), "if-none-match": "" } }).then(async (found) => ({
      ...{ status: found.status(), headers: found.headers(), body: await found.body() },
    }));
  answers.set(asked, known);
  await route.fulfill(await known);
  underWay--;
}

/** A page with one of the consoles instead of the deployed one. */
async function pageWith(built: string, theme: "light" | "dark", width: number): Promise<Page> {
  const page = await newPage({ colorScheme: theme, viewport: { width, height: 900 }, reducedMotion: "reduce" });
  await page.clock.setFixedTime(present);
  await page.route(/\/console(\/|$)/, (route) => {
    const name = new URL(route.request().url()).pathname.split("/console/")[1] || "index.html";
    const path = `${built}/${name}`;
    if (!existsSync(path)) return route.fulfill({ status: 404 });
    return route.fulfill({ body: readFileSync(path), contentType: TYPES[extname(path)] ?? "text/plain" });
  });
  await page.route("**/v1/**", answer);
  return page;
}

async function picture(page: Page, view: string): Promise<Buffer> {
  await show(page, view);
  // One answer may lead to the next request.
  for (let quiet = 0; quiet < 3; quiet = underWay ? 0 : quiet + 1) await page.waitForTimeout(100);
  await settled(page);
  return page.screenshot({ fullPage: true, animations: "disabled", caret: "hide" });
}

// So far apart are two colours of a pixel that looks different, of 255; and so many pixels may.
const TOLERATED = 16;
const TOLERATED_PIXELS = 20;

let canvas: Page;

/** How many pixels of two pictures look different; all of them if their sizes do. In the browser, which reads PNG. */
async function apart(before: Buffer, after: Buffer): Promise<number> {
  if (before.equals(after)) return 0;
  return canvas.evaluate(
    async ([first, second, tolerated]) => {
      const pixels = async (png: string) => {
        const bytes = await (await fetch(`data:image/png;base64,${png}`)).blob();
        const image = await createImageBitmap(bytes);
        const drawn = new OffscreenCanvas(image.width, image.height).getContext("2d");
        drawn?.drawImage(image, 0, 0);
        return drawn?.getImageData(0, 0, image.width, image.height);
      };
      const [left, right] = [await pixels(first), await pixels(second)];
      if (!left || !right || left.width !== right.width || left.height !== right.height) return Number.MAX_SAFE_INTEGER;
      const different = new Set<number>();
      for (let n = 0; n < left.data.length; n++)
        if (Math.abs((left.data[n] ?? 0) - (right.data[n] ?? 0)) > tolerated) different.add(n >> 2);
      return different.size;
    },
    [before.toString("base64"), after.toString("base64"), TOLERATED] as const,
  );
}

beforeAll(async () => {
  canvas = await newPage();
});
afterAll(close);

const CASES = views.flatMap((group) => THEMES.flatMap((theme) => WIDTHS.map((width) => ({ ...group, theme, width }))));

it.each(CASES)(
  "$who, $theme, $width px",
  async ({ who, key, views: shown, theme, width }) => {
    const [before, after] = [
      await pageWith(consoles.before, theme, width),
      await pageWith(consoles.after, theme, width),
    ];
    for (const page of [before, after]) await signIn(page, key);
    const changed: string[] = [];
    for (const view of shown) {
      const pictures = { before: await picture(before, view), after: await picture(after, view) };
      const pixels = await apart(pictures.before, pictures.after);
      if (pixels <= TOLERATED_PIXELS) continue;
      const name = `${who}-${view.replaceAll(/[^\w-]+/g, "-") || "first"}-${theme}-${width}`;
      for (const [when, png] of Object.entries(pictures)) writeFileSync(`${directory}/${name}.${when}.png`, png);
      changed.push(name);
    }
    for (const page of [before, after]) await page.context().close();
    expect(changed, `look at them in ${directory}`).toEqual([]);
  },
  600_000,
);
