import { describe, expect, it } from "vitest";
import {
  ago,
  caseName,
  clean,
  duration,
  figureName,
  fileSize,
  number,
  percent,
  ratioInWords,
  ratioWithInterval,
  withCaseNames,
} from "./text";

describe("numbers have the digits that the interval supports, as on the terminal", () => {
  it.each([
    [[312.04, 311.6, 312.4], "312.0"],
    [[440.51, null, null], "440.5"],
    [[0.05324, null, null], "0.05324"],
    [[53249, 53000, 53500], "53249"],
    [[null, null, null], ""],
  ] as const)("%j is %s", ([value, low, high], said) => {
    expect(number(value, low, high)).toBe(said);
  });

  it("says a ratio with its interval", () => {
    expect(ratioWithInterval(0.98521, [0.9845, 0.9859])).toBe("0.9852 [0.9845, 0.9859]");
    expect(ratioWithInterval(1.0445, null)).toBe("1.044");
    expect(ratioWithInterval(null, null)).toBe("");
  });

  it("says a change in words", () => {
    expect(ratioInWords(0.9852, [0.9845, 0.9859])).toBe("1.5 % faster");
    expect(ratioInWords(1.614, [1.609, 1.619])).toBe("61 % slower");
    expect(ratioInWords(1.0446)).toBe("4.5 % slower");
    expect(ratioInWords(1.00001)).toBe("the same");
    expect(ratioInWords(null)).toBe("unknown");
  });

  it("takes a figure's unit from its name", () => {
    expect(figureName("sm_clock_mhz")).toEqual(["SM clock", "MHz"]);
    expect(figureName("temperature_c")).toEqual(["temperature", "°C"]);
    expect(figureName("throttle")).toEqual(["throttle", ""]);
  });

  it("says sizes, times and shares", () => {
    expect([fileSize(512), fileSize(32768), fileSize(9318)]).toEqual(["512 B", "32 KiB", "9.1 KiB"]);
    expect([duration(0.05), duration(2.7), duration(120)]).toEqual(["50 ms", "2.7 s", "2.0 min"]);
    expect([percent(0.005), percent(0.12)]).toEqual(["0.5 %", "12 %"]);
    expect(ago("2026-01-01T00:00:00Z", Date.parse("2026-01-01T00:05:10Z"))).toBe("5 min ago");
  });
});

describe("names", () => {
  it("shortens the cases of known operators", () => {
    expect(caseName("m=1024,n=1024,k=1024")).toBe("1024^3");
    expect(caseName("m=4096,n=4096,k=64")).toBe("4096x4096x64");
    expect(caseName("batch=4,heads=32,kv_heads=8,seqlen=512,head_dim=128,causal=1")).toBe("b4 h32/8 s512 d128 causal");
    expect(caseName("b1-h64-s1024-d128-full")).toBe("b1-h64-s1024-d128-full");
  });

  it("takes out what would repaint or reorder a line", () => {
    expect(clean("a\u001b[31mb\u0007\u202Ec\n\td")).toBe("abc\n\td");
  });
});

it("names cases in a sentence as people read them", () => {
  expect(withCaseNames("slower at m=64,n=64,k=64 on h200 (a=1)")).toBe("slower at 64^3 on h200 (a=1)");
});
