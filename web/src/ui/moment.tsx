import type { ReactNode } from "react";
import { ago } from "../text";

export function Moment({ at }: { at: string }): ReactNode {
  return (
    <time dateTime={at} title={at.replace("T", " ").slice(0, 19)}>
      {ago(at)}
    </time>
  );
}
