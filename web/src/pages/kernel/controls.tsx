import type { ReactNode } from "react";
import { Link } from "wouter";
import type { DeviceClass, Kernel } from "../../api/client";
import { toKernel } from "../../paths";
import { useSearchState } from "../../search";
import { caseName, metricName } from "../../text";

const RANGES = [20, 50, 200, 1000];

export interface Choice {
  kernel: Kernel;
  deviceClass: DeviceClass;
  caseId: string;
  metric: string;
}

export function Controls({ kernel, deviceClass, caseId, metric }: Choice): ReactNode {
  const [search, change] = useSearchState();
  const cases = kernel.cases.includes(caseId) || caseId === "" ? kernel.cases : [caseId, ...kernel.cases];
  // Machine code is of no case: its metrics are lines of their own.
  const ofCode = new Set(Object.values(kernel.static_metrics).flat());
  const caseOf = (wanted: string) => (ofCode.has(wanted) ? "" : caseId || (kernel.cases[0] ?? ""));
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
          {[...new Set([metric, ...kernel.metrics])].map((one) => (
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
      {toggle("ratio", "of baseline")}
      {toggle("mainline", "mainline")}
    </div>
  );
}
