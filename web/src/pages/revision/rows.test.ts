import { describe, expect, it } from "vitest";
import type { Compared, Evaluation } from "../../api/client";
import { aroundMedian, axisOf, metricOf, rowsOf } from "./rows";

const side = { id: "rev", label: "v", digest: null };
function comparison(id: string, ratio: number | null): Compared["cases"][number] {
  return {
    case: id,
    verdict: ratio === null ? null : "same",
    ratio,
    interval: ratio === null ? null : [ratio - 0.01, ratio + 0.01],
    smallest_detectable: null,
    measured: "pairs",
    allowed: null,
    base: { time: 1 },
    head: { time: ratio ?? 1 },
    processes: [],
  };
}
const compared = (...cases: Compared["cases"]): Compared =>
  ({ project: "p", kernel: "k", device_class: "cpu", base: side, head: side, evaluation: null, cases }) as Compared;
const evaluation = { cases: [], base: null } as unknown as Evaluation;

describe("cases of a comparison", () => {
  it("stand in the order of what they lost, and what was not compared comes last", () => {
    const rows = rowsOf(evaluation, compared(comparison("same", 1), comparison("none", null), comparison("slow", 1.6)));
    expect(rows.map((row) => row.case)).toEqual(["slow", "same", "none"]);
  });

  it("share one axis with 1 on it", () => {
    const [low, high] = axisOf(rowsOf(evaluation, compared(comparison("slow", 1.6)))) ?? [0, 0];
    expect(low).toBeLessThan(1);
    expect(high).toBeGreaterThan(1.61);
  });

  it("are shown by a metric that both sides have", () => {
    expect(metricOf(rowsOf(evaluation, compared(comparison("a", 1))))).toBe("time");
    expect(metricOf([])).toBeNull();
  });
});

it("puts each process around the middle of its side", () => {
  const found = aroundMedian([102, 100, 99, 100]);
  expect(found.map((share) => Number(share.toFixed(4)))).toEqual([0.02, 0, -0.01, 0]);
});
