import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useMemo, useState } from "react";
import { Link, useLocation } from "wouter";
import type { Change, DeviceClass, Kernel, Series } from "../api/client";
import { type Chosen, changesQuery, historyQuery, kernelQuery, overviewQuery } from "../api/queries";
import { HistoryChart } from "../chart/history";
import { marksOf, pointWords } from "../chart/values";
import { toKernel, toProject, toRevision } from "../paths";
import { useSearchState } from "../search";
import { caseName, many, metricName, number, oneLine, ratioWithInterval, unitName } from "../text";
import { Empty, Loaded, useTitle } from "../ui/states";
import { Table } from "../ui/table";
import { JOINS, OutcomeText, VerdictText } from "../ui/verdicts";
import { ScalingSection } from "./scaling";

const RANGES = [20, 50, 200, 1000];
const ALL = 10_000;
const STATICS = new Set(["registers", "stack_bytes", "shared_bytes", "spill_bytes", "code_bytes"]);
const NONE: readonly Change[] = [];
const ROWS = 50;
// Two points a pixel are more than a screen can show.
const POINTS = 1200;

export default function KernelPage({ project, kernel }: { project: string; kernel: string }): ReactNode {
  useTitle(kernel);
  const [search] = useSearchState();
  const found = useQuery(kernelQuery(project, kernel));
  const [deviceClass, caseId, metric] = [search.get("class"), search.get("case"), search.get("metric")];
  // The address says which line it is: that is asked for beside the kernel, not after it.
  useQuery({
    ...historyQuery(
      chosenOf(search, {
        project,
        kernel,
        deviceClass: deviceClass as DeviceClass,
        caseId: caseId ?? "",
        metric: metric ?? "",
      }),
    ),
    enabled: found.data === undefined && deviceClass !== null && caseId !== null && metric !== null,
  });
  return (
    <>
      <p className="crumbs">
        <Link href={toProject(project)}>{project}</Link>
      </p>
      <Loaded query={found} what={kernel}>
        {(known) => <Known kernel={known} />}
      </Loaded>
    </>
  );
}

function Known({ kernel }: { kernel: Kernel }): ReactNode {
  const [search] = useSearchState();
  const named = search.get("class");
  const deviceClass = kernel.device_classes.find((one) => one === named) ?? kernel.device_classes[0];
  // Which case is the class's main one is the overview's to say; it is asked only where the address doesn't.
  const asks = deviceClass !== undefined && !search.has("case");
  const overview = useQuery({ ...overviewQuery(kernel.project), enabled: asks, refetchInterval: false });
  const standing = overview.data?.standings.find(
    (one) => one.kernel === kernel.name && one.device_class === deviceClass,
  );
  const head = (
    <>
      <h1>{kernel.name}</h1>
      {kernel.summary && <p className="muted">{oneLine(kernel.summary)}</p>}
    </>
  );
  if (deviceClass === undefined) {
    return (
      <>
        {head}
        <Empty title="Nothing measured yet">
          <p>Submit its first revision:</p>
          <pre>kernelgate submit kernels/{kernel.name}/… --wait</pre>
        </Empty>
      </>
    );
  }
  if (asks && overview.isPending) return head;
  const caseId = search.get("case") ?? standing?.case ?? kernel.cases[0] ?? "";
  const offered = kernel.metrics.filter((metric) => !metric.startsWith("baseline_"));
  const metric = search.get("metric") ?? standing?.metric ?? offered[0] ?? "time";
  return (
    <>
      {head}
      <Controls kernel={kernel} deviceClass={deviceClass} caseId={caseId} metric={metric} metrics={offered} />
      <History kernel={kernel} deviceClass={deviceClass} caseId={caseId} metric={metric} />
      <ScalingSection project={kernel.project} kernel={kernel.name} deviceClass={deviceClass} />
    </>
  );
}

interface Choice {
  kernel: Kernel;
  deviceClass: DeviceClass;
  caseId: string;
  metric: string;
}

