import type { ReactNode } from "react";
import { caseName, number, oneLine } from "../../text";
import { Table } from "../../ui/table";
import type { Row } from "./rows";

const WIDTH = 144;
const HEIGHT = 72;

/** Each fresh process's median beside the one that ran with it: where a mean hides two levels, this shows them. */
export function Processes({ rows, base, head }: { rows: readonly Row[]; base: string; head: string }): ReactNode {
  const drawn = rows.filter((row) => (row.compared?.processes.length ?? 0) > 0);
  if (drawn.length === 0) return null;
  const most = Math.max(...drawn.map((row) => row.compared?.processes.length ?? 0));
  return (
    <details>
      <summary>
        The processes' values: {oneLine(base, 24)} on the left, {oneLine(head, 24)} on the right
      </summary>
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

function Multiple({ row }: { row: Row }): ReactNode {
  const pairs = row.compared?.processes ?? [];
  const values = pairs.flatMap((pair) => [pair.base, pair.head]);
  const least = Math.min(...values);
  const span = Math.max(...values) - least || 1;
  const y = (value: number) => HEIGHT - 8 - ((value - least) / span) * (HEIGHT - 16);
  return (
    <figure>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} width={WIDTH} height={HEIGHT} aria-hidden="true">
        {pairs.map((pair, place) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a pair has no other name than its number
          <g key={place}>
            <line x1="24" x2={WIDTH - 24} y1={y(pair.base)} y2={y(pair.head)} />
            <circle cx="24" cy={y(pair.base)} r="2.5" />
            <circle cx={WIDTH - 24} cy={y(pair.head)} r="2.5" />
          </g>
        ))}
      </svg>
      <figcaption>{caseName(row.case)}</figcaption>
    </figure>
  );
}
