import type { CaseResult } from "../../api/client";

/** What a profile measures (contract/profile.py), with the head of its column. */
export const COUNTERS: readonly (readonly [string, string])[] = [
  ["tensor_pipe_utilisation", "tensor pipe"],
  ["achieved_occupancy", "occupancy"],
  ["dram_throughput", "DRAM"],
  ["l2_throughput", "L2"],
  ["stall_no_instruction", "no instruction"],
  ["stall_long_scoreboard", "long scoreboard"],
  ["stall_barrier", "barrier"],
];

export interface Profiled {
  case: string;
  values: (number | undefined)[];
}

/** A row a case that was profiled, its values in the order of COUNTERS. */
export function profiled(cases: readonly CaseResult[]): Profiled[] {
  return cases
    .map((one) => {
      const known = new Map(one.metrics.map((metric) => [metric.name, metric.value]));
      return { case: one.case, values: COUNTERS.map(([name]) => known.get(name)) };
    })
    .filter((row) => row.values.some((value) => value !== undefined));
}
