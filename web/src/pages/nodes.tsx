import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { nodesQuery } from "../api/queries";
import { oneLine } from "../text";
import { Moment } from "../ui/moment";
import { Empty, Loaded, useTitle } from "../ui/states";
import { Table } from "../ui/table";
import { NodeState } from "./overview";

export default function NodesPage(): ReactNode {
  useTitle("Nodes");
  const nodes = useQuery(nodesQuery);
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
            <Table
              label="Nodes"
              head={["node", "state", "class", "device", "driver", "host", "doing", "last heard of"].map((name) => (
                <th key={name} scope="col">
                  {name}
                </th>
              ))}
            >
              {found.map((node) => (
                <tr key={node.name}>
                  <th scope="row">{oneLine(node.name)}</th>
                  <td>
                    <NodeState node={node} />
                  </td>
                  <td>{node.device_class}</td>
                  <td>{oneLine(node.device)}</td>
                  <td>{node.driver ? oneLine(node.driver) : <span className="muted">none</span>}</td>
                  <td>{oneLine(node.host)}</td>
                  <td>
                    {node.evaluation && node.state === "busy" ? (
                      <Link href={`/evaluations/${node.evaluation}`}>an evaluation</Link>
                    ) : (
                      oneLine(node.problem ?? "")
                    )}
                  </td>
                  <td>
                    <Moment at={node.last_seen_at} />
                  </td>
                </tr>
              ))}
            </Table>
          )
        }
      </Loaded>
    </>
  );
}
