import { expect, it } from "vitest";
import type { CaseResult, Evaluation } from "../../api/client";
import { COUNTERS, profiled } from "./counters";

const metric = (name: string, value: number): CaseResult["metrics"][number] => ({
  name,
  unit: "%",
  value,
  low: null,
  high: null,
  better: null,
  samples: [],
});
const measured = (name: string, ...metrics: CaseResult["metrics"]): Evaluation["cases"][number] =>
  ({ case: name, metrics }) as unknown as Evaluation["cases"][number];

it("shows the cases that were profiled, and what a card lacks as nothing", () => {
  const rows = profiled([
    measured("m=1", metric("time", 3), metric("stall_barrier", 0), metric("tensor_pipe_utilisation", 71.25)),
    measured("m=2", metric("time", 4)),
  ]);
  expect(rows).toHaveLength(1);
  const [row] = rows;
  expect(row?.case).toBe("m=1");
  expect(row?.values[0]).toBe(71.25);
  expect(row?.values[COUNTERS.length - 1]).toBe(0);
  expect(row?.values[1]).toBeUndefined();
});
