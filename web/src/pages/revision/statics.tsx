import type { ReactNode } from "react";
import type { Evaluation, Statics } from "../../api/client";
import { metricName, oneLine } from "../../text";
import { Table } from "../../ui/table";
import { figuresOf, matching } from "./figures";

const OPEN = 2;
const WIDTH = 240;
const HEIGHT = 16;

/** What the machine code says of each function beside what it says of the base's function of that name. */
export function StaticsSection({ evaluation }: { evaluation: Evaluation }): ReactNode {
  const { statics, base_statics: before, base } = evaluation;
  if (statics.length === 0) return null;
  return (
    <section aria-labelledby="statics">
      <h2 id="statics">Machine code</h2>
      {statics.map((one, place) => (
        <details key={`${one.function} ${one.architecture}`} open={place < OPEN}>
          <summary>
            <code>{oneLine(one.function, 80)}</code> <span className="muted">{oneLine(one.architecture)}</span>
          </summary>
          <FunctionTable
            head={one}
            base={matching(one, statics, before)}
            names={[base ? oneLine(base.label, 24) : "", oneLine(evaluation.revision.label, 24)]}
          />
        </details>
      ))}
    </section>
  );
}

function FunctionTable({
  head,
  base,
  names: [baseName, headName],
}: {
  head: Statics;
  base: Statics | undefined;
  names: [string, string];
}): ReactNode {
  const before = base ? figuresOf(base) : new Map<string, number>();
  const now = figuresOf(head);
  // What neither side has, such as another generation's instructions, is no line.
  const shown = [...now].filter(([name, value]) => value !== 0 || before.get(name));
  const gone = [...before].filter(([name, value]) => value !== 0 && !now.has(name)).map(([name]) => name);
  const rows = [...shown.map(([name]) => name), ...gone];
  return (
    <div className="figures">
      <Table
        label={`Machine code of ${oneLine(head.function, 80)}`}
        head={
          <>
            <th scope="col">figure</th>
            {base && (
              <th scope="col" className="num">
                {baseName}
              </th>
            )}
            <th scope="col" className="num">
              {headName}
            </th>
            {base && (
              <th scope="col" className="num">
                change
              </th>
            )}
            <th scope="col" className="wide">
              <span className="unseen">drawn</span>
            </th>
          </>
        }
      >
        {rows.map((name) => {
          const [was, is] = [before.get(name), now.get(name)];
          const moved = was !== undefined && is !== undefined ? is - was : 0;
          return (
            <tr key={name}>
              <th scope="row">{titleOf(name)}</th>
              {base && <td className="num">{was}</td>}
              <td className="num">{is}</td>
              {base && <td className="num">{moved !== 0 && `${moved > 0 ? "+" : "−"}${Math.abs(moved)}`}</td>}
              <td className="wide">
                <Bars base={was} head={is} />
              </td>
            </tr>
          );
        })}
      </Table>
    </div>
  );
}

const titleOf = (name: string): string => `${metricName(name)}${name.endsWith("_bytes") ? " (B)" : ""}`;

/** The base's above, the head's below, both from zero. The figures are in the columns before. */
function Bars({ base, head }: { base: number | undefined; head: number | undefined }): ReactNode {
  const most = Math.max(base ?? 0, head ?? 0) || 1;
  const width = (value: number) => Math.max(1, (value / most) * WIDTH);
  return (
    <svg className="bars" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} width={WIDTH} height={HEIGHT} aria-hidden="true">
      {base !== undefined && base > 0 && <rect className="base" width={width(base)} y="1" height="5" />}
      {head !== undefined && head > 0 && <rect className="head" width={width(head)} y="8" height="5" />}
    </svg>
  );
}
