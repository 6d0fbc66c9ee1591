/** Every view at ten widths: nothing is wider than the window, nothing covers a control, and each can be hit. */

import type { Page } from "playwright-core";
import { afterAll, expect, it } from "vitest";
import {
  close,
  expectNoSideScroll,
  holdPermits,
  newPage,
  settled,
  show,
  signIn,
  stage,
  viewsOf,
  viewsOfOperator,
} from "./stage";

afterAll(close);

const WIDTHS = [320, 375, 480, 640, 768, 801, 1024, 1141, 1280, 2560];
const MIN_TARGET_PX = 24;
const MOST_NODES = 3_000;

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

/** What is drawn over something else, is named without being there, or lies beside the window. In the browser. */
function hidden(): string[] {
  const problems: string[] = [];
  for (const drawing of document.querySelectorAll("main svg")) {
    const texts = [...drawing.querySelectorAll("text")].map((text) => ({ text, box: text.getBoundingClientRect() }));
    for (const [n, { text, box }] of texts.entries()) {
      const meets = texts
        .slice(n + 1)
        .find(
          ({ box: other }) =>
            box.left < other.right - 1 &&
            other.left < box.right - 1 &&
            box.top < other.bottom - 2 &&
            other.top < box.bottom - 2,
        );
      if (meets) problems.push(`${text.textContent} lies on ${meets.text.textContent}`);
    }
  }
  for (const cell of document.querySelectorAll<HTMLElement>("main .cards td[data-label]"))
    if (
      innerWidth <= 1024 &&
      cell.checkVisibility() &&
      !cell.textContent?.trim() &&
      !cell.querySelector("svg, input, progress")
    )
      problems.push(`the card's ${cell.dataset.label} is empty`);
  // A table without a place for its columns is cards; only the hours of a day are wider.
  for (const box of document.querySelectorAll("main .scroll, main .filters"))
    if (box.scrollWidth > box.clientWidth + 1 && !box.querySelector(".heat"))
      problems.push(
        `${box.getAttribute("aria-label")} is ${box.scrollWidth - box.clientWidth} px wider than the window`,
      );
  // Nothing of a row stands below the box that chooses it.
  for (const choose of document.querySelectorAll("main tbody .choose")) {
    const box = choose.getBoundingClientRect();
    const met = [...(choose.closest("tr")?.querySelectorAll("td > :not(.choose), td .icon, svg") ?? [])].find((part) =>
      [...part.getClientRects()].some(
        ({ left, right, top, bottom }) => left < box.right && box.left < right && top < box.bottom && box.top < bottom,
      ),
    );
    if (met) problems.push(`a row's box lies on ${met.textContent || met.outerHTML.slice(0, 60)}`);
  }
  // The figures of a bar stand beside one another.
  for (const row of document.querySelectorAll("main .shares tbody tr")) {
    const tops = [...row.querySelectorAll(".num")].map((figure) => Math.round(figure.getBoundingClientRect().top));
    if (new Set(tops).size > 1) problems.push(`the figures of ${row.textContent} stand in ${tops.length} lines`);
  }
  // What scrolls along a row's name leaves it in sight.
  for (const name of document.querySelectorAll("main .heat tbody th")) {
    const box = name.closest(".scroll")?.getBoundingClientRect();
    if (box && name.getBoundingClientRect().left < box.left - 1) problems.push(`${name.textContent} is scrolled away`);
  }
  // Six figures stand as six, as three and three, or two by two: no row is shorter than another.
  for (const figures of document.querySelectorAll("main .figures:has(> :nth-child(6):last-child)")) {
    const tops = [...figures.children].map((figure) => Math.round(figure.getBoundingClientRect().top));
    const lengths = [...new Set(tops)].map((top) => tops.filter((other) => other === top).length);
    if (new Set(lengths).size > 1) problems.push(`figures stand as ${lengths.join(" and ")}`);
  }
  return problems;
}

async function look(page: Page, view: string): Promise<string[]> {
  await page.setViewportSize({ width: 1280, height: 900 });
  await show(page, view);
  await settled(page);
  const found: string[] = [];
  expect(await page.evaluate(() => document.querySelectorAll("*").length), view).toBeLessThan(MOST_NODES);
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 800 });
    await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
    await expectNoSideScroll(page, `${view} at ${width} px`);
    const problems = [...(await page.evaluate(faults, MIN_TARGET_PX)), ...(await page.evaluate(hidden))];
    found.push(...problems.map((fault) => `${view} at ${width} px: ${fault}`));
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
  // What somebody without the right to change anything sees.
  ["reads", ["new-job", "keys"]],
] as const)("has each control of %s within reach at each width", async (key, views) => {
  const page = await newPage({ reducedMotion: "reduce" });
  await signIn(page, stage.keys[key]);
  await holdPermits(page, "evil");
  const found: string[] = [];
  for (const view of views) found.push(...(await look(page, view)));
  expect(found).toEqual([]);
  await page.context().close();
});

/** What hides of the navigation. In the browser. */
function hiddenOfNavigation(): string[] {
  const entries = document.querySelector("nav ul");
  const current = entries?.querySelector("[aria-current=page]")?.getBoundingClientRect();
  const around = entries?.getBoundingClientRect();
  if (!entries || !current || !around) return ["the view has no entry"];
  const problems: string[] = [];
  if (current.left < around.left - 1 || current.right > around.right + 1) problems.push("the entry is out of sight");
  if (entries.scrollWidth > entries.clientWidth && !getComputedStyle(entries).backgroundImage.includes("gradient"))
    problems.push("nothing says that there are more entries");
  return problems;
}

it.each([375, 768, 801])("shows the view's entry of the navigation at %i px, and reaches each", async (width) => {
  const page = await newPage({ viewport: { width, height: 740 } });
  await signIn(page, stage.keys.mallory);
  const names = await page.locator("nav li a").allTextContents();
  expect(names).toHaveLength(12);
  for (const name of names) {
    await page.locator("nav").getByRole("link", { name, exact: true }).click();
    await page.locator("nav [aria-current=page]", { hasText: name }).waitFor();
    await expect.poll(() => page.evaluate(hiddenOfNavigation), { message: name }).toEqual([]);
  }
  // What has no entry of its own is a part of one; and the entry stays in sight when a phone is turned.
  for (const view of ["new-job", "permits/a-key", "quota"]) {
    await show(page, view);
    await page.setViewportSize({ width: 1280, height: width });
    await page.setViewportSize({ width, height: 740 });
    await expect.poll(() => page.evaluate(hiddenOfNavigation), { message: view }).toEqual([]);
    expect(await page.evaluate(() => scrollY), "the page stays where it is").toBe(0);
  }
  await page.context().close();
});
