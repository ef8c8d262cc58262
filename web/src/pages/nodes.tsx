import { useInfiniteQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link } from "wouter";
import type { NodeDetail } from "../api/client";
import { nodesQuery } from "../api/queries";
import { duration, figureName, oneLine, percent, secondsBetween } from "../text";
import { Moment } from "../ui/moment";
import { NodeState } from "../ui/node";
import { Empty, Loaded, More, useTitle } from "../ui/states";
import { Table } from "../ui/table";

export default function NodesPage(): ReactNode {
  useTitle("Nodes");
  const nodes = useInfiniteQuery(nodesQuery);
  return (
    <>
      <h1>Nodes</h1>
      <Loaded query={nodes} what="nodes">
        {(found) =>
          found.length === 0 ? (
            <Empty title="No node yet">
              <p>A node says by itself that it is there. On the machine with the card:</p>
              <pre>kernelgate doctor{"\n"}kernelgate worker</pre>
            </Empty>
          ) : (
            <>
              <Nodes nodes={found} />
              <More list={nodes}>More nodes</More>
              <Outages nodes={found} />
            </>
          )
        }
      </Loaded>
    </>
  );
}

function Nodes({ nodes }: { nodes: readonly NodeDetail[] }): ReactNode {
  return (
    <Table
      label="Nodes"
      head={
        <>
          {["node", "state", "doing", "device", "clocks"].map((name) => (
            <th key={name} scope="col">
              {name}
            </th>
          ))}
          <th scope="col" className="num">
            spread of processes
          </th>
          <th scope="col">last heard of</th>
        </>
      }
    >
      {nodes.map((node) => (
        <tr key={node.name}>
          <th scope="row">
            {oneLine(node.name)}
            <span className="sub">{oneLine(node.host)}</span>
          </th>
          <td>
            <NodeState node={node} />
            {!node.sandbox && <span className="sub">no sandbox</span>}
          </td>
          <td className="text">
            <Doing node={node} />
          </td>
          <td>
            {oneLine(node.device)}
            <span className="sub">
              {node.device_class}
              {node.driver && `, driver ${oneLine(node.driver)}`}
            </span>
          </td>
          <td className="text">
            <Clocks node={node} />
          </td>
          <td className="num">
            {node.spread != null && percent(node.spread)}
            {node.spread_floor != null && <span className="sub">at least {percent(node.spread_floor)} assumed</span>}
            {node.learnt.length > 0 && (
              <span className="sub" title={node.learnt.map(spreadInWords).join("\n")}>
                {node.learnt.length} measured while idle
              </span>
            )}
          </td>
          <td>
            <Moment at={node.last_seen_at} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

function Doing({ node }: { node: NodeDetail }): ReactNode {
  const { work } = node;
  if (node.problem && node.state !== "offline") return oneLine(node.problem, 300);
  if (node.state !== "busy") return null;
  if (!work) return "another project's revision";
  return (
    <Link href={`/evaluations/${work.evaluation}`}>
      {work.kernel} {oneLine(work.label)}
    </Link>
  );
}

/** As they were around the newest evaluation: what isn't known or is empty is left out. */
function Clocks({ node }: { node: NodeDetail }): ReactNode {
  const known = Object.entries(node.clocks).filter(([, value]) => value !== "");
  if (known.length === 0) return <span className="muted">not known</span>;
  return (
    <>
      {known
        .map(([name, value]) => {
          const [title, unit] = figureName(name);
          const said = typeof value === "number" ? Number(value.toPrecision(4)) : oneLine(String(value), 60);
          return `${title} ${said} ${unit}`.trim();
        })
        .join(", ")}
      {node.measured_at && (
        <span className="sub">
          <Moment at={node.measured_at} />
        </span>
      )}
    </>
  );
}

function Outages({ nodes }: { nodes: readonly NodeDetail[] }): ReactNode {
  const all = nodes
    .flatMap((node) => node.outages.map((outage) => ({ node: node.name, ...outage })))
    .sort((one, other) => other.began_at.localeCompare(one.began_at));
  return (
    <section aria-labelledby="outages">
      <h2 id="outages">Outages</h2>
      {all.length === 0 ? (
        <p className="muted">None is known: every node was well whenever it should have been heard.</p>
      ) : (
        <Table
          label="Outages, the newest first"
          head={["node", "began", "lasted", "why"].map((name) => (
            <th key={name} scope="col">
              {name}
            </th>
          ))}
        >
          {all.map((outage) => (
            <tr key={`${outage.node} ${outage.began_at}`}>
              <th scope="row">{oneLine(outage.node)}</th>
              <td>
                <Moment at={outage.began_at} />
              </td>
              <td>
                {outage.ended_at ? (
                  duration(secondsBetween(outage.began_at, outage.ended_at))
                ) : (
                  <span className="wrong">✕ lasts</span>
                )}
              </td>
              <td className="text">{oneLine(outage.why, 500)}</td>
            </tr>
          ))}
        </Table>
      )}
    </section>
  );
}

function spreadInWords(spread: NodeDetail["learnt"][number]) {
  const capped = spread.capped ? ", power capped" : "";
  return `${spread.kernel} ${spread.case}: ${percent(spread.sd)} apart in ${spread.pairs} pairs${capped}`;
}
