/** Every view at eight widths: nothing is wider than the window, nothing covers a control, and each can be hit. */

import type { Page } from "playwright-core";
import { afterAll, expect, it } from "vitest";
import { close, expectNoSideScroll, newPage, settled, show, signIn, stage, viewsOf, viewsOfOperator } from "./stage";

afterAll(close);

const WIDTHS = [320, 391, 480, 640, 768, 801, 1280, 2560];
const MIN_TARGET_PX = 24;

/** What is wrong with the page as it is shown. In the browser. */
function faults(minPx: number): string[] {
  const problems: string[] = [];
  const nameOf = (element: Element) =>
    `${element.tagName.toLowerCase()} ${element.getAttribute("aria-label") ?? element.textContent?.trim().slice(0, 60)}`;
  const isSeen = (element: Element) =>
    element.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && !element.matches(".sr, .skip");
  /** A link within a sentence is as high as its line. */
  const isInSentence = (element: Element) => {
    const parent = element.closest("bdi.text")?.parentElement ?? element.parentElement;
    const words = parent?.textContent?.replace(element.textContent ?? "", "").trim();
    return element.tagName === "A" && element.closest("p, li, .notice, .empty, .text") !== null && Boolean(words);
  };
  const CONTROLS = "a, button, input, select, textarea, summary";
  for (const control of document.querySelectorAll<HTMLElement>(CONTROLS)) {
    if (!isSeen(control)) continue;
    control.scrollIntoView({ block: "center", inline: "center" });
    const label = control.matches("input[type=checkbox], input[type=radio]") ? control.closest("label") : null;
    const box = (label ?? control).getBoundingClientRect();
    if (Math.min(box.width, box.height) < minPx && !isInSentence(control))
      problems.push(`${nameOf(control)} has ${Math.round(box.width)} × ${Math.round(box.height)} px`);
    const [line] = control.getClientRects();
    if (!line) continue;
    const top = document.elementFromPoint(line.x + line.width / 2, line.y + line.height / 2);
    if (!top || !(control.contains(top) || top.contains(control)))
      problems.push(`${nameOf(control)} is below ${top ? nameOf(top) : "the edge"}`);
  }
  for (const text of document.querySelectorAll("h1, h2, h3, label, dt, dd, .hint, .figure .value")) {
    if (!isSeen(text) || !text.textContent?.trim()) continue;
    text.scrollIntoView({ block: "center", inline: "center" });
    const { x, y, width, height } = text.getBoundingClientRect();
    const top = document.elementFromPoint(x + Math.min(width / 2, 12), y + height / 2);
    if (top && !(text.contains(top) || top.contains(text))) problems.push(`${nameOf(text)} is below ${nameOf(top)}`);
  }
  scrollTo(0, 0);
  return problems;
}

async function look(page: Page, view: string): Promise<string[]> {
  await page.setViewportSize({ width: 1280, height: 900 });
  await show(page, view);
  await settled(page);
  const found: string[] = [];
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 800 });
    await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
    await expectNoSideScroll(page, `${view} at ${width} px`);
    found.push(...(await page.evaluate(faults, MIN_TARGET_PX)).map((fault) => `${view} at ${width} px: ${fault}`));
    // A very wide window has the content in its middle.
    const [left, right] = await page.getByRole("main").evaluate((main) => {
      const { left, right } = main.getBoundingClientRect();
      const nav = document.querySelector("nav")?.getBoundingClientRect().right ?? 0;
      return [left - nav, innerWidth - right];
    });
    if (width > 2000) expect(Math.abs((left ?? 0) - (right ?? 0)), view).toBeLessThan(24);
    if (view) continue;
    await page.getByRole("button", { name: "Keyboard shortcuts" }).click();
    await page.getByRole("dialog", { name: "Keyboard" }).getByRole("button", { name: "Close" }).click();
  }
  return found;
}

it.each([
  ["mallory", viewsOf("evil")],
  ["operator", viewsOfOperator("mallory")],
] as const)("has each control of %s within reach at each width", async (key, views) => {
  const page = await newPage({ reducedMotion: "reduce" });
  await signIn(page, stage.keys[key]);
  const found: string[] = [];
  for (const view of views) found.push(...(await look(page, view)));
  expect(found).toEqual([]);
  await page.context().close();
});
