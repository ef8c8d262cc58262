import type { Change, Point, Series } from "../api/client";
import { number, oneLine, ratioInWords, ratioWithInterval, unitName, words } from "../text";
import { JOINS, SIGNS, verdictWords } from "../ui/verdicts";

export interface Shown {
  value: number | null;
  low: number | null;
  high: number | null;
}

/** A point's value as drawn: as measured, or as a share of the baseline's (more is faster). */
export function shownOf(series: Series, point: Point, asRatio: boolean): Shown {
  const { value, low, high, of_baseline: share } = point;
  if (!asRatio) return { value, low, high };
  if (value == null || share == null) return { value: null, low: null, high: null };
  if (series.better === "lower") {
    const baseline = value * share;
    return { value: share, low: high ? baseline / high : null, high: low ? baseline / low : null };
  }
  const baseline = value / share;
  return { value: share, low: low == null ? null : low / baseline, high: high == null ? null : high / baseline };
}

/** The baseline's value on the drawn axis. */
export function baselineOf(series: Series, asRatio: boolean): number | null {
  if (series.baseline_value == null) return null;
  return asRatio ? 1 : series.baseline_value;
}

export interface Mark {
  place: number;
  kind: "step" | "segment";
  text: string;
  /** What stands beside the mark where there is room. */
  short: string;
}

/** Steps and new segments of the line, where they stand on its axis; a lone outlier is only a point. */
export function marksOf(series: Series, changes: readonly Change[]): Mark[] {
  const places = new Map(series.points.map((point) => [point.revision, point.place]));
  const marks = changes.flatMap((change): Mark[] => {
    const place = places.get(change.revision.id);
    if (place === undefined || change.kind === "outlier") return [];
    return [{ place, kind: change.kind, text: changeWords(change), short: shortWords(change) }];
  });
  return marks.sort((one, other) => one.place - other.place);
}

/** `4.5 % slower`, `driver 580 → 585`. */
function shortWords(change: Change): string {
  if (change.kind !== "segment") return ratioInWords(change.ratio, change.interval);
  return oneLine(changedWords(change) || "other circumstances", 40);
}

const changedWords = (change: Change): string =>
  Object.entries(change.changed)
    .map(([name, [was, is]]) => `${words(name)} ${was} → ${is}`)
    .join(", ");

/** `step: 4.5 % slower from V32 on`, `new segment: driver 580 → 585`. */
export function changeWords(change: Change): string {
  const from = `from ${oneLine(change.revision.label)} on`;
  if (change.kind === "segment") {
    return oneLine(`new segment ${from}: ${changedWords(change) || "other circumstances"}`);
  }
  return oneLine(
    `${change.kind} ${from}: ${ratioInWords(change.ratio, change.interval)}${change.note ? ` (${change.note})` : ""}`,
  );
}

/** What is under the cursor, in one line: what is read aloud, too. */
export function pointWords(series: Series, point: Point): string {
  const parts = [point.mainline ? oneLine(point.label) : `${oneLine(point.label)} (beside the mainline)`];
  if (point.commit) parts.push(point.commit.slice(0, 9));
  if (point.value == null) parts.push(point.outcome ? words(point.outcome) : "not measured");
  else {
    const places = [number(point.low, point.low, point.high), number(point.high, point.low, point.high)];
    const interval = point.low != null && point.high != null ? ` [${places.join(", ")}]` : "";
    parts.push(`${number(point.value, point.low, point.high)}${interval} ${unitName(series.unit)}`.trim());
  }
  if (point.of_baseline != null && series.metric !== "throughput_over_baseline") {
    parts.push(`${number(point.of_baseline)} of the baseline`);
  }
  if (point.verdict && point.base) {
    const moved = verdictWords(point.verdict, point.ratio, point.interval);
    const ratio = point.ratio == null ? "" : ` (time ratio ${ratioWithInterval(point.ratio, point.interval)})`;
    parts.push(`${SIGNS[point.verdict]} ${moved} ${JOINS[point.verdict]} ${oneLine(point.base)}${ratio}`);
  }
  if (point.summary) parts.push(oneLine(point.summary));
  return parts.join(" · ");
}
