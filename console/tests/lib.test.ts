import { beforeAll, describe, expect, it, vi } from "vitest";
import { binsOf, columnsOf, countLevels, partOf, stack, ticks, worst } from "../src/draw/bins";

vi.stubGlobal("location", { hash: "", href: "https://x.example/console" });
vi.stubGlobal("addEventListener", () => undefined);

describe("the address of the API", () => {
  let addressOfApi: (page: string) => string;
  beforeAll(async () => {
    ({ addressOfApi } = await import("../src/lib/router"));
  });
  it.each([
    ["https://x.example/console", "https://x.example"],
    ["https://x.example/console/", "https://x.example"],
    ["https://x.example/console/index.html#/jobs", "https://x.example"],
    ["http://127.0.0.1:4566/_aws/execute-api/8c0ffee8/console", "http://127.0.0.1:4566/_aws/execute-api/8c0ffee8"],
    ["http://127.0.0.1:4566/a/b/console/?x=1#/y", "http://127.0.0.1:4566/a/b"],
    ["http://localhost:4811/", "http://localhost:4811"],
  ])("of %s is %s", (page, api) => expect(addressOfApi(page)).toBe(api));
});

describe("places", () => {
  it("survive their address, whatever a name holds", async () => {
    const { parsePlace, to } = await import("../src/lib/router");
    const path = ["runs", "tenant:job:20261121T031800Z", "ä/b?c#d%"];
    const query = { search: "a b&c=d", state: "paused" };
    expect(parsePlace(to(path, query))).toEqual({ path, query });
    expect(parsePlace("")).toEqual({ path: [], query: {} });
    expect(parsePlace("#/%E0%A4%A")).toEqual({ path: ["%E0%A4%A"], query: {} });
    expect(to(["jobs"], { state: undefined, tag: "" })).toBe("#/jobs");
  });
});

describe("what somebody else wrote", () => {
  it("is shown as data, as the command prints it", async () => {
    const { visible } = await import("../src/lib/words");
    expect(visible("\u202eevil\u2066 \u001b[2J\u009b\u007f\u2028")).toBe(
      "\\u{202e}evil\\u{2066} \\u{1b}[2J\\u{9b}\\u{7f}\\u{2028}",
    );
    expect(visible("é 😀\u200d\tשלום\n")).toBe("é 😀\u200d\tשלום\n");
  });
});

describe("times", () => {
  it("are shown on the clock of a zone, also through a clock change", async () => {
    const { absolute, local } = await import("../src/lib/time");
    const before = Date.parse("2026-03-29T00:59:59Z");
    expect(absolute(before, "Europe/Paris")).toBe("2026-03-29 01:59:59");
    expect(absolute(before + 1000, "Europe/Paris")).toBe("2026-03-29 03:00:00");
    expect(local(before + 1000, "Europe/Paris").offset).toBe("+02:00");
    expect(local(before, "UTC").offset).toBe("+00:00");
    expect(absolute(before, "Asia/Kathmandu")).toBe("2026-03-29 06:44:59");
    expect(absolute(before, "No/Such_Zone")).toBe("2026-03-29 00:59:59");
  });
  it("leave the date out where it is today's", async () => {
    const { absolute } = await import("../src/lib/time");
    const at = Date.parse("2026-11-22T23:30:00Z");
    expect(absolute(at, "UTC", at - 3600_000)).toBe("23:30:00");
    expect(absolute(at, "UTC", at + 3600_000)).toBe("2026-11-22 23:30:00");
  });
  it.each([
    ["2026-11-23T10:00", "UTC", "2026-11-23T10:00:00Z"],
    ["2026-11-23T10:00", "Europe/Berlin", "2026-11-23T09:00:00Z"],
    ["2026-03-29T01:59", "Europe/Berlin", "2026-03-29T00:59:00Z"],
    ["2026-03-29T03:00", "Europe/Berlin", "2026-03-29T01:00:00Z"],
    ["2026-11-01T12:00", "America/New_York", "2026-11-01T17:00:00Z"],
  ])("%s in %s is %s, and back", async (text, zone, instant) => {
    const { instantOf, localField, rfc3339 } = await import("../src/lib/time");
    expect(rfc3339(instantOf(text, zone))).toBe(instant);
    expect(localField(Date.parse(instant), zone)).toBe(text);
    expect(instantOf("", zone)).toBeNaN();
  });
  it("are read again less often while nobody is there", async () => {
    const { pauseOf } = await import("../src/lib/load");
    expect([pauseOf(5, 0), pauseOf(5, 59_999), pauseOf(5, 60_000), pauseOf(180, 60_000)]).toEqual([5, 5, 60, 180]);
  });
  it("choose the zone", async () => {
    const { BROWSER_ZONE, zoneOf } = await import("../src/lib/time");
    expect(zoneOf("utc", "Asia/Tokyo")).toBe("UTC");
    expect(zoneOf("job", "Asia/Tokyo")).toBe("Asia/Tokyo");
    expect(zoneOf("job", undefined)).toBe("UTC");
    expect(zoneOf("browser", "Asia/Tokyo")).toBe(BROWSER_ZONE);
  });
  it("are said relative to the present, and durations as exactly as they matter", async () => {
    const { duration, fromNow, rfc3339, span } = await import("../src/lib/time");
    expect(fromNow(180_000, 0)).toBe("in 3 min");
    expect(fromNow(0, 7_300_000)).toBe("2 h ago");
    expect(fromNow(500, 0)).toBe("now");
    expect([span(59), span(60), span(3599), span(3600), span(172_800)]).toEqual([
      "59 s",
      "1 min",
      "59 min",
      "1 h",
      "2 d",
    ]);
    expect([duration(0.031), duration(4.2), duration(59.94), duration(185), duration(3661)]).toEqual([
      "31 ms",
      "4.20 s",
      "59.9 s",
      "3 min 5 s",
      "1 h 1 min",
    ]);
    expect(rfc3339(1_700_000_000_900)).toBe("2023-11-14T22:13:20Z");
  });
});