function Controls({
  kernel,
  deviceClass,
  caseId,
  metric,
  metrics,
}: Choice & { metrics: readonly string[] }): ReactNode {
  const [search, change] = useSearchState();
  const cases = kernel.cases.includes(caseId) || caseId === "" ? kernel.cases : [caseId, ...kernel.cases];
  // Machine code is of no case: its metrics are lines of their own.
  const caseOf = (wanted: string) => (STATICS.has(wanted) ? "" : caseId || (kernel.cases[0] ?? ""));
  const toggle = (name: string, label: string) => (
    <button
      type="button"
      aria-pressed={search.has(name)}
      onClick={() => change({ [name]: search.has(name) ? null : "1" })}
    >
      {label}
    </button>
  );
  return (
    <div className="controls">
      <ul className="tabs" aria-label="Device classes">
        {kernel.device_classes.map((one) => (
          <li key={one}>
            <Link
              href={toKernel(kernel.project, kernel.name, { class: one })}
              aria-current={one === deviceClass ? "true" : undefined}
            >
              {one}
            </Link>
          </li>
        ))}
      </ul>
      <label>
        case{" "}
        <select value={caseId} onChange={(event) => change({ class: deviceClass, case: event.target.value, at: null })}>
          {cases.map((one) => (
            <option key={one} value={one}>
              {caseName(one)}
            </option>
          ))}
          <option value="">no case (machine code)</option>
        </select>
      </label>
      <label>
        metric{" "}
        <select
          value={metric}
          onChange={(event) =>
            change({ class: deviceClass, case: caseOf(event.target.value), metric: event.target.value, at: null })
          }
        >
          {[...new Set([metric, ...metrics])].map((one) => (
            <option key={one} value={one}>
              {metricName(one)}
            </option>
          ))}
        </select>
      </label>
      <label>
        range{" "}
        <select value={search.get("range") ?? ""} onChange={(event) => change({ range: event.target.value || null })}>
          <option value="">all</option>
          {RANGES.map((count) => (
            <option key={count} value={count}>
              newest {count}
            </option>
          ))}
        </select>
      </label>
      {toggle("zero", "from zero")}
      {toggle("ratio", "as ratio to baseline")}
      {toggle("mainline", "mainline only")}
    </div>
  );
}

function chosenOf(
  search: URLSearchParams,
  line: Pick<Chosen, "project" | "kernel" | "deviceClass" | "caseId" | "metric">,
): Chosen {
  return { ...line, limit: Number(search.get("range")) || ALL, mainline: search.has("mainline"), points: POINTS };
}

function History({ kernel, deviceClass, caseId, metric }: Choice): ReactNode {
  const [search] = useSearchState();
  const chosen = chosenOf(search, { project: kernel.project, kernel: kernel.name, deviceClass, caseId, metric });
  const history = useQuery({ ...historyQuery(chosen), placeholderData: (before) => before });
  const changes = useQuery(changesQuery(chosen));
  return (
    <Loaded query={history} what="the history">
      {(series) =>
        series.points.some((point) => point.value !== null) ? (
          <Drawn
            series={series}
            changes={changes.data?.changes ?? NONE}
            asRatio={search.has("ratio")}
            zero={search.has("zero")}
          />
        ) : (
          <Empty title="Nothing on this line">
            <p>
              No revision has {metricName(metric)} at {caseId ? caseName(caseId) : "no case"} on {deviceClass}. Choose
              another case or metric, or{" "}
              <Link href={toKernel(kernel.project, kernel.name, { class: deviceClass })}>
                the first line of {deviceClass}
              </Link>
              .
            </p>
          </Empty>
        )
      }
    </Loaded>
  );
}

function Drawn({
  series,
  changes,
  asRatio,
  zero,
}: {
  series: Series;
  changes: readonly Change[];
  asRatio: boolean;
  zero: boolean;
}): ReactNode {
  const [search, change] = useSearchState();
  const [, navigate] = useLocation();
  const [hovered, setHovered] = useState<number | null>(null);
  const { points } = series;
  const marks = useMemo(() => marksOf(series, changes), [series, changes]);
  const kept = points.findIndex((point) => point.revision === search.get("at"));
  const selected = hovered !== null && hovered < points.length ? hovered : kept >= 0 ? kept : null;
  const point = points[selected ?? points.length - 1];
  const canRatio = points.some((one) => one.of_baseline !== null);
  const query = new URLSearchParams({ device_class: series.device_class, case: series.case, metric: series.metric });
  const path = `/api/v1/projects/${encodeURIComponent(series.project)}/kernels/${encodeURIComponent(series.kernel)}`;
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
        base, ▲ faster, ✕ failed, hollow: beside the mainline. <a href={`${path}/history.csv?${query}`}>CSV</a>{" "}
        <a href={`${path}/history?${query}&download=true`}>JSON</a>
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
