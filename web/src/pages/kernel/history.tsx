import { type ReactNode, useMemo, useState } from "react";
import { Link, useLocation } from "wouter";
import type { Change, Series } from "../../api/client";
import { HistoryChart } from "../../chart/history";
import { marksOf, pointWords } from "../../chart/values";
import { toBadge, toRevision } from "../../paths";
import { useSearchState } from "../../search";
import { many, metricName, number, oneLine, ratioWithInterval, unitName } from "../../text";
import { Files } from "../../ui/files";
import { Table } from "../../ui/table";
import { JOINS, OutcomeText, VerdictText } from "../../ui/verdicts";

const NONE: readonly Change[] = [];
const ROWS = 50;

export function Drawn({
  series,
  changes,
  asRatio,
  zero,
}: {
  series: Series;
  changes: readonly Change[] | undefined;
  asRatio: boolean;
  zero: boolean;
}): ReactNode {
  const [search, change] = useSearchState();
  const [, navigate] = useLocation();
  const [hovered, setHovered] = useState<number | null>(null);
  const { points } = series;
  const marks = useMemo(() => marksOf(series, changes ?? NONE), [series, changes]);
  const kept = points.findIndex((point) => point.revision === search.get("at"));
  const selected = hovered !== null && hovered < points.length ? hovered : kept >= 0 ? kept : null;
  const point = points[selected ?? points.length - 1];
  const canRatio = points.some((one) => one.of_baseline !== null);
  return (
    <section aria-labelledby="history">
      <h2 id="history">
        {metricName(series.metric)}{" "}
        {asRatio && canRatio ? (
          <span className="muted">(speed over the baseline's)</span>
        ) : (
          unitName(series.unit) && <span className="muted">({unitName(series.unit)})</span>
        )}
        {series.better && !(asRatio && canRatio) && <span className="muted sub">{series.better} is better</span>}
      </h2>
      {asRatio && !canRatio && <p className="notice">There is no baseline on this line: it is shown as measured.</p>}
      <HistoryChart
        series={series}
        marks={marks}
        asRatio={asRatio && canRatio}
        zero={zero}
        selected={selected}
        onSelect={(index, settled) => {
          setHovered(index);
          const revision = points[index]?.revision;
          if (settled && revision) change({ at: revision }, false);
        }}
        onOpen={(opened) => navigate(toRevision(opened.revision, opened.evaluation))}
      />
      {point && (
        <p className="readout" aria-live="polite">
          <Link href={toRevision(point.revision, point.evaluation)}>{pointWords(series, point)}</Link>
        </p>
      )}
      {marks.length > 0 && (
        <ul aria-label="Changes of level">
          {marks.map((mark) => (
            <li key={`${mark.place} ${mark.kind}`}>{mark.text}</li>
          ))}
        </ul>
      )}
      <p className="muted">
        {many(series.total, "revision")}
        {series.total > points.length && `, thinned to ${points.length}: extremes and failures stay`}. ▼ slower than its
        base, ▲ faster, ✕ failed, hollow: beside the mainline.{" "}
        <Files
          project={series.project}
          kernel={series.kernel}
          path="history"
          query={{ device_class: series.device_class, case: series.case, metric: series.metric }}
        />{" "}
        <a href={toBadge(series.project, series.kernel, series.device_class)}>badge</a>
      </p>
      <HistoryTable series={series} current={point?.revision} />
    </section>
  );
}

function HistoryTable({ series, current }: { series: Series; current: string | undefined }): ReactNode {
  const [all, setAll] = useState(false);
  const newestFirst = [...series.points].reverse();
  const rows = all ? newestFirst : newestFirst.slice(0, ROWS);
  const unit = unitName(series.unit);
  const isShare = series.metric === "throughput_over_baseline";
  return (
    <>
      <Table
        label="The same as a table, newest first"
        head={
          <>
            <th scope="col">revision</th>
            <th scope="col" className="wide">
              commit
            </th>
            <th scope="col" className="num">
              {unit || metricName(series.metric)}
            </th>
            {!isShare && (
              <th scope="col" className="num">
                of baseline
              </th>
            )}
            <th scope="col">verdict</th>
            <th scope="col">time ratio</th>
            <th scope="col">outcome</th>
            <th scope="col">summary</th>
          </>
        }
      >
        {rows.map((point) => (
          <tr
            key={`${point.revision} ${point.evaluation}`}
            aria-current={point.revision === current ? "true" : undefined}
          >
            <th scope="row">
              <Link href={toRevision(point.revision, point.evaluation)}>{oneLine(point.label)}</Link>
              {!point.mainline && <span className="sub">beside the mainline</span>}
            </th>
            <td className="mono wide">{point.commit?.slice(0, 9)}</td>
            <td className="num">{number(point.value, point.low, point.high)}</td>
            {!isShare && <td className="num">{number(point.of_baseline)}</td>}
            <td>
              <VerdictText verdict={point.verdict} ratio={point.ratio} interval={point.interval} />
              {point.verdict && point.base && (
                <span className="muted">
                  {" "}
                  {JOINS[point.verdict]} {oneLine(point.base)}
                </span>
              )}
            </td>
            <td className="mono">{ratioWithInterval(point.ratio, point.interval)}</td>
            <td>
              <OutcomeText outcome={point.outcome} />
            </td>
            <td className="text">{oneLine(point.summary)}</td>
          </tr>
        ))}
      </Table>
      {rows.length < newestFirst.length && (
        <button type="button" onClick={() => setAll(true)}>
          Show all {newestFirst.length} rows
        </button>
      )}
    </>
  );
}
