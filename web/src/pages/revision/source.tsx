import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import type { Evaluation, Revision } from "../../api/client";
import { filesQuery, logQuery } from "../../api/queries";
import { clean } from "../../text";
import { Loaded } from "../../ui/states";
import { messagesOf } from "./messages";

/** The bundle's text with what the compiler said, under the lines it said it of. Asked for when it is opened. */
export function SourceSection({ revision, evaluation }: { revision: Revision; evaluation: Evaluation }): ReactNode {
  const broken = evaluation.outcome === "build_failed";
  const [opened, setOpened] = useState(broken);
  const files = useQuery({ ...filesQuery(revision.id), enabled: opened });
  const log = useQuery({ ...logQuery(evaluation.id), enabled: opened && evaluation.finished_at !== null });
  return (
    <details open={opened} onToggle={(event) => setOpened(event.currentTarget.open)}>
      <summary>Source</summary>
      {opened && (
        <Loaded query={files} what="the source">
          {(found) => {
            const paths = Object.keys(found.files).sort();
            const said = messagesOf(clean(`${log.data ?? ""}\n${evaluation.message ?? ""}`), paths);
            return paths.map((path) => (
              <FileView key={path} path={path} text={found.files[path] ?? ""} messages={said.get(path) ?? new Map()} />
            ));
          }}
        </Loaded>
      )}
    </details>
  );
}

function FileView({
  path,
  text,
  messages,
}: {
  path: string;
  text: string;
  messages: Map<number, string[]>;
}): ReactNode {
  return (
    <>
      <h3 className="mono">{clean(path)}</h3>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
      <pre className="source" tabIndex={0}>
        {clean(text)
          .split("\n")
          .map((line, place) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a line's name is its number
            <span key={place}>
              <span className="line-number">{String(place + 1).padStart(4)}</span> {line}
              {"\n"}
              {messages.get(place + 1)?.map((said) => (
                <span key={said} className="said">
                  {"     "}
                  {said}
                  {"\n"}
                </span>
              ))}
            </span>
          ))}
      </pre>
    </>
  );
}
