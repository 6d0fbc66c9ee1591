import { describe, expect, it } from "vitest";
import { byHour } from "../src/draw/week";
import { dayAfter, monthAfter, monthWords, partsOf, toggled, weeksOf } from "../src/lib/months";

describe("a month", () => {
  it.each([
    ["2026-02", 5, 28],
    ["2027-02", 4, 28], // begins on a Monday and has four weeks
    ["2028-02", 5, 29],
    ["2026-11", 6, 30], // begins on a Sunday
    ["2026-12", 5, 31],
  ])("%s has %i weeks from Monday on, and %i days", (month, weeks, days) => {
    const found = weeksOf(month);
    expect(found).toHaveLength(weeks);
    const dates = found.flat().filter((date) => date !== undefined);
    expect(dates).toHaveLength(days);
    expect(dates[0]).toBe(`${month}-01`);
    for (const week of found)
      week.forEach((date, n) => {
        if (date) expect((new Date(`${date}T00:00:00Z`).getUTCDay() + 6) % 7).toBe(n);
      });
  });

  it("follows another, over the end of a year", () => {
    expect(monthAfter("2026-12", 1)).toBe("2027-01");
    expect(monthAfter("2026-01", -1)).toBe("2025-12");
    expect(monthAfter("2026-11", 14)).toBe("2028-01");
    expect(dayAfter("2026-12-31", 1)).toBe("2027-01-01");
    expect(monthWords("2026-12")).toBe("December 2026");
  });
});

describe("a list of dates", () => {
  it("is read with spaces, commas or lines, and has a day more or less", () => {
    const dates = partsOf("2026-12-24, 2026-12-26\n2027-01-01 ");
    expect(dates).toEqual(["2026-12-24", "2026-12-26", "2027-01-01"]);
    expect(toggled(dates, "2026-12-25")).toEqual(["2026-12-24", "2026-12-25", "2026-12-26", "2027-01-01"]);
    expect(toggled(dates, "2026-12-24")).toEqual(["2026-12-26", "2027-01-01"]);
  });
});

describe("the hours of a week", () => {
  it("are those of the zone's clock", () => {
    const fires = ["2026-11-23T03:30:00Z", "2026-11-23T04:30:00Z", "2026-11-27T19:00:00Z"].map(Date.parse);
    expect([...byHour(fires, "Asia/Kolkata")]).toEqual([
      ["Mon 9", "09:00"],
      ["Mon 10", "10:00"],
      ["Sat 0", "00:30"],
    ]);
  });
});
