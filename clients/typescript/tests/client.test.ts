import { describe, expect, it } from "vitest";
import { Minute8, Minute8Problem, Unreachable } from "../src/index.js";

type Reply = Response | Error;

/** A client whose API answers with these, one after the other, and what it was asked and waited. */
function world(...replies: Reply[]) {
  const asked: { url: string; init: RequestInit }[] = [];
  const waits: number[] = [];
  const client = new Minute8({
    url: "https://api.example.com/base/v1/",
    key: "m8_key",
    sleep: async (seconds) => {
      waits.push(seconds);
    },
    fetch: async (input, init) => {
      asked.push({ url: String(input), init: init ?? {} });
      const reply = replies.shift();
      if (!reply) throw new Error("nobody expected this request");
      if (reply instanceof Error) throw reply;
      return reply;
    },
  });
  return { client, asked, waits };
}

const ok = (body: unknown) => new Response(JSON.stringify(body), { status: 200 });
const refused = (status: number, name: string, more = {}, headers = {}) =>
  new Response(JSON.stringify({ type: `urn:minute8:problem:${name}`, title: "T", status, detail: "D", ...more }), {
    status,
    headers,
  });

describe("a request", () => {
  it("carries the key, and fills the path and the query", async () => {
    const { client, asked } = world(ok({ runs: [], next_cursor: null }));
    await client.get("/v1/jobs/{job_id}/runs", { path: { job_id: "a b/c" }, query: { limit: 5, status: "failed" } });
    expect(asked[0]?.url).toBe("https://api.example.com/base/v1/jobs/a%20b%2Fc/runs?limit=5&status=failed");
    expect(asked[0]?.init.headers).toMatchObject({ Authorization: "Bearer m8_key" });
  });

  it("leaves the colons of an execution id as they are", async () => {
    const { client, asked } = world(ok({}));
    await client.get("/v1/runs/{execution_id}", { path: { execution_id: "t:j:20261121T031800Z" } });
    expect(asked[0]?.url).toMatch(/\/v1\/runs\/t:j:20261121T031800Z$/);
  });

  it("asks for a list again by its ETag, and returns what it has if that is still the same", async () => {
    const list = (id: string) =>
      new Response(JSON.stringify({ jobs: [{ job_id: id }], next_cursor: null }), { headers: { ETag: `W/"${id}"` } });
    const { client, asked } = world(list("a"), new Response(null, { status: 304 }), list("b"), list("c"));
    const first = await client.get("/v1/jobs", { query: { limit: 5 } });
    first.jobs.length = 0; // what a caller does with an answer changes no later one
    expect((await client.get("/v1/jobs", { query: { limit: 5 } })).jobs[0]?.job_id).toBe("a");
    expect((await client.get("/v1/jobs", { query: { limit: 5 } })).jobs[0]?.job_id).toBe("b");
    await client.get("/v1/jobs", { query: { limit: 6 } });
    const named = asked.map((request) => (request.init.headers as Record<string, string>)["If-None-Match"]);
    expect(named).toEqual([undefined, 'W/"a"', 'W/"a"', undefined]);
  });

  it("names the revision and the idempotency key in headers, and sends JSON or lines", async () => {
    const { client, asked } = world(ok({}), ok({}), ok({}));
    await client.patch("/v1/jobs/{job_id}", { path: { job_id: "a" }, body: { timeout_s: 5 }, revision: 7 });
    await client.post("/v1/jobs/{job_id}/pause", { path: { job_id: "a" }, body: { note: "n" }, idempotencyKey: "k" });
    await client.post("/v1/jobs/_bulk", { body: '{"job_id":"a"}\n' });
    expect(asked.map((request) => request.init.headers)).toMatchObject([
      { "If-Match": '"7"', "Content-Type": "application/json" },
      { "Idempotency-Key": '"k"' },
      { "Content-Type": "application/x-ndjson" },
    ]);
    expect(asked[0]?.init.body).toBe('{"timeout_s":5}');
  });

  it("answers nothing where there is nothing", async () => {
    const { client } = world(new Response(null, { status: 204 }));
    expect(await client.delete("/v1/jobs/{job_id}", { path: { job_id: "a" } })).toBeUndefined();
  });

  it("gives the lines of an export as text", async () => {
    const lines = '{"job_id":"a"}\n';
    const { client } = world(new Response(lines, { headers: { "Content-Type": "application/x-ndjson" } }));
    expect(await client.get("/v1/jobs/_export")).toBe(lines);
  });
});