describe("a time in units", () => {
  it("says whole seconds in the longest unit, and is read again", async () => {
    const { inUnits, secondsOf } = await import("../src/lib/time");
    expect([0, 59, 60, 90, 3600, 7200, 86_400].map(inUnits)).toEqual([
      "0 s",
      "59 s",
      "1 min",
      "90 s",
      "1 h",
      "2 h",
      "1 d",
    ]);
    for (let seconds = 0; seconds <= 90_000; seconds += 7) expect(secondsOf(inUnits(seconds))).toBe(seconds);
    expect(secondsOf(" 90 ")).toBe(90);
    for (const text of ["", "1 week", "-5", "1.5 h", "1e3"]) expect(() => secondsOf(text)).toThrow("accepted");
  });
});

describe("a time line", () => {
  it("counts marks into columns, half-open, and loses none inside", () => {
    const marks = [0, 9, 10, 99, 100, -1].map((at) => ({ at, state: "succeeded" }));
    const bins = binsOf(marks, 0, 100, 10);
    expect(bins.map((bin) => bin.total)).toEqual([2, 1, 0, 0, 0, 0, 0, 0, 0, 1]);
    expect(bins[9]).toMatchObject({ from: 90, until: 100 });
  });
  it("puts the worst first", () => {
    const states = ["succeeded", "no_record", "failed", "late"];
    const [bin] = binsOf(
      states.map((state) => ({ at: 0, state, count: 2 })),
      0,
      1,
      1,
    );
    expect(bin?.states.map(([state]) => state)).toEqual(["no_record", "failed", "late", "succeeded"]);
    expect(bin?.total).toBe(8);
    expect(worst(["succeeded", "skipped"])).toBe("skipped");
    expect(worst([])).toBeUndefined();
  });
  it("shows one failure among thousands", () => {
    const heights = stack(
      [
        ["failed", 1],
        ["succeeded", 9999],
      ],
      10_000,
      60,
    );
    expect(heights[0]?.[1]).toBeGreaterThanOrEqual(1.5);
    expect(stack([], 0, 60)).toEqual([]);
  });
  it("is linear: twice as many are twice as high", () => {
    expect(stack([["succeeded", 50]], 100, 60)).toEqual([["succeeded", 30]]);
    expect(stack([["succeeded", 25]], 100, 60)).toEqual([["succeeded", 15]]);
  });
  it("has what is over and what is to come apart", () => {
    const marks = ["succeeded", "to_come"].flatMap((state) => [1, 6].map((at) => ({ at, state })));
    const bins = binsOf(marks, 0, 10, 2);
    expect(partOf(bins, 5, false).map((bin) => bin.states)).toEqual([[["succeeded", 1]], []]);
    expect(partOf(bins, 5, true).map((bin) => bin.total)).toEqual([1, 2]);
  });
  it.each([
    [0, []],
    [1, [1]],
    [3, [1, 2, 3]],
    [4, [2, 4]],
    [47, [20, 40]],
    [99, [50]],
    [1000, [500, 1000]],
  ])("has round counts up to %i: %o", (most, levels) => expect(countLevels(most)).toEqual(levels));
  it("is labelled at round instants inside it", () => {
    const hour = 3_600_000;
    expect(ticks(hour / 2, 6 * hour, 6)).toEqual([1, 2, 3, 4, 5, 6].map((n) => n * hour));
    expect(ticks(0, 48 * hour, 8).length).toBeLessThanOrEqual(9);
  });
});

