import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";

const FILES = fileURLToPath(new URL("../../api/console_files/assets/", import.meta.url));
const MOST_SCRIPT = 60 * 1024;

describe("what a browser loads", () => {
  it("is at most 60 KB of compressed script, in one file, with one sheet of style", () => {
    const root = fileURLToPath(new URL("../..", import.meta.url));
    execFileSync(`${root}.venv/bin/python`, ["-m", "scripts.console", "build"], { cwd: root });
    const names = readdirSync(FILES);
    const scripts = names.filter((name) => name.endsWith(".js.gz"));
    expect(scripts).toHaveLength(1);
    expect(names.filter((name) => name.endsWith(".css.gz"))).toHaveLength(1);
    expect(statSync(FILES + scripts[0]).size).toBeLessThanOrEqual(MOST_SCRIPT);
    // A build for development would hold the sources' paths.
    expect(gunzipSync(readFileSync(FILES + scripts[0])).toString()).not.toContain(root);
  }, 60_000);
});