describe("a refusal", () => {
  it("is thrown with its name, fields and request id", async () => {
    const errors = [{ field: "schedule.cron", message: "is wrong", accepted: "five fields" }];
    const { client } = world(refused(400, "invalid-input", { errors, request_id: "r1" }));
    const problem = await client.get("/v1/tenant").catch((error: unknown) => error);
    expect(problem).toBeInstanceOf(Minute8Problem);
    expect(problem).toMatchObject({ name: "invalid-input", status: 400, message: "D", errors, requestId: "r1" });
  });

  it("is a problem also if a gateway wrote it", async () => {
    const { client } = world(new Response("<html>no", { status: 413, statusText: "Too Large" }));
    await expect(client.get("/v1/tenant")).rejects.toMatchObject({ status: 413, title: "Too Large", name: "" });
  });

  it("says which revision is current", async () => {
    const { client } = world(refused(412, "revision-mismatch", { current_revision: 9 }));
    await expect(client.get("/v1/tenant")).rejects.toMatchObject({ currentRevision: 9 });
  });
});

describe("repeating", () => {
  it("waits longer each time, and at least as long as the API asks", async () => {
    const busy = () => refused(503, "busy");
    const { client, waits } = world(
      busy(),
      refused(429, "rate-exceeded", {}, { "Retry-After": "3" }),
      busy(),
      ok({ a: 1 }),
    );
    expect(await client.get("/v1/tenant")).toEqual({ a: 1 });
    expect(waits).toHaveLength(3);
    expect(waits[0]).toBeGreaterThanOrEqual(0.1);
    expect(waits[0]).toBeLessThanOrEqual(0.2);
    expect(waits[1]).toBe(3);
    expect(waits[2]).toBeGreaterThanOrEqual(0.4);
  });

  it("ends after four tries", async () => {
    const { client, asked } = world(...Array.from({ length: 4 }, () => refused(503, "busy")));
    await expect(client.get("/v1/tenant")).rejects.toMatchObject({ name: "busy" });
    expect(asked).toHaveLength(4);
  });

  it("never repeats a POST that could take effect twice", async () => {
    const { client, asked } = world(refused(500, "internal"));
    await expect(client.post("/v1/jobs/{job_id}/run", { path: { job_id: "a" }, body: {} })).rejects.toMatchObject({
      name: "internal",
    });
    expect(asked).toHaveLength(1);
  });

  it("repeats a POST with an idempotency key after a lost answer", async () => {
    const { client, asked } = world(new TypeError("network"), ok({}));
    await client.post("/v1/jobs/{job_id}/pause", { path: { job_id: "a" }, body: {}, idempotencyKey: "k" });
    expect(asked).toHaveLength(2);
  });

  it("repeats any request that was throttled, and one that is under way", async () => {
    const { client, asked } = world(
      refused(429, "rate-exceeded"),
      refused(409, "request-under-way", {}, { "Retry-After": "1" }),
      ok({}),
    );
    await client.post("/v1/jobs/{job_id}/run", { path: { job_id: "a" }, body: {} });
    expect(asked).toHaveLength(3);
  });

  it.each([{ revision: 1 }, { onlyNew: true }])(
    "does not repeat a change that would meet its own work",
    async (only) => {
      const { client, asked } = world(refused(503, "busy"));
      const change = client.put("/v1/calendars/{name}", { path: { name: "c" }, body: { dates: [] }, ...only });
      await expect(change).rejects.toMatchObject({ name: "busy" });
      expect(asked).toHaveLength(1);
    },
  );

  it("takes a deletion for done if an earlier try's answer was lost and it is gone now", async () => {
    const { client } = world(new Response("", { status: 504 }), refused(404, "not-found"));
    expect(await client.delete("/v1/jobs/{job_id}", { path: { job_id: "a" } })).toBeUndefined();
  });

  it("still says that something was never there", async () => {
    const { client } = world(refused(404, "not-found"));
    await expect(client.delete("/v1/jobs/{job_id}", { path: { job_id: "a" } })).rejects.toMatchObject({
      name: "not-found",
    });
  });

  it("says that no answer came, and names no query", async () => {
    const failures = Array.from({ length: 4 }, () => new TypeError("network"));
    const { client } = world(...failures);
    const error = await client.get("/v1/runs", { query: { cursor: "secret" } }).catch((refusal: unknown) => refusal);
    expect(error).toBeInstanceOf(Unreachable);
    expect(String(error)).not.toContain("secret");
  });

  it("ends at once when its caller gives up", async () => {
    const ended = new AbortController();
    ended.abort(new Error("gone"));
    const { client, asked } = world(new TypeError("aborted"));
    await expect(client.get("/v1/tenant", { signal: ended.signal })).rejects.toThrow("aborted");
    expect(asked).toHaveLength(1);
  });
});

