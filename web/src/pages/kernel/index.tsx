import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link } from "wouter";
import type { DeviceClass, Kernel } from "../../api/client";
import { type Chosen, changesQuery, historyQuery, kernelQuery } from "../../api/queries";
import { toKernel, toProject } from "../../paths";
import { rangeOf, useSearchState } from "../../search";
import { caseName, metricName, oneLine } from "../../text";
import { Empty, Loaded, useTitle } from "../../ui/states";
import { CodeSection } from "./code";
import { type Choice, Controls } from "./controls";
import { Drawn } from "./history";
import { ScalingSection } from "./scaling";

// About as many as a screen has columns for, and more where something failed or moved.
const POINTS = 800;

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
  // By default where something was measured.
  const deviceClass =
    kernel.device_classes.find((one) => one === named) ??
    kernel.device_classes.find((one) => kernel.headlines.some((headline) => headline.device_class === one)) ??
    kernel.device_classes[0];
  const head = (
    <>
      <h1>{kernel.name}</h1>
      {kernel.summary && <p className="lead">{oneLine(kernel.summary)}</p>}
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
  const headline = kernel.headlines.find((one) => one.device_class === deviceClass);
  const choice: Choice = {
    kernel,
    deviceClass,
    caseId: search.get("case") ?? headline?.case ?? kernel.cases[0] ?? "",
    metric: search.get("metric") ?? headline?.metric ?? kernel.metrics[0] ?? "time",
  };
  const { caseId, metric } = choice;
  const chosen = chosenOf(search, { project: kernel.project, kernel: kernel.name, deviceClass, caseId, metric });
  return (
    <>
      {head}
      <Controls {...choice} />
      <History {...choice} chosen={chosen} />
      <ScalingSection chosen={chosen} />
      <CodeSection {...choice} />
    </>
  );
}

function chosenOf(
  search: URLSearchParams,
  line: Pick<Chosen, "project" | "kernel" | "deviceClass" | "caseId" | "metric">,
): Chosen {
  return { ...line, limit: rangeOf(search), mainline: search.has("mainline"), points: POINTS };
}

function History({ kernel, deviceClass, caseId, metric, chosen }: Choice & { chosen: Chosen }): ReactNode {
  const [search] = useSearchState();
  const history = useQuery({ ...historyQuery(chosen), placeholderData: (before) => before });
  const changes = useQuery(changesQuery(chosen));
  return (
    <Loaded query={history} what="the history">
      {(series) =>
        series.points.some((point) => point.value !== null) ? (
          <Drawn
            series={series}
            changes={changes.data?.changes}
            asRatio={search.has("ratio")}
            zero={search.has("zero")}
          />
        ) : (
          <Empty title="Nothing on this line">
            <p>
              No revision has {metricName(metric)} at {caseId ? caseName(caseId) : "no case"} on {deviceClass}.
              {kernel.headlines.some((one) => one.device_class === deviceClass) ? (
                <>
                  {" "}
                  Choose another case or metric, or{" "}
                  <Link href={toKernel(kernel.project, kernel.name, { class: deviceClass })}>
                    the first line of {deviceClass}
                  </Link>
                  .
                </>
              ) : (
                " Nothing was measured there yet."
              )}
            </p>
          </Empty>
        )
      }
    </Loaded>
  );
}
