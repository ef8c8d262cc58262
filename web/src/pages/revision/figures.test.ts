import { expect, it } from "vitest";
import type { Statics } from "../../api/client";
import { figuresOf, matching, togetherOf } from "./figures";

const statics = (name: string, registers: number, more: object = {}): Statics =>
  ({ function: name, architecture: "sm_90a", registers, stack_bytes: null, ...more }) as Statics;

it("takes every known number of a function, instructions by their class", () => {
  const found = figuresOf(statics("gemm", 128, { instructions: { wgmma: 8, mma: 0 } }));
  expect([...found]).toEqual([
    ["registers", 128],
    ["wgmma_instructions", 8],
    ["mma_instructions", 0],
  ]);
});

it("finds the base's function by its name, and the only one by being that", () => {
  const [old, other, renamed] = [statics("gemm", 1), statics("sum", 2), statics("gemm_v2", 3)];
  const now = statics("gemm", 9);
  expect(matching(now, [now], [other, old])).toBe(old);
  expect(matching(renamed, [renamed], [old])).toBe(old);
  expect(matching(renamed, [renamed, other], [old])).toBeUndefined();
});

it("puts functions of one name beside each other in their order, where there are as many", () => {
  const [first, second] = [statics("gemm", 1), statics("gemm", 2)];
  const [one, two] = [statics("gemm", 3), statics("gemm", 4)];
  expect(matching(two, [one, two], [first, second])).toBe(second);
  expect(matching(two, [one, two], [first])).toBeUndefined();
});

it("takes the largest of what each function has for itself, and the sum of what adds up", () => {
  const all = [statics("a", 40, { code_bytes: 100 }), statics("b", 168, { code_bytes: 50, instructions: { mma: 4 } })];
  expect(Object.fromEntries(togetherOf(all))).toEqual({ registers: 168, code_bytes: 150, mma_instructions: 4 });
});
