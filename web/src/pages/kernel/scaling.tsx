import { useQueries, useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { Curve, Scaling, Series } from "../../api/client";
import { type Chosen, historyQuery, scalingQuery } from "../../api/queries";
import { type CurveLine, LogChart } from "../../chart/curve";
import { useSearchState } from "../../search";
import { caseName, many, number, oneLine, unitName, words } from "../../text";
import { Files } from "../../ui/files";
import { Loaded } from "../../ui/states";
import { Table } from "../../ui/table";

const EARLIER = 6;
const NONE: readonly Scaling[] = [];

/** Case families over their sizes, beside the baseline. Nothing where the suite has no families. */
export function ScalingSection({ chosen }: { chosen: Chosen }): ReactNode {
  const { project, kernel, deviceClass } = chosen;
  const scaling = useQuery(scalingQuery(project, kernel, deviceClass));
  return (
    <Loaded query={scaling} what="how it scales">
      {(found) => {
        const measured = found.curves.filter((curve) => curve.points.some((point) => point.value !== null));
        return measured.length > 0 ? <Families chosen={chosen} scaling={{ ...found, curves: measured }} /> : null;
      }}
    </Loaded>
  );
}

function Families({ chosen, scaling }: { chosen: Chosen; scaling: Scaling }): ReactNode {
  const [search, change] = useSearchState();
  const opened = search.has("earlier");
  const line = useQuery({ ...historyQuery(chosen), enabled: opened });
  const before = useQueries({
    queries: earlierThan(scaling.revision, line.data).map((revision) => ({
      ...scalingQuery(chosen.project, chosen.kernel, chosen.deviceClass, revision),
      enabled: opened,
    })),
  });
  const earlier = opened ? before.flatMap((one) => (one.data ? [one.data] : [])) : NONE;
  return (
    <section aria-labelledby="scaling">
      <h2 id="scaling">
        Scaling <span className="muted">of {oneLine(scaling.label)}</span>
      </h2>
      <p>
        <button type="button" aria-pressed={opened} onClick={() => change({ earlier: opened ? null : "1" })}>
          beside earlier revisions
        </button>{" "}
        <Files
          project={chosen.project}
          kernel={chosen.kernel}
          path="scaling"
          query={{ device_class: chosen.deviceClass, revision: scaling.revision, metric: scaling.metric }}
        />
      </p>
      {scaling.curves.map((curve) => (
        <Family key={curve.family} scaling={scaling} curve={curve} earlier={earlier} />
      ))}
    </section>
  );
}

/** The newest of the line that were measured before this one. */
function earlierThan(revision: string, line: Series | undefined): string[] {
  const measured = (line?.points ?? []).filter((point) => point.mainline && point.value !== null);
  const place = measured.findIndex((point) => point.revision === revision);
  const before = place < 0 ? measured : measured.slice(0, place);
  return before.slice(-EARLIER).map((point) => point.revision);
}

function Family({
  scaling,
  curve,
  earlier,
}: {
  scaling: Scaling;
  curve: Curve;
  earlier: readonly Scaling[];
}): ReactNode {
  const named = oneLine(curve.family);
  return (
    <section aria-label={`Scaling of ${named}`}>
      <h3>
        {named} <span className="muted">over {curve.axis}</span>
      </h3>
      <div className="charts">
        <LogChart
          label={`${words(scaling.metric)} over ${curve.axis}; the table below says the same`}
          xName={curve.axis}
          yName={unitName(scaling.unit)}
          lines={linesOf(scaling, curve, earlier)}
        />
        <Roofline scaling={scaling} curve={curve} />
      </div>
      <CurveTable scaling={scaling} curve={curve} earlier={earlier} />
    </section>
  );
}

const baselineName = (scaling: Scaling): string => oneLine(scaling.baseline?.split(/[ _]/)[0] ?? "baseline", 14);

const familyOf = (scaling: Scaling, family: string): Curve | undefined =>
  scaling.curves.find((curve) => curve.family === family);

function linesOf(scaling: Scaling, curve: Curve, earlier: readonly Scaling[]): CurveLine[] {
  const values = (of: Curve | undefined) =>
    (of?.points ?? []).flatMap((point) => (point.value === null ? [] : [{ x: point.x, y: point.value }]));
  const beside = curve.points.flatMap((point) => (point.baseline === null ? [] : [{ x: point.x, y: point.baseline }]));
  return [
    { name: baselineName(scaling), kind: "baseline", spots: beside },
    ...earlier.map(
      (one): CurveLine => ({
        name: oneLine(one.label, 12),
        kind: "earlier",
        spots: values(familyOf(one, curve.family)),
      }),
    ),
    { name: oneLine(scaling.label, 12), kind: "head", spots: values(curve) },
  ];
}

/** Throughput over operations per byte, under what the card's memory and its processor can do at most. */
function Roofline({ scaling, curve }: { scaling: Scaling; curve: Curve }): ReactNode {
  const spots = (of: "throughput" | "baseline") =>
    curve.points.flatMap((point) => {
      const [x, y] = [point.flops_per_byte, point[of]];
      return x === null || y === null ? [] : [{ x, y }];
    });
  const own = spots("throughput");
  if (own.length < 2 && !(own.length === 1 && scaling.roofs)) return null;
  const lines: CurveLine[] = [{ name: oneLine(scaling.label, 12), kind: "head", spots: byX(own) }];
  if (scaling.metric === "throughput")
    lines.unshift({ name: baselineName(scaling), kind: "baseline", spots: byX(spots("baseline")) });
  const unit = unitName(scaling.throughput_unit);
  return (
    <LogChart
      label="Throughput over operations per byte, under the card's roofs; the table below says the same"
      xName="operations per byte"
      yName={unit}
      lines={lines}
      roofs={scaling.roofs && { ...scaling.roofs, name: `peak ${number(scaling.roofs.throughput)}` }}
    />
  );
}

function byX<Spot extends { x: number }>(spots: readonly Spot[]): Spot[] {
  return [...spots].sort((one, other) => one.x - other.x);
}

function CurveTable({
  scaling,
  curve,
  earlier,
}: {
  scaling: Scaling;
  curve: Curve;
  earlier: readonly Scaling[];
}): ReactNode {
  const hasRoof = curve.points.some((point) => point.flops_per_byte !== null);
  const unit = unitName(scaling.unit) || words(scaling.metric);
  const before = earlier.map((one) => ({
    label: oneLine(one.label, 24),
    values: new Map(familyOf(one, curve.family)?.points.map((point) => [point.case, point])),
  }));
  const heads = [
    ...before.map((one) => one.label),
    `${oneLine(scaling.label, 24)} (${unit})`,
    ...(scaling.baseline ? ["baseline", "of baseline"] : []),
    ...(hasRoof ? ["operations per byte"] : []),
    ...(hasRoof && scaling.roofs ? ["of the roof"] : []),
  ];
  return (
    <Table
      label={`Scaling of ${oneLine(curve.family)} as a table, ${many(curve.points.length, "case")}`}
      head={
        <>
          <th scope="col">case</th>
          {heads.map((name) => (
            <th key={name} scope="col" className="num">
              {name}
            </th>
          ))}
        </>
      }
    >
      {curve.points.map((point) => (
        <tr key={point.case}>
          <th scope="row">{caseName(point.case)}</th>
          {before.map((one) => {
            const there = one.values.get(point.case);
            return (
              <td key={one.label} className="num">
                {number(there?.value, there?.low, there?.high)}
              </td>
            );
          })}
          <td className="num">{number(point.value, point.low, point.high)}</td>
          {scaling.baseline && <td className="num">{number(point.baseline)}</td>}
          {scaling.baseline && <td className="num">{number(point.over_baseline)}</td>}
          {hasRoof && <td className="num">{number(point.flops_per_byte)}</td>}
          {hasRoof && scaling.roofs && <td className="num">{number(ofRoof(point, scaling.roofs))}</td>}
        </tr>
      ))}
    </Table>
  );
}

function ofRoof(
  point: Curve["points"][number],
  { throughput, per_intensity: slope }: NonNullable<Scaling["roofs"]>,
): number | null {
  if (point.throughput === null || point.flops_per_byte === null) return null;
  return point.throughput / Math.min(throughput, slope * point.flops_per_byte);
}
