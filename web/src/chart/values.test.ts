import { expect, it } from "vitest";
import type { Point, Series } from "../api/client";
import { baselineOf, pointWords, shownOf } from "./values";

const point: Point = {
  place: 3,
  revision: "rev_1",
  evaluation: "ev_1",
  label: "v7",
  commit: "e05c1f2aa00000000000",
  summary: "persistent schedule",
  mainline: true,
  at: "2026-01-01T00:00:00Z",
  value: 631.94,
  low: 631.1,
  high: 632.8,
  outcome: "passed",
  verdict: "faster",
  base: "v6",
  ratio: 0.879,
  interval: [0.8781, 0.8799],
  of_baseline: 0.823,
};
const series: Series = {
  project: "local",
  kernel: "hgemm",
  device_class: "h200",
  case: "m=4096,n=4096,k=4096",
  metric: "throughput",
  unit: "TFLOPS",
  better: "higher",
  baseline: "cuBLAS",
  baseline_value: 767.8,
  points: [point],
  total: 1,
  earlier: null,
};

it("says label, commit, value, interval, share, change and summary in one line", () => {
  expect(pointWords(series, point)).toBe(
    "v7 · e05c1f2aa · 631.9 [631.1, 632.8] TFLOPS · 0.8230 of the baseline" +
      " · ▲ 12.1 % faster than v6 (time ratio 0.8790 [0.8781, 0.8799]) · persistent schedule",
  );
});

it("says of a failed revision what became of it", () => {
  const failed = {
    ...point,
    value: null,
    low: null,
    high: null,
    of_baseline: null,
    verdict: null,
    outcome: "incorrect",
  };
  expect(pointWords(series, failed as Point)).toBe("v7 · e05c1f2aa · incorrect · persistent schedule");
});

it("turns a time's interval round when it is shown as a share of the baseline's speed", () => {
  const time = { ...series, metric: "time", unit: "us", better: "lower" as const, baseline_value: 80 };
  const shown = shownOf(time, { ...point, value: 100, low: 98, high: 102, of_baseline: 0.8 }, true);
  expect(shown.value).toBe(0.8);
  expect(shown.low).toBeCloseTo(80 / 102);
  expect(shown.high).toBeCloseTo(80 / 98);
  expect(baselineOf(time, true)).toBe(1);
});
