import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { type Evaluation, ProblemError } from "../../api/client";
import { logQuery } from "../../api/queries";
import { clean, duration, oneLine, secondsBetween, words } from "../../text";
import { Loaded } from "../../ui/states";
import { Table } from "../../ui/table";

export function StagesSection({ evaluation }: { evaluation: Evaluation }): ReactNode {
  const { stages } = evaluation;
  if (stages.length === 0) return null;
  return (
    <section aria-labelledby="stages">
      <h2 id="stages">Stages</h2>
      <Table
        label="Stages and how long each took"
        head={
          <>
            <th scope="col">stage</th>
            <th scope="col" className="num">
              took
            </th>
            <th scope="col">detail</th>
          </>
        }
      >
        {stages.map((one) => (
          <tr key={`${one.stage} ${one.started_at}`}>
            <th scope="row">{one.stage}</th>
            <td className="num">{one.cached ? "cached" : duration(secondsBetween(one.started_at, one.ended_at))}</td>
            <td className="text">{oneLine(one.detail, 300)}</td>
          </tr>
        ))}
      </Table>
    </section>
  );
}

/** What the compiler and the stages printed, as text. Asked for when it is opened. */
export function LogSection({ evaluation }: { evaluation: Evaluation }): ReactNode {
  const [opened, setOpened] = useState(false);
  const log = useQuery({ ...logQuery(evaluation.id), enabled: opened });
  const none = log.error instanceof ProblemError && log.error.status === 404;
  return (
    <details onToggle={(event) => setOpened(event.currentTarget.open)}>
      <summary>Log</summary>
      {opened && none && <p className="muted">Nothing was printed.</p>}
      {opened && !none && (
        <Loaded query={log} what="the log">
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
          {(text) => <pre tabIndex={0}>{clean(text) || "Nothing was printed."}</pre>}
        </Loaded>
      )}
    </details>
  );
}

export function EnvironmentSection({ environment }: { environment: Evaluation["environment"] }): ReactNode {
  if (!environment) return null;
  const { toolchain, libraries, clocks, device_uuid: uuid, host_cores: cores, sandbox, ...rest } = environment;
  const facts: [string, string][] = [];
  for (const [name, value] of Object.entries(rest)) if (value) facts.push([words(name), String(value)]);
  if (uuid) facts.push(["device id", uuid]);
  if (cores) facts.push(["host cores", String(cores)]);
  facts.push(["sandbox", sandbox ? "yes" : "no"]);
  for (const group of [toolchain, libraries, clocks]) {
    for (const [name, value] of Object.entries(group ?? {})) facts.push([words(name), String(value)]);
  }
  return (
    <section aria-labelledby="environment">
      <h2 id="environment">Environment</h2>
      <dl>
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{oneLine(name, 60)}</dt>
            <dd>{oneLine(value, 300)}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

export function ReproduceSection({ command }: { command: string | null | undefined }): ReactNode {
  const [copied, setCopied] = useState(false);
  if (!command) return null;
  const copy = async () => {
    await navigator.clipboard.writeText(command);
    setCopied(true);
  };
  return (
    <section aria-labelledby="reproduce">
      <h2 id="reproduce">Reproduce</h2>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
      <pre tabIndex={0}>{clean(command)}</pre>
      <button type="button" onClick={copy}>
        {copied ? "Copied" : "Copy"}
      </button>
    </section>
  );
}
