import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { type Evaluation, ProblemError } from "../../api/client";
import { logQuery } from "../../api/queries";
import { clean, duration, figureName, oneLine, secondsBetween } from "../../text";
import { Loaded } from "../../ui/states";
import { Table } from "../../ui/table";

export function StagesSection({ evaluation }: { evaluation: Evaluation }): ReactNode {
  const { stages } = evaluation;
  if (stages.length === 0) return null;
  return (
    <section aria-labelledby="stages">
      <h2 id="stages">Stages</h2>
      <div className="figures">
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
      </div>
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
  const { device, cpu, driver, cuda, device_uuid: uuid, host_cores: cores, sandbox } = environment;
  const machine: Facts = { driver, CUDA: cuda, "host cores": cores, "device id": uuid };
  const groups: [string, string][] = [
    ["device", [device, cpu !== device && cpu].filter(Boolean).join(", ")],
    ["machine", `${factsOf(machine)}, ${sandbox ? "in a sandbox" : "without a sandbox"}`.replace(/^, /, "")],
    ["toolchain", factsOf(environment.toolchain)],
    ["libraries", factsOf(environment.libraries)],
    ["clocks", factsOf(environment.clocks)],
  ];
  return (
    <section aria-labelledby="environment">
      <h2 id="environment">Environment</h2>
      <dl>
        {groups
          .filter(([, said]) => said !== "")
          .map(([name, said]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{oneLine(said, 1000)}</dd>
            </div>
          ))}
      </dl>
    </section>
  );
}

type Facts = Record<string, string | number | boolean | null | undefined>;

/** `SM clock 1980 MHz, power 306.5 W`: what is known, in one line. */
function factsOf(facts: Facts | undefined): string {
  return Object.entries(facts ?? {})
    .filter(([, value]) => value != null && value !== "")
    .map(([name, value]) => {
      const [title, unit] = figureName(name);
      const said = typeof value === "number" ? Number(value.toPrecision(4)) : value;
      // A compiler's version begins with its name.
      return `${String(said).startsWith(`${title} `) ? "" : title} ${said} ${unit}`.trim();
    })
    .join(", ");
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
