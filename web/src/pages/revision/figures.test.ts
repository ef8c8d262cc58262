import { expect, it } from "vitest";
import type { Statics } from "../../api/client";
import { figuresOf, matching } from "./figures";

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
  expect(matching(statics("gemm", 9), [statics("gemm", 9)], [other, old])).toBe(old);
  expect(matching(renamed, [renamed], [old])).toBe(old);
  expect(matching(renamed, [renamed, other], [old])).toBeUndefined();
});
