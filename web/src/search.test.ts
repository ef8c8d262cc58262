import { describe, expect, it } from "vitest";
import { decoded } from "./paths";
import { ALL, rangeOf } from "./search";

describe("an address that somebody typed", () => {
  it.each([
    ["20", 20],
    ["", ALL],
    ["-1", ALL],
    ["0", ALL],
    ["2.5", ALL],
    ["1e9", ALL],
    ["many", ALL],
  ])("asks for range %s as %d revisions", (range, revisions) => {
    expect(rangeOf(new URLSearchParams({ range }))).toBe(revisions);
  });

  it.each([
    ["a%20b", "a b"],
    ["%E0%A4%A", "%E0%A4%A"],
    ["100%", "100%"],
  ])("has the part %s", (part, text) => {
    expect(decoded(part)).toBe(text);
  });
});
