import { useInfiniteQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { Compared, Evaluation, Revision } from "../../api/client";
import { revisionsQuery } from "../../api/queries";
import { useSearchState } from "../../search";
import { caseName, number, oneLine, percent, ratioWithInterval, unitName, words } from "../../text";
import { Files } from "../../ui/files";
import { Loaded, More } from "../../ui/states";
import { Table } from "../../ui/table";
import { VerdictText } from "../../ui/verdicts";
import { useCompared } from "./against";
import { Processes } from "./processes";
import { axisOf, metricOf, type Row, rowsOf, unitOf } from "./rows";

const HOW = {
  pairs: "side by side",
  published: "published values",
  separately: "in two evaluations: no verdict",
  none: "not measured",
};

/** Against its base, or against whichever revision `against` names. */
export function CasesSection({ evaluation, revision }: { evaluation: Evaluation; revision: Revision }): ReactNode {
  const { against, query } = useCompared(evaluation, revision);
  return (
    <section aria-labelledby="cases">
      <h2 id="cases">Cases</h2>
      <Against evaluation={evaluation} revision={revision} against={against} />
      {against === null ? (
        <Cases evaluation={evaluation} compared={undefined} />
      ) : (
        <Loaded query={query} what="the comparison">
          {(compared) => <Cases evaluation={evaluation} compared={compared} />}
        </Loaded>
      )}
    </section>
  );
}

/** Any other revision can be the base. The list is asked for when the choice is opened. */
function Against({
  evaluation,
  revision,
  against,
}: {
  evaluation: Evaluation;
  revision: Revision;
  against: string | null;
}): ReactNode {
  const [search, change] = useSearchState();
  const opened = search.has("against");
  const revisions = useInfiniteQuery({ ...revisionsQuery(revision.project, revision.kernel), enabled: opened });
  if (!opened) {
    return (
      <button type="button" onClick={() => change({ against: evaluation.base?.id ?? revision.id }, false)}>
        Compare with another revision
      </button>
    );
  }
  const known = revisions.data ?? [];
  return (
    <label>
      against{" "}
      <select value={against ?? ""} onChange={(event) => change({ against: event.target.value })}>
        {against && !known.some((one) => one.id === against) && (
          <option value={against}>{evaluation.base?.label ?? against}</option>
        )}
        {known.map((one) => (
          <option key={one.id} value={one.id}>
            {oneLine(one.label, 40)} {one.mainline ? "" : "(beside the mainline)"}
          </option>
        ))}
      </select>{" "}
      <More list={revisions}>Older ones too</More>{" "}
      <button type="button" onClick={() => change({ against: null })}>
        {evaluation.base ? "Back to its base" : "Close"}
      </button>
    </label>
  );
}

function Cases({ evaluation, compared }: { evaluation: Evaluation; compared: Compared | undefined }): ReactNode {
  const rows = rowsOf(evaluation, compared);
  const nothing = rows.every((row) => row.compared?.ratio == null && !row.why && Object.keys(row.head).length === 0);
  if (nothing) return <p className="muted">No case was measured.</p>;
  const metric = metricOf(rows);
  const unit = metric ? unitName(unitOf(evaluation, metric)) : "";
  const axis = axisOf(rows);
  const base = compared ? oneLine(compared.base.label, 24) : null;
  const hasBaseline = rows.some((row) => row.ofBaseline !== null);
  const numeric = (name: string) => (
    <th scope="col" className="num">
      {name}
    </th>
  );
  return (
    <>
      <Table
        label="Cases, the slowest first"
        head={
          <>
            <th scope="col">case</th>
            {compared && <th scope="col">verdict</th>}
            {metric && numeric(`${words(metric)}${unit && ` (${unit})`}`)}
            {metric && base && numeric(`of ${base}`)}
            {hasBaseline && numeric("of baseline")}
            {compared && <th scope="col">time ratio</th>}
            {axis && (
              <th scope="col" className="wide">
                <AxisHead axis={axis} />
              </th>
            )}
            {compared && numeric("would have found")}
            {compared && <th scope="col">measured</th>}
          </>
        }
      >
        {rows.map((row) => (
          <CaseRow
            key={row.case}
            row={row}
            metric={metric}
            axis={axis}
            compared={compared !== undefined}
            hasBaseline={hasBaseline}
          />
        ))}
      </Table>
      {compared && (
        <p className="muted">
          Time ratios are head over base: under 1 is faster.{" "}
          <Files
            project={compared.project}
            kernel={compared.kernel}
            path="compare"
            query={{ device_class: compared.device_class, base: compared.base.id, head: compared.head.id }}
          />
        </p>
      )}
      {compared && <Processes rows={rows} base={compared.base.label} head={compared.head.label} />}
    </>
  );
}

function CaseRow({
  row,
  metric,
  axis,
  compared,
  hasBaseline,
}: {
  row: Row;
  metric: string | null;
  axis: [number, number] | null;
  compared: boolean;
  hasBaseline: boolean;
}): ReactNode {
  const found = row.compared;
  return (
    <tr>
      <th scope="row">
        {caseName(row.case)}
        {row.why && <span className="sub">{oneLine(row.why)}</span>}
      </th>
      {compared && (
        <td>
          {found && (
            <VerdictText
              verdict={found.verdict}
              ratio={found.ratio}
              interval={found.interval}
              allowed={found.allowed}
            />
          )}
        </td>
      )}
      {metric && <td className="num">{number(row.head[metric])}</td>}
      {metric && compared && <td className="num">{number(row.base[metric])}</td>}
      {hasBaseline && <td className="num">{number(row.ofBaseline)}</td>}
      {compared && <td className="mono">{found && ratioWithInterval(found.ratio, found.interval)}</td>}
      {axis && (
        <td className="wide">
          <Interval row={row} axis={axis} />
        </td>
      )}
      {compared && <td className="num">{found?.smallest_detectable != null && percent(found.smallest_detectable)}</td>}
      {compared && <td className="muted">{found && HOW[found.measured]}</td>}
    </tr>
  );
}

const WIDTH = 240;
const HEIGHT = 24;
const at = (value: number, [low, high]: [number, number]): number => ((value - low) / (high - low)) * WIDTH;

/** All on one axis; the line stands at 1, where nothing changed. The figures are in the column before it. */
function Interval({ row, axis }: { row: Row; axis: [number, number] }): ReactNode {
  const { ratio, interval, verdict } = row.compared ?? {};
  const one = at(1, axis);
  const [low, high] = interval ?? [];
  return (
    <svg
      className={`interval ${verdict ?? "none"}`}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      width={WIDTH}
      height={HEIGHT}
      aria-hidden="true"
    >
      <line className="one" x1={one} x2={one} y1="0" y2={HEIGHT} />
      {low !== undefined && high !== undefined && (
        <line className="span" x1={at(low, axis)} x2={at(high, axis)} y1={HEIGHT / 2} y2={HEIGHT / 2} />
      )}
      {ratio != null && <circle cx={at(ratio, axis)} cy={HEIGHT / 2} r="3.5" />}
    </svg>
  );
}

function AxisHead({ axis }: { axis: [number, number] }): ReactNode {
  const [low, high] = axis;
  const one = at(1, axis);
  return (
    <svg
      className="interval"
      viewBox={`0 0 ${WIDTH} 16`}
      width={WIDTH}
      height="16"
      role="img"
      aria-label="the interval, drawn"
    >
      {one > 56 && (
        <text x="0" y="12">
          {low.toPrecision(2)}
        </text>
      )}
      <text x={Math.min(Math.max(one, 4), WIDTH - 4)} y="12" textAnchor="middle">
        1
      </text>
      {one < WIDTH - 56 && (
        <text x={WIDTH} y="12" textAnchor="end">
          {high.toPrecision(3)}
        </text>
      )}
    </svg>
  );
}
