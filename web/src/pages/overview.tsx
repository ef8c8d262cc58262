import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link } from "wouter";
import type { Overview, Standing } from "../api/client";
import { overviewQuery } from "../api/queries";
import { toKernel, toRevision } from "../paths";
import { caseName, clean, many, metricName, number, oneLine, unitName, withCaseNames } from "../text";
import { Moment } from "../ui/moment";
import { NodeState } from "../ui/node";
import { Sparkline } from "../ui/sparkline";
import { Empty, Loaded, useTitle } from "../ui/states";
import { Table } from "../ui/table";
import { JOINS, OutcomeText, SIGNS, VerdictText, verdictWords } from "../ui/verdicts";

const SHARE_PX = 64;

export function OverviewPage({ project }: { project: string }): ReactNode {
  useTitle(project);
  const overview = useQuery(overviewQuery(project));
  return (
    <Loaded query={overview} what="the overview">
      {(found) => (
        <>
          <h1>{project}</h1>
          <Glance overview={found} />
          <Bad standings={found.standings.filter((one) => one.bad)} project={project} />
          <Standings overview={found} />
        </>
      )}
    </Loaded>
  );
}

/** Nodes and queues in one quiet line each. Offline is not busy. */
function Glance({ overview }: { overview: Overview }): ReactNode {
  const queued = overview.queues.filter((queue) => queue.queued || queue.running);
  return (
    <ul className="glance" aria-label="Nodes and queues">
      {overview.nodes.map((node) => (
        <li key={node.name}>
          <NodeState node={node} /> <Link href="/nodes">{oneLine(node.name, 40)}</Link>{" "}
          <span className="muted">{node.device_class}</span>
        </li>
      ))}
      {overview.nodes.length === 0 && <li className="muted">no node has been seen yet</li>}
      {queued.map((queue) => (
        <li key={queue.device_class} className="queue">
          queue {queue.device_class}: {queue.queued} waiting, {queue.running} running
          {queue.oldest_queued_at && (
            <span className="muted">
              {" "}
              (oldest <Moment at={queue.oldest_queued_at} />)
            </span>
          )}
        </li>
      ))}
      {queued.length === 0 && <li className="muted queue">nothing is queued</li>}
    </ul>
  );
}

function Bad({ standings, project }: { standings: readonly Standing[]; project: string }): ReactNode {
  if (standings.length === 0) return null;
  return (
    <section aria-labelledby="bad">
      <h2 id="bad">New and bad</h2>
      <ul className="bad-list">
        {standings.map((one) => (
          <li key={`${one.kernel} ${one.device_class}`}>
            <Link href={toRevision(one.revision, one.evaluation)}>
              {one.kernel} {oneLine(one.label)}
            </Link>{" "}
            on {one.device_class}: <BadWords standing={one} />{" "}
            <Link
              href={toKernel(project, one.kernel, { class: one.device_class, case: one.worst_case ?? one.case })}
              className="muted"
            >
              history
            </Link>
          </li>
        ))}
      </ul>
    </section>
  );
}

function BadWords({ standing }: { standing: Standing }): ReactNode {
  if (standing.outcome !== "slower" || standing.worst_ratio == null) {
    const said = withCaseNames(oneLine(clean(standing.sentence ?? ""), 240));
    return (
      <>
        <OutcomeText outcome={standing.outcome} /> <span>{said}</span>
      </>
    );
  }
  return (
    <>
      <span className="sign-slower">
        {SIGNS.slower} {verdictWords("slower", standing.worst_ratio, standing.worst_interval)}
      </span>{" "}
      than {oneLine(standing.base ?? "its base")} at {caseName(standing.worst_case ?? "")}
    </>
  );
}