describe("the columns of a time line", () => {
  const [hour, day] = [3_600_000, 86_400_000];
  it.each([
    [hour, 970, 60, hour],
    [hour, 240, 30, hour],
    [8 * hour, 970, 160, 8 * hour],
    [day, 200, 33, 33 * 44 * 60_000],
  ])("of %i ms on %i px are whole minutes", (range, width, columns, end) => {
    expect(columnsOf(0, range, width, 6)).toEqual([columns, end]);
  });
});

describe("the first pages of a list", () => {
  async function* pages(count: number) {
    for (let n = 1; n <= count; n++) {
      read = n;
      yield { moved: [n], next_cursor: n < count ? `after ${n}` : null };
    }
  }
  let read = 0;
  it.each([
    [1, 3, [1], true],
    [2, 3, [1, 2], true],
    [3, 3, [1, 2, 3], false],
    [9, 3, [1, 2, 3], false],
  ])("%i of %i are read, no more, and say whether there are others", async (most, count, moved, more) => {
    const { firstPages } = await import("../src/lib/pages");
    const shown: number[] = [];
    const found = await firstPages(pages(count), most, (part) => shown.push(part.length));
    expect(shown).toEqual(moved.slice(0, -1));
    expect(found.pages.flatMap((page) => page.moved)).toEqual(moved);
    expect(found.more).toBe(more);
    expect(read).toBe(moved.length);
  });
});

describe("after requests failed", () => {
  it("each part that failed asks again at the first success, once", async () => {
    const { forget, noteFailure, noteSuccess, trouble } = await import("../src/lib/trouble");
    const { Minute8Problem, Unreachable } = await import("minute8-client");
    const asked: string[] = [];
    const askers = ["failing", "offline", "gone", "not found"].map((name) => () => {
      asked.push(name);
      // It fails again at once.
      noteFailure(new Unreachable("no answer"), askers[0]);
    });
    const problem = (status: number) => new Minute8Problem(status, {});
    noteFailure(problem(404), askers[3]);
    expect(trouble.value).toBe(null);
    noteFailure(problem(500), askers[0]);
    expect(trouble.value).toBe("failing");
    noteFailure(new Unreachable("no answer"), askers[1]);
    noteFailure(new Unreachable("no answer"), askers[2]);
    noteFailure(problem(404));
    expect(trouble.value).toBe("offline");
    forget(askers[2] as () => void);
    expect(asked).toEqual([]);
    noteSuccess();
    expect(asked).toEqual(["failing", "offline"]);
    noteSuccess();
    expect(asked).toEqual(["failing", "offline", "failing"]);
    forget(askers[0] as () => void);
    noteSuccess();
    expect(asked).toHaveLength(3);
    expect(trouble.value).toBe(null);
  });
});

describe("a role", () => {
  const ALL = ["read", "write", "admin", "operator"] as const;
  it.each([
    ["read", "active", ["read"], ["read"]],
    ["write", "active", ["read", "write"], ["read", "write"]],
    ["admin", "active", ["read", "write", "admin"], ["read", "write", "admin"]],
    ["admin", "suspended", ["read", "write", "admin"], []],
    ["operator", undefined, ["operator"], ["operator"]],
  ] as const)("%s of a tenant that is %s", async (role, state, sees, changes) => {
    const { hasRole, may, session, signOut } = await import("../src/lib/session");
    const tenant = state ? { state } : null;
    session.value = { role, tenant } as unknown as NonNullable<typeof session.value>;
    expect(ALL.filter(hasRole)).toEqual(sees);
    expect(ALL.filter(may)).toEqual(changes);
    vi.stubGlobal("sessionStorage", { removeItem: () => undefined, setItem: () => undefined });
    signOut();
    expect(ALL.filter((role) => hasRole(role) || may(role))).toEqual([]);
  });
});
