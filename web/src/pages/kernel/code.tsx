import { useQueries } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { Series } from "../../api/client";
import { historyQuery } from "../../api/queries";
import { SmallLine } from "../../chart/small";
import { rangeOf, useSearchState } from "../../search";
import { count, metricName, oneLine, unitName } from "../../text";
import { Table } from "../../ui/table";
import type { Choice } from "./controls";

// What explains a time first comes first; what else there is follows by name.
const FIRST = ["registers", "spill_bytes", "shared_bytes", "stack_bytes", "code_bytes"];
// Parts of one of these.
const PARTS = new Set(["spill_store_bytes", "spill_load_bytes", "static_shared_bytes", "dynamic_shared_bytes"]);
const POINTS = 200;
const ROWS = 20;

/** What the machine code says, one small line a metric over the same revisions. Asked for when it is opened. */
export function CodeSection({ kernel, deviceClass }: Choice): ReactNode {
  const [search, change] = useSearchState();
  const opened = search.has("code");
  const known = kernel.static_metrics[deviceClass] ?? [];
  // A metric names its architecture where the code is for another than the class's own.
  const architectures = [...new Set(known.map(architectureOf))];
  const named = search.get("code") ?? "";
  const architecture = architectures.includes(named) ? named : (architectures[0] ?? "");
  const metrics = orderOf(known.filter((one) => architectureOf(one) === architecture));
  const limit = rangeOf(search);
  const found = useQueries({
    queries: metrics.map((metric) => ({
      ...historyQuery({
        project: kernel.project,
        kernel: kernel.name,
        deviceClass,
        caseId: "",
        metric,
        limit,
        mainline: true,
        points: POINTS,
      }),
      enabled: opened,
    })),
  });
  if (metrics.length === 0) return null;
  // A class may have none of a metric, and what is 0 throughout says nothing.
  const shown = found.flatMap((one) => (one.data?.points.some((point) => point.value) ? [one.data] : []));
  const failed = found.find((one) => one.error);
  return (
    <section aria-labelledby="code">
      <details
        open={opened}
        onToggle={(event) => {
          const { open } = event.currentTarget;
          if (open !== opened) change({ code: open ? "1" : null }, false);
        }}
      >
        <summary>
          <h2 id="code">Machine code over the revisions</h2>
        </summary>
        {opened && architectures.length > 1 && (
          <label>
            architecture{" "}
            <select value={architecture} onChange={(event) => change({ code: event.target.value || "1" }, false)}>
              {architectures.map((one) => (
                <option key={one} value={one}>
                  {one || deviceClass}
                </option>
              ))}
            </select>
          </label>
        )}
        {opened && found.some((one) => one.isLoading) && <p className="muted">Loading…</p>}
        {opened && failed?.error && <p className="notice bad">{failed.error.message}</p>}
        {opened && !failed && !found.some((one) => one.isLoading) && shown.length === 0 && (
          <p className="muted">Nothing was said of it on {deviceClass}.</p>
        )}
        {opened && shown.length > 0 && (
          <>
            <div className="multiples">
              {shown.map((series) => (
                <SmallLine key={series.metric} series={series} />
              ))}
            </div>
            <CodeTable lines={shown} />
          </>
        )}
      </details>
    </section>
  );
}

const architectureOf = (metric: string): string => metric.split(".")[1] ?? "";

function orderOf(metrics: readonly string[]): string[] {
  const place = (metric: string) => {
    const found = FIRST.indexOf(metric.split(".")[0] ?? "");
    return found < 0 ? FIRST.length : found;
  };
  return metrics
    .filter((one) => !PARTS.has(one.split(".")[0] ?? ""))
    .sort((one, other) => place(one) - place(other) || one.localeCompare(other));
}

function CodeTable({ lines }: { lines: readonly Series[] }): ReactNode {
  const longest = lines.reduce((one, other) => (other.points.length > one.points.length ? other : one));
  const newest = longest.points.slice(-ROWS).reverse();
  const values = lines.map((line) => new Map(line.points.map((point) => [point.revision, point.value])));
  return (
    <Table
      label="Machine code over the revisions as a table, newest first"
      head={
        <>
          <th scope="col">revision</th>
          {lines.map((line) => (
            <th key={line.metric} scope="col" className="num">
              {metricName(line.metric)} {unitName(line.unit) && `(${unitName(line.unit)})`}
            </th>
          ))}
        </>
      }
    >
      {newest.map((point) => (
        <tr key={point.revision}>
          <th scope="row">{oneLine(point.label)}</th>
          {values.map((of, place) => (
            <td key={lines[place]?.metric} className="num">
              {count(of.get(point.revision))}
            </td>
          ))}
        </tr>
      ))}
    </Table>
  );
}
