import { type ReactNode, useState } from "react";
import type { Check } from "../../api/client";
import { caseName, clean, many, oneLine, words } from "../../text";
import { Table } from "../../ui/table";

/** Case by input family: the worst error as a share of its bound; 1 is the bound. */
export function ChecksSection({ checks }: { checks: readonly Check[] }): ReactNode {
  if (checks.length === 0) return null;
  const families = [...new Set(checks.map((check) => check.family))];
  const cases = [...new Set(checks.map((check) => check.case))];
  const failed = checks.filter((check) => !check.passed);
  const at = new Map(checks.map((check) => [`${check.case} ${check.family}`, check]));
  const worst = checks.reduce<Check | null>(
    (most, check) => (check.of_bound != null && check.of_bound > (most?.of_bound ?? -1) ? check : most),
    null,
  );
  return (
    <section aria-labelledby="checks">
      <h2 id="checks">Verification</h2>
      <p>
        {many(cases.length, "case")} x {many(families.length, "input family", "input families")}:{" "}
        {failed.length > 0 ? (
          <span className="wrong">
            ✕ {failed.length} of {checks.length} failed
          </span>
        ) : (
          <>
            all right
            {worst &&
              `, worst ${worst.of_bound?.toPrecision(2)} of the bound (${caseName(worst.case)}, ${oneLine(words(worst.family))})`}
          </>
        )}
      </p>
      {failed.slice(0, 5).map((check) => (
        <pre key={`${check.case} ${check.family}`} className="failure">
          {caseName(check.case)}, {words(oneLine(check.family))}:{" "}
          {clean(check.message) || words(check.reason ?? "wrong")}
        </pre>
      ))}
      <Table
        label="Worst error as a share of its bound, by case and input family"
        head={
          <>
            <th scope="col">of the bound</th>
            {families.map((family) => (
              <th key={family} scope="col" className="num">
                {words(oneLine(family, 40))}
              </th>
            ))}
          </>
        }
      >
        {cases.map((id) => (
          <tr key={id}>
            <th scope="row">{caseName(id)}</th>
            {families.map((family) => (
              <Cell key={family} check={at.get(`${id} ${family}`)} />
            ))}
          </tr>
        ))}
      </Table>
      <EveryCheck checks={checks} />
    </section>
  );
}

/** Error and bound by themselves, the worst first. */
function EveryCheck({ checks }: { checks: readonly Check[] }): ReactNode {
  const [opened, setOpened] = useState(false);
  const known = checks.filter((check) => check.error != null || !check.passed);
  if (known.length === 0) return null;
  const worstFirst = [...known].sort(
    (one, other) => Number(one.passed) - Number(other.passed) || (other.of_bound ?? 0) - (one.of_bound ?? 0),
  );
  return (
    <details onToggle={(event) => setOpened(event.currentTarget.open)}>
      <summary>Errors and bounds</summary>
      {opened && (
        <div className="figures">
          <Table
            label="Error and bound of every check, the worst first"
            head={
              <>
                <th scope="col">case</th>
                <th scope="col">input family</th>
                <th scope="col" className="num">
                  error
                </th>
                <th scope="col" className="num">
                  bound
                </th>
                <th scope="col">result</th>
              </>
            }
          >
            {worstFirst.map((check) => (
              <tr key={`${check.case} ${check.family}`}>
                <th scope="row">{caseName(check.case)}</th>
                <td>{words(oneLine(check.family, 40))}</td>
                <td className="num">{check.error?.toPrecision(3)}</td>
                <td className="num">{check.bound?.toPrecision(3)}</td>
                <td>{check.passed ? "✓ right" : <span className="wrong">✕ {words(check.reason ?? "wrong")}</span>}</td>
              </tr>
            ))}
          </Table>
        </div>
      )}
    </details>
  );
}

function Cell({ check }: { check: Check | undefined }): ReactNode {
  if (!check) return <td className="num muted" />;
  const said = check.of_bound == null ? (check.passed ? "✓" : "") : shareOf(check.of_bound);
  const exact =
    check.error != null && check.bound != null
      ? `error ${check.error.toPrecision(3)}, bound ${check.bound.toPrecision(3)}`
      : undefined;
  return (
    <td className={check.passed ? "num" : "num wrong"} title={exact}>
      {check.passed ? said : `✕ ${said || words(check.reason ?? "wrong")}`}
    </td>
  );
}

function shareOf(share: number): string {
  return share >= 1000 ? share.toExponential(0) : share === 0 ? "0" : share < 0.01 ? "<0.01" : share.toFixed(2);
}
