/** One scale of sizes, one of spaces and one table of colours; no rule that styles nothing; a page that shows them. */

import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const SOURCES = `${ROOT}console/src/`;
const STYLE = `${SOURCES}style/`;
const SPACES_PX = [0, 1, 2, 4, 8, 12, 16, 24, 32];
/** What has to be read on what. WCAG asks for 4.5 of texts, and for 3 of what tells a control or a column apart. */
const TEXTS = ["text", "muted", "accent", "good", "bad", "late", "alarm"];
const READABLE = 4.5;

const files = readdirSync(STYLE).map((name) => ({ name, text: withoutComments(readFileSync(STYLE + name, "utf8")) }));
const tokens = files.find(({ name }) => name === "tokens.css")?.text ?? "";
const others = files.filter(({ name }) => name !== "tokens.css" && name !== "index.css");
const page = readFileSync(`${ROOT}docs/console-style.md`, "utf8");

function withoutComments(css: string): string {
  return css.replace(/\/\*.*?\*\//gs, "");
}

/** The classes that elements get: of texts in the place of a class; `tone-${name}` gives each class with that beginning. */
function classesOfSources(): { whole: Set<string>; begun: string[] } {
  const paths = readdirSync(SOURCES, { recursive: true, encoding: "utf8" }).filter((path) => /\.tsx?$/.test(path));
  const text = paths.map((path) => readFileSync(SOURCES + path, "utf8")).join("\n");
  const places = text.match(/class(?:=|:\s*)(?:"[^"]*"|`[^`]*`|\{(?:[^{}]|\{[^{}]*\})*\})/g) ?? [];
  const texts = [
    ...places,
    // Functions and tables that give a class.
    ...(text.match(/(?:return|\?|:) "(?:none|level\d)"/g) ?? []),
    ...(text.match(/tone: "\w+"/g) ?? []),
  ];
  const whole = new Set(texts.flatMap((text) => text.match(/[\w-]+/g) ?? []));
  return {
    whole,
    begun: texts.flatMap((text) => [...text.matchAll(/([\w-]+-)\$\{/g)].map(([, begin]) => begin ?? "")),
  };
}

/** `#abc` or `#aabbcc` as three parts of light. */
function lightOf(colour: string): number[] {
  const digits =
    colour.length === 4 ? [...colour.slice(1)].map((digit) => digit + digit) : colour.slice(1).match(/../g);
  return (digits ?? []).map((hex) => Number.parseInt(hex, 16) / 255);
}

/** The ratio that WCAG 2 defines. */
function contrast(ink: string, paper: string): number {
  const bright = (colour: string) => {
    const [red = 0, green = 0, blue = 0] = lightOf(colour).map((part) =>
      part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4,
    );
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const [low = 0, high = 0] = [bright(ink), bright(paper)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

const colours = new Map(
  [...tokens.matchAll(/--([\w-]+): light-dark\((#\w+), (#\w+)\)/g)].map(([, name = "", light = "", dark = ""]) => [
    name,
    [light, dark] as const,
  ]),
);

describe("the style", () => {
  it("has no rule for a class that no element gets", () => {
    const { whole, begun } = classesOfSources();
    const unused = others.flatMap(({ name, text }) =>
      [...text.replace(/\{[^{}]*\}/g, "{}").matchAll(/\.([a-zA-Z][\w-]*)/g)]
        .map(([, style]) => style ?? "")
        .filter((style) => !whole.has(style) && !begun.some((begin) => style.startsWith(begin)))
        .map((style) => `${name}: .${style}`),
    );
    expect(unused).toEqual([]);
  });

  it("has one table of colours, one scale of sizes and one of spaces", () => {
    for (const { name, text } of others) {
      expect(text.match(/#[0-9a-f]{3,8}\b|\brgba?\(|\bhsla?\(|light-dark\(/gi) ?? [], `colours in ${name}`).toEqual([]);
      const sizes = [...text.matchAll(/(?:font-size|line-height|font): ([^;]+);/g)].map(([, value]) => value ?? "");
      expect(
        sizes.filter((value) => /\d/.test(value)),
        `sizes in ${name}`,
      ).toEqual([]);
      const spaces = [...text.matchAll(/(?:padding|margin|gap)[a-z-]*: ([^;]+);/g)].flatMap(
        ([, value = ""]) => value.match(/[\d.]+(?=px)/g) ?? [],
      );
      expect(
        spaces.filter((px) => !SPACES_PX.includes(Number(px))),
        `spaces in ${name}`,
      ).toEqual([]);
    }
    const known = new Set([...tokens.matchAll(/(--[\w-]+):/g)].map(([, name]) => name));
    const named = new Set(
      files.flatMap(({ text }) => [...text.matchAll(/var\((--[\w-]+)\)/g)].map(([, name]) => name)),
    );
    expect([...known].filter((name) => !named.has(name))).toEqual([]);
    expect([...named].filter((name) => !known.has(name))).toEqual([]);
  });

  it("can be read in both themes", () => {
    for (const ground of ["bg", "surface", "raised"])
      for (const name of TEXTS)
        for (const theme of [0, 1] as const) {
          const [ink = "", paper = ""] = [colours.get(name)?.[theme], colours.get(ground)?.[theme]];
          expect(contrast(ink, paper), `${name} ${ink} on ${ground} ${paper}`).toBeGreaterThanOrEqual(READABLE);
        }
  });

  it("is what its page shows", () => {
    const rows = new Map(
      [...page.matchAll(/^\| `([\w-]+)` \| `(\S+)` \| `(\S+)` \|/gm)].map(([, name, light, dark]) => [
        name ?? "",
        [light, dark],
      ]),
    );
    expect(rows).toEqual(colours);
    for (const [, name, px] of tokens.matchAll(/--(label|small|body|title): (\d+)px/g))
      expect(page, name).toMatch(new RegExp(`^\\| \`${name}\` \\| ${px}`, "m"));
    expect(page).toContain(`${SPACES_PX.slice(2).join(", ")} px`);
  });
});
