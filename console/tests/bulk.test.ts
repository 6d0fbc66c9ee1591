import type { Shapes } from "minute8-client";
import { describe, expect, it } from "vitest";
import { type BulkVerb, eachOnce, forEachOf, type ManyFilter, manyFilterOf, throughAll } from "../src/lib/bulk";
import type { JobFilter } from "../src/lib/jobs";

describe("the filter of a list, for the API", () => {
  it.each<[JobFilter, BulkVerb, ManyFilter | undefined]>([
    [{}, "run", { all: true }],
    [{}, "pause", { state: "active" }],
    [{}, "resume", { state: "paused" }],
    [{ tag: "eu", state: "" }, "run", { tag: "eu" }],
    [{ tag: "eu", state: "active" }, "pause", { tag: "eu", state: "active" }],
    [{ state: "paused" }, "run", { state: "paused" }],
    // Nothing that is shown would change, so a wider filter must not take its place.
    [{ state: "paused" }, "pause", undefined],
    [{ state: "active" }, "resume", undefined],
    // The API has no such filter.
    [{ tag: "eu", search: "x" }, "run", undefined],
    [{ kind: "sqs" }, "pause", undefined],
    [{ failing: "yes" }, "run", undefined],
    [{ state: "paused", tag: "eu" }, "delete", { state: "paused", tag: "eu" }],
    // The order is no condition.
    [{ sort: "name", cursor: "x" }, "delete", { all: true }],
  ])("%o to %s is %o", (shown, verb, filter) => expect(manyFilterOf(shown, verb)).toEqual(filter));
});

describe("many at once", () => {
  const answer = (ids: string[], next_cursor: string | null, refused: Shapes["ManyDone"]["refused"] = []) =>
    ({ dry_run: false, matched: ids.length, done: ids.length - refused.length, ids, refused, next_cursor }) as const;

  it("goes on until there is no cursor, also after an answer that took nothing, and adds up", async () => {
    const refusal = { id: "c", type: "conflict", detail: "no" };
    const answers = [answer(["a", "b"], "1"), answer([], "2"), answer(["c"], null, [refusal])];
    const asked: unknown[] = [];
    const told: number[] = [];
    const sum = await throughAll(
      async (cursor) => {
        asked.push(cursor);
        return answers.shift() ?? answer([], null);
      },
      (soFar) => told.push(soFar.done),
    );
    expect(asked).toEqual([{}, { cursor: "1" }, { cursor: "2" }]);
    expect(told).toEqual([2, 2, 2]);
    expect(sum).toEqual({ matched: 3, done: 2, ids: ["a", "b", "c"], refused: [refusal] });
  });

  it("changes chosen ones one by one, and goes on after a refusal", async () => {
    const outcome = await forEachOf(
      ["a", "b", "c"],
      async (id) => {
        if (id === "b") throw new Error("no");
      },
      () => undefined,
    );
    expect(outcome).toEqual({ done: 2, refused: [{ item: "b", because: "no" }] });
  });
});

describe("dead letters", () => {
  const deadLetter = (message_id: string) => ({ message_id, sent_at: "", about: [], problem: null, bytes: 1 });
  const answer = (done: number, ids: string[], more: boolean) => ({
    done,
    left: ids.map(deadLetter),
    more,
    began_at: "2026-11-21T03:12:00Z",
  });

  it("are met once: each request has the first one's instant, and the answers are added up", async () => {
    const answers = [answer(100, ["a"], true), answer(0, ["b"], true), answer(7, ["a"], false)];
    const asked: unknown[] = [];
    const sum = await eachOnce(async (since) => {
      asked.push(since);
      return answers.shift() ?? answer(0, [], false);
    });
    expect(asked).toEqual([{}, { began_at: "2026-11-21T03:12:00Z" }, { began_at: "2026-11-21T03:12:00Z" }]);
    expect([sum.done, sum.left.map(({ message_id }) => message_id), sum.more]).toEqual([107, ["a", "b"], false]);
  });

  it("end, when a request meets none that is new", async () => {
    let requests = 0;
    const sum = await eachOnce(async () => {
      requests++;
      return answer(0, ["a"], true);
    });
    expect([requests, sum.done, sum.more]).toEqual([2, 0, true]);
  });
});
