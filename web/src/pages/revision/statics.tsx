import type { ReactNode } from "react";
import type { Evaluation, Statics } from "../../api/client";
import { oneLine } from "../../text";
import { Table } from "../../ui/table";

const FIGURES = [
  ["registers", "registers"],
  ["spill_store_bytes", "spill stores (B)"],
  ["spill_load_bytes", "spill loads (B)"],
  ["stack_bytes", "stack (B)"],
  ["shared_bytes", "shared (B)"],
  ["code_bytes", "code (B)"],
] as const;

/** What the machine code says of each function; in small what it says of the base's function of that name. */
export function StaticsSection({ evaluation }: { evaluation: Evaluation }): ReactNode {
  const { statics, base_statics: before, base } = evaluation;
  if (statics.length === 0) return null;
  const shown = FIGURES.filter(([name]) => [...statics, ...before].some((one) => one[name] != null));
  return (
    <section aria-labelledby="statics">
      <h2 id="statics">Machine code</h2>
      <Table
        label="Machine code by function"
        head={
          <>
            <th scope="col">function</th>
            <th scope="col">architecture</th>
            {shown.map(([name, title]) => (
              <th key={name} scope="col" className="num">
                {title}
              </th>
            ))}
          </>
        }
      >
        {statics.map((one) => {
          const other = matching(one, statics, before);
          return (
            <tr key={`${one.function} ${one.architecture}`}>
              <th scope="row" className="mono">
                {oneLine(one.function, 60)}
              </th>
              <td>{oneLine(one.architecture)}</td>
              {shown.map(([name]) => (
                <td key={name} className="num">
                  {one[name]}
                  {other && other[name] !== one[name] && other[name] != null && (
                    <span className="sub">
                      {base ? oneLine(base.label, 16) : "base"}: {other[name]}
                    </span>
                  )}
                </td>
              ))}
            </tr>
          );
        })}
      </Table>
    </section>
  );
}

/** By name; where each side has one function for the architecture, these two. */
function matching(one: Statics, head: readonly Statics[], base: readonly Statics[]): Statics | undefined {
  const same = (each: Statics) => each.architecture === one.architecture;
  const there = base.filter(same);
  return (
    there.find((each) => each.function === one.function) ??
    (there.length === 1 && head.filter(same).length === 1 ? there[0] : undefined)
  );
}
