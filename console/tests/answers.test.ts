/** Answers that lack a part are none of the API's; and where time goes. */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { spreadOf } from "../src/draw/shares";
import { CheckedApi, PARTS } from "../src/lib/answers";

const SOURCES = join(import.meta.dirname, "../src");

describe("answers", () => {
  it("are checked of every route that the console reads", () => {
    const sources = readdirSync(SOURCES, { recursive: true, encoding: "utf8" })
      .filter((name) => /\.tsx?$/.test(name))
      .map((name) => readFileSync(join(SOURCES, name), "utf8"));
    const read = sources.flatMap((text) =>
      [...text.matchAll(/\.(?:get|pages)\(\s*"(\/v1[^"]*)"/g)].map(([, path]) => path),
    );
    expect(read.length).toBeGreaterThan(30);
    expect([...new Set(read)].filter((path) => !Object.hasOwn(PARTS, path ?? ""))).toEqual([]);
  });

  it.each(Object.keys(PARTS))("of %s are checked", async (path) => {
    const api = new CheckedApi({ url: "https://api.test", key: "k", fetch: async () => Response.json({}) });
    const asked =
      path === "/v1/schedules/preview" ? api.post(path, { body: {} as never }) : api.get(path as "/v1/jobs");
    await expect(asked).rejects.toThrow(`the answer to ${path} is not one of Minute8`);
  });

  it("that lack a part are no answers", async () => {
    const answering = (body: unknown) =>
      new CheckedApi({ url: "https://api.test", key: "k", fetch: async () => Response.json(body) });
    await expect(answering({}).get("/v1/jobs")).rejects.toThrow(
      "the answer to /v1/jobs is not one of Minute8: it has no jobs",
    );
    await expect(answering(null).get("/v1/jobs")).rejects.toThrow("has no jobs");
    await expect(answering({}).post("/v1/schedules/preview", { body: {} as never })).rejects.toThrow("has no fires");
    const page = { jobs: [], corrupt: [], next_cursor: null };
    expect(await answering(page).get("/v1/jobs")).toEqual(page);
    expect(await answering({}).post("/v1/jobs", { body: {} as never })).toEqual({});
  });
});

describe("how values are spread", () => {
  it("is by nearest rank, as the API does it", () => {
    expect(spreadOf([])).toEqual({ count: 0, p50: null, p95: null, p99: null, max: null });
    expect(spreadOf([3, 1, 2, 4])).toEqual({ count: 4, p50: 2, p95: 4, p99: 4, max: 4 });
    const hundred = spreadOf(Array.from({ length: 100 }, (_, n) => n + 1));
    expect([hundred.p50, hundred.p95, hundred.p99, hundred.max]).toEqual([50, 95, 99, 100]);
  });
});