function Standings({ overview }: { overview: Overview }): ReactNode {
  const rows = [...overview.standings].sort(
    (one, other) => one.kernel.localeCompare(other.kernel) || one.device_class.localeCompare(other.device_class),
  );
  if (rows.length === 0 && overview.without_results.length === 0) {
    return (
      <Empty title="No kernel yet">
        <p>Submit a first one; it is built, verified, measured and shown here:</p>
        <pre>kernelgate submit kernels/sgemm_cpu/v1_blocked --wait</pre>
        <p>Or bring a history that was measured elsewhere:</p>
        <pre>kernelgate import history.csv --provenance "who measured it, where and how"</pre>
      </Empty>
    );
  }
  return (
    <section aria-labelledby="kernels">
      <h2 id="kernels">Kernels</h2>
      {rows.length > 0 && (
        <Table
          label="Kernels by device class"
          head={
            <>
              <th scope="col">kernel</th>
              <th scope="col" className="wide">
                class
              </th>
              <th scope="col" className="wide">
                newest
              </th>
              <th scope="col">against its base</th>
              <th scope="col" className="num">
                value
              </th>
              <th scope="col">unit</th>
              <th scope="col" className="num">
                of baseline
              </th>
              <th scope="col" className="wide">
                trend
              </th>
              <th scope="col">correct</th>
              <th scope="col" className="wide">
                measured
              </th>
            </>
          }
        >
          {rows.map((one) => (
            <Row key={`${one.kernel} ${one.device_class}`} standing={one} project={overview.project} />
          ))}
        </Table>
      )}
      {overview.without_results.length > 0 && (
        <p className="muted">
          {many(overview.without_results.length, "kernel")} without a result yet:{" "}
          {overview.without_results.map((name, place) => (
            <span key={name}>
              {place > 0 && ", "}
              <Link href={toKernel(overview.project, name)}>{name}</Link>
            </span>
          ))}
        </p>
      )}
    </section>
  );
}

function Row({ standing: one, project }: { standing: Standing; project: string }): ReactNode {
  const href = toKernel(project, one.kernel, { class: one.device_class, case: one.case, metric: one.metric });
  const overBaseline = one.metric === "throughput_over_baseline";
  return (
    <tr>
      <th scope="row">
        <Link href={href}>{one.kernel}</Link>
        {one.case && <span className="sub wide">{caseName(one.case)}</span>}
        <span className="sub narrow">
          {one.device_class}, {oneLine(one.label, 24)}
        </span>
      </th>
      <td className="wide">{one.device_class}</td>
      <td className="wide">
        <Link href={toRevision(one.revision, one.evaluation)}>{oneLine(one.label)}</Link>{" "}
        {one.commit && <code className="muted">{one.commit.slice(0, 9)}</code>}
      </td>
      <td>
        {one.verdict ? (
          <>
            <VerdictText verdict={one.verdict} ratio={one.worst_ratio} interval={one.worst_interval} />
            {one.base && (
              <span className="muted">
                {" "}
                {JOINS[one.verdict]} {oneLine(one.base)}
              </span>
            )}
          </>
        ) : (
          <OutcomeText outcome={one.outcome} />
        )}
      </td>
      <td className="num">{overBaseline ? "" : number(one.value, one.low, one.high)}</td>
      <td className="muted">{overBaseline || !one.metric ? "" : unitName(one.unit) || metricName(one.metric)}</td>
      <td className="num" title={one.baseline ? oneLine(one.baseline) : undefined}>
        {number(one.over_baseline)}
        <Share value={one.over_baseline} />
      </td>
      <td className="wide">
        <Sparkline values={one.sparkline} />
      </td>
      <td>
        {one.correct === null ? <span className="muted">not verified</span> : one.correct ? "✓ right" : "✕ wrong"}
      </td>
      <td className="wide muted">
        <Moment at={one.at} />
      </td>
    </tr>
  );
}

/** The share as a bar; the line at its end is the baseline. The figure stands above it. */
function Share({ value }: { value: number | null }): ReactNode {
  if (value === null) return null;
  const width = Math.min(value, 1.25) * SHARE_PX;
  return (
    <svg className="share" viewBox={`0 0 ${1.25 * SHARE_PX} 6`} width={1.25 * SHARE_PX} height="6" aria-hidden="true">
      <rect className="of" width={width} y="1" height="4" />
      <rect className="one" x={SHARE_PX} width="1" height="6" />
    </svg>
  );
}
