import type { ReactNode } from "react";
import { caseName, number, oneLine, percent } from "../../text";
import { Table } from "../../ui/table";
import { aroundMedian, type Row } from "./rows";

const WIDTH = 208;
const HEIGHT = 80;

/** Each fresh process's median, pair by pair: where a mean hides two levels or a drift, this shows them. */
export function Processes({ rows, base, head }: { rows: readonly Row[]; base: string; head: string }): ReactNode {
  const drawn = rows.filter((row) => (row.compared?.processes.length ?? 0) > 0);
  if (drawn.length === 0) return null;
  const most = Math.max(...drawn.map((row) => row.compared?.processes.length ?? 0));
  return (
    <details>
      <summary>The processes' values</summary>
      <p className="muted">
        Each process over the median of its side: <span className="side base">○</span> {oneLine(base, 24)}{" "}
        <span className="side head">●</span> {oneLine(head, 24)}
      </p>
      <div className="multiples">
        {drawn.map((row) => (
          <Multiple key={row.case} row={row} />
        ))}
      </div>
      <Table
        label="Median time per call of each pair of processes, us"
        head={
          <>
            <th scope="col">case</th>
            <th scope="col">side</th>
            {Array.from({ length: most }, (_, place) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: a pair has no other name than its number
              <th key={place} scope="col" className="num">
                {place + 1} (us)
              </th>
            ))}
          </>
        }
      >
        {drawn.flatMap((row) =>
          (["base", "head"] as const).map((side) => (
            <tr key={`${row.case} ${side}`}>
              <th scope="row">{caseName(row.case)}</th>
              <td>{oneLine(side === "base" ? base : head, 24)}</td>
              {row.compared?.processes.map((pair, place) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: a pair has no other name than its number
                <td key={place} className="num">
                  {number(pair[side])}
                </td>
              ))}
            </tr>
          )),
        )}
      </Table>
    </details>
  );
}

/** Every process by how far it is from the middle of its side, in the order in which they ran. */
function Multiple({ row }: { row: Row }): ReactNode {
  const pairs = row.compared?.processes ?? [];
  const sides = {
    base: aroundMedian(pairs.map((pair) => pair.base)),
    head: aroundMedian(pairs.map((pair) => pair.head)),
  };
  const most = Math.max(...sides.base.map(Math.abs), ...sides.head.map(Math.abs), 1e-6);
  const step = (WIDTH - 16) / Math.max(1, pairs.length);
  const y = (share: number) => HEIGHT / 2 - (share / most) * (HEIGHT / 2 - 8);
  return (
    <figure>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} width={WIDTH} height={HEIGHT} aria-hidden="true">
        <line x1="0" x2={WIDTH} y1={HEIGHT / 2} y2={HEIGHT / 2} />
        {(["base", "head"] as const).map((side, place) =>
          sides[side].map((share, pair) => (
            <circle
              // biome-ignore lint/suspicious/noArrayIndexKey: a pair has no other name than its number
              key={`${side} ${pair}`}
              className={side}
              cx={8 + (pair + 0.35 + 0.3 * place) * step}
              cy={y(share)}
              r="3"
            />
          )),
        )}
      </svg>
      <figcaption>
        {caseName(row.case)} <span className="num">± {percent(most)}</span>
      </figcaption>
    </figure>
  );
}
