import type { CaseComparison, Compared, Evaluation } from "../../api/client";

/** One case of the table: compared, or only measured, or left out. */
export interface Row {
  case: string;
  compared: CaseComparison | null;
  head: Record<string, number>;
  base: Record<string, number>;
  ofBaseline: number | null;
  why: string | null;
}

/** The slowest first; what wasn't compared comes last, in the suite's order. */
export function rowsOf(evaluation: Evaluation, compared: Compared | undefined): Row[] {
  const results = new Map(evaluation.cases.map((result) => [result.case, result]));
  const comparisons = new Map((compared?.cases ?? []).map((one) => [one.case, one]));
  const rows = [...new Set([...comparisons.keys(), ...results.keys()])].map((id): Row => {
    const comparison = comparisons.get(id) ?? null;
    const result = results.get(id);
    const measured = Object.fromEntries((result?.metrics ?? []).map((metric) => [metric.name, metric.value]));
    const head = { ...measured, ...comparison?.head };
    const skipped = result?.skipped ?? null;
    const baseSkipped = result?.base_skipped ? `${evaluation.base?.label ?? "the base"} leaves it out` : null;
    return {
      case: id,
      compared: comparison,
      head,
      base: comparison?.base ?? {},
      ofBaseline: head.throughput_over_baseline ?? null,
      why: skipped ? `left out: ${skipped}` : baseSkipped,
    };
  });
  return rows.sort(
    (one, other) =>
      (other.compared?.ratio ?? Number.NEGATIVE_INFINITY) - (one.compared?.ratio ?? Number.NEGATIVE_INFINITY) || 0,
  );
}

/** The metric that both sides have: time, else throughput. */
export function metricOf(rows: readonly Row[]): string | null {
  for (const metric of ["time", "throughput"]) {
    if (rows.some((row) => metric in row.head && metric in row.base)) return metric;
  }
  return ["time", "throughput"].find((metric) => rows.some((row) => metric in row.head)) ?? null;
}

export function unitOf(evaluation: Evaluation, metric: string): string {
  return evaluation.cases.flatMap((result) => result.metrics).find((one) => one.name === metric)?.unit ?? "";
}

/** Ends of the one axis that all intervals stand on: ratios, with 1 on it. */
export function axisOf(rows: readonly Row[]): [number, number] | null {
  const ends = rows.flatMap(({ compared }) => [
    ...(compared?.interval ?? []),
    ...(compared?.ratio != null ? [compared.ratio] : []),
  ]);
  if (ends.length === 0) return null;
  const [least, most] = [Math.min(1, ...ends), Math.max(1, ...ends)];
  const room = (most - least) * 0.06 || 0.01;
  return [least - room, most + room];
}

/** Each value as the share by which it is above or below their median. */
export function aroundMedian(values: readonly number[]): number[] {
  const sorted = [...values].sort((one, other) => one - other);
  const half = (sorted.length - 1) / 2;
  const middle = ((sorted[Math.floor(half)] ?? 1) + (sorted[Math.ceil(half)] ?? 1)) / 2;
  return values.map((value) => value / middle - 1);
}
