import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";

const FILES = fileURLToPath(new URL("../../minute8/api/console_files/assets/", import.meta.url));
const FIRST_KB = 36;
const ALL_KB = 90;

describe("what a browser loads", () => {
  it(`is at most ${FIRST_KB} KB compressed at first, and ${ALL_KB} KB in all`, () => {
    const root = fileURLToPath(new URL("../..", import.meta.url));
    execFileSync(`${root}.venv/bin/python`, ["-m", "scripts.console", "build"], { cwd: root });
    const files = new Map(readdirSync(FILES).map((name) => [name.replace(/\.gz$/, ""), FILES + name]));
    const page = gunzipSync(readFileSync(`${FILES}../index.html.gz`)).toString();
    const kilobytes = (path: string) => statSync(path).size / 1024;
    const sizes = [...files].map(([name, path]) => ({ name, path, kb: kilobytes(path) }));
    const html = kilobytes(`${FILES}../index.html.gz`);
    const sum = (some: typeof sizes) => some.reduce((total, file) => total + file.kb, 0);
    // What the page names is loaded first, and it loads nothing else by itself.
    const first = sizes.filter(({ name }) => page.includes(name));
    expect(first.map(({ name }) => name.split(".").at(-1)).sort()).toEqual(["css", "js", "svg"]);
    expect(html + sum(first)).toBeLessThanOrEqual(FIRST_KB);
    expect(html + sum(sizes)).toBeLessThanOrEqual(ALL_KB);
    // A build for development would hold the sources' paths.
    for (const { path } of sizes) expect(gunzipSync(readFileSync(path)).toString()).not.toContain(root);
  }, 60_000);
});
