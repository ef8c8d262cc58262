import { expect, it } from "vitest";
import { apart, roofOf, scaleOf, ticksOf } from "./scales";

it("puts powers at even distances", () => {
  const at = scaleOf([1, 100], 0, 200);
  expect([1, 10, 100].map(at)).toEqual([0, 100, 200]);
  expect(scaleOf([5], 0, 200)(5)).toBe(100);
});

it("ticks at powers, else at 1, 2 and 5 of each, else closer: at least three where there are any", () => {
  expect(ticksOf([1, 1000])).toEqual([1, 10, 100, 1000]);
  expect(ticksOf([5, 760])).toEqual([5, 10, 20, 50, 100, 200, 500]);
  expect(ticksOf([151, 395])).toEqual([200, 300]);
  expect(ticksOf([140, 410])).toEqual([150, 200, 300, 400]);
  expect(ticksOf([7, 7])).toEqual([7]);
});

it("bends the roof at the ridge, and shows it where it is near", () => {
  const roofs = { throughput: 1000, per_intensity: 5 };
  expect(roofOf([150, 400], roofs)).toEqual([
    { x: 100, y: 500 },
    { x: 200, y: 1000 },
    { x: 600, y: 1000 },
  ]);
  expect(roofOf([600, 800], roofs)[1]).toEqual({ x: 200, y: 1000 });
  expect(roofOf([3000, 6000], roofs).map((spot) => spot.y)).toEqual([1000, 1000]);
});

it("moves labels off each other and leaves the others", () => {
  const moved = apart([10, 100, 104], 13);
  expect(moved[0]).toBe(10);
  expect((moved[2] ?? 0) - (moved[1] ?? 0)).toBeGreaterThanOrEqual(12.5);
});
