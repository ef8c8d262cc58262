import type { ReactNode } from "react";
import type { Node } from "../api/client";

const SIGNS: Record<Node["state"], string> = { idle: "○", busy: "●", offline: "✕", unhealthy: "!" };

/** Offline is not busy, whatever it held. */
export function NodeState({ node }: { node: Pick<Node, "state"> }): ReactNode {
  return (
    <span className={`node ${node.state}`}>
      {SIGNS[node.state]} {node.state}
    </span>
  );
}
