import type { ReactNode } from "react";
import { apiOf } from "../paths";

/** What a chart shows, to keep. */
export function Files({
  project,
  kernel,
  path,
  query,
}: {
  project: string;
  kernel: string;
  path: "history" | "scaling" | "compare";
  query: Record<string, string>;
}): ReactNode {
  const at = `${apiOf(project, kernel)}/${path}`;
  const asked = new URLSearchParams(query);
  return (
    <span className="files">
      <a href={`${at}.csv?${asked}`}>CSV</a> <a href={`${at}?${asked}&download=true`}>JSON</a>
    </span>
  );
}
