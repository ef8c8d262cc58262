import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { Curve, DeviceClass, Scaling } from "../../api/client";
import { scalingQuery } from "../../api/queries";
import { type CurveLine, LogChart } from "../../chart/curve";
import { caseName, number, oneLine, unitName, words } from "../../text";
import { Loaded } from "../../ui/states";
import { Table } from "../../ui/table";

/** Case families over their sizes, beside the baseline. Nothing where the suite has no families. */
export function ScalingSection(props: { project: string; kernel: string; deviceClass: DeviceClass }): ReactNode {
  const scaling = useQuery(scalingQuery(props.project, props.kernel, props.deviceClass));
  return (
    <Loaded query={scaling} what="how it scales">
      {(found) =>
        found.curves.map((curve) => (
          <section key={curve.family} aria-label={`Scaling of ${curve.family}`}>
            <h2>
              Scaling: {oneLine(curve.family)}{" "}
              <span className="muted">
                {oneLine(found.label)} over {curve.axis}
              </span>
            </h2>
            <div className="pair">
              <Charts scaling={found} curve={curve} />
              <CurveTable scaling={found} curve={curve} />
            </div>
          </section>
        ))
      }
    </Loaded>
  );
}

function Charts({ scaling, curve }: { scaling: Scaling; curve: Curve }): ReactNode {
  const unit = unitName(scaling.unit);
  const spots = curve.points.flatMap((point) => (point.value === null ? [] : [{ x: point.x, y: point.value }]));
  const beside = curve.points.flatMap((point) => (point.baseline === null ? [] : [{ x: point.x, y: point.baseline }]));
  const lines: CurveLine[] = [{ name: oneLine(scaling.label, 14), kind: "head", spots }];
  const baseline = oneLine(scaling.baseline?.split(/[ _]/)[0] ?? "baseline", 14);
  if (beside.length)
    lines.push({
      name: baseline,
      kind: "baseline",
      spots: beside,
    });
  const roof = curve.points.flatMap((point) =>
    point.flops_per_byte === null || point.throughput === null
      ? []
      : [{ x: point.flops_per_byte, y: point.throughput }],
  );
  const roofs: CurveLine[] = [{ name: oneLine(scaling.label, 14), kind: "head", spots: roof }];
  if (scaling.metric === "throughput") {
    const other = curve.points.flatMap((point) =>
      point.flops_per_byte === null || point.baseline === null ? [] : [{ x: point.flops_per_byte, y: point.baseline }],
    );
    roofs.push({ name: baseline, kind: "baseline", spots: other });
  }
  return (
    <div>
      <LogChart
        label={`${words(scaling.metric)} over ${curve.axis}; the table beside it says the same`}
        xName={curve.axis}
        yName={unit}
        lines={lines}
      />
      {roof.length > 1 && (
        <LogChart
          label="Throughput over operations per byte; the table beside it says the same"
          xName="operations per byte"
          yName={unitName(scaling.throughput_unit)}
          lines={roofs}
        />
      )}
    </div>
  );
}

function CurveTable({ scaling, curve }: { scaling: Scaling; curve: Curve }): ReactNode {
  const hasRoof = curve.points.some((point) => point.flops_per_byte !== null);
  const unit = unitName(scaling.unit) || words(scaling.metric);
  const heads = [unit, ...(scaling.baseline ? [`baseline`, "of baseline"] : []), ...(hasRoof ? ["ops per byte"] : [])];
  return (
    <Table
      label={`Scaling of ${curve.family} as a table`}
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
          <td className="num">{number(point.value, point.low, point.high)}</td>
          {scaling.baseline && <td className="num">{number(point.baseline)}</td>}
          {scaling.baseline && <td className="num">{number(point.over_baseline)}</td>}
          {hasRoof && <td className="num">{number(point.flops_per_byte)}</td>}
        </tr>
      ))}
    </Table>
  );
}