describe("pages", () => {
  it("follow the cursor to the end", async () => {
    const { client, asked } = world(
      ok({ jobs: [{ job_id: "a" }], next_cursor: "c1" }),
      ok({ jobs: [], next_cursor: null }),
    );
    const pages = [];
    for await (const page of client.pages("/v1/jobs", { query: { limit: 1 } })) pages.push(page.jobs.length);
    expect(pages).toEqual([1, 0]);
    expect(asked[1]?.url).toContain("limit=1&cursor=c1");
  });
});

describe("bulkPut", () => {
  const line = (job_id: string, busy = false) => ({
    line: 1,
    job_id,
    result: busy ? "refused" : "created",
    ...(busy ? { problem: { type: "urn:minute8:problem:busy", title: "", status: 503, detail: "", line: 1 } } : {}),
  });
  const jobs = [{ job_id: "a" }, { job_id: "b" }];

  it("sends the lines again that were refused as busy, and no others", async () => {
    const { client, asked, waits } = world(ok({ results: [line("a"), line("b", true)] }), ok({ results: [line("b")] }));
    const results = await client.bulkPut(jobs);
    expect(results.map(({ line, result }) => [line, result])).toEqual([
      [1, "created"],
      [2, "created"],
    ]);
    expect(asked.map(({ init }) => init.body)).toEqual(['{"job_id":"a"}\n{"job_id":"b"}', '{"job_id":"b"}']);
    expect(waits).toEqual([1]);
  });

  it("throws with the results of all lines when some stay busy", async () => {
    const busy = Array.from({ length: 8 }, () => ok({ results: [line("b", true)] }));
    const { client } = world(ok({ results: [line("a"), line("b", true)] }), ...busy);
    const error = (await client.bulkPut(jobs).catch((thrown: unknown) => thrown)) as Minute8Problem;
    expect(error.name).toBe("busy");
    expect((error.document.results as unknown[]).length).toBe(2);
  });

  it("goes on as long as a line is stored, and stays with two minutes when none is", async () => {
    const many = Array.from({ length: 12 }, (_, nth) => ({ job_id: `job-${nth}` }));
    const answers = many.map((_, done) =>
      ok({ results: many.slice(done).map(({ job_id }, nth) => line(job_id, nth > 0)) }),
    );
    const { client, waits } = world(...answers);
    expect((await client.bulkPut(many)).every(({ result }) => result === "created")).toBe(true);
    expect(waits).toEqual(Array.from({ length: 11 }, () => 1));
    const stalled = Array.from({ length: 1_001 }, (_, nth) => ({ job_id: `job-${nth}` }));
    const refused = () => ok({ results: stalled.slice(0, 1_000).map(({ job_id }) => line(job_id, true)) });
    const again = world(...Array.from({ length: 9 }, refused), ok({ results: [line("job-1000", true)] }));
    await expect(again.client.bulkPut(stalled)).rejects.toMatchObject({ name: "busy" });
    expect([again.asked.length, again.waits.reduce((sum, wait) => sum + wait)]).toEqual([10, 120]);
  });
});
