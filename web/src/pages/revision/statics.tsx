import type { ReactNode } from "react";
import type { Evaluation, Revision, Statics } from "../../api/client";
import { useSearchState } from "../../search";
import { many, metricName, oneLine } from "../../text";
import { Table } from "../../ui/table";
import { useCompared } from "./against";
import { figuresOf, matching, togetherOf } from "./figures";

const WIDTH = 240;
const HEIGHT = 16;

/** What the machine code says of each function beside what it says of the base's function of that name. */
export function StaticsSection({ evaluation, revision }: { evaluation: Evaluation; revision: Revision }): ReactNode {
  const [search] = useSearchState();
  const { query } = useCompared(evaluation, revision);
  // Beside its base as this evaluation built them; beside another revision as that one's evaluation did.
  const other = search.has("against") ? query.data : undefined;
  const statics = other && other.statics.length > 0 ? other.statics : evaluation.statics;
  const before = other ? other.base_statics : evaluation.base_statics;
  const base = other?.base ?? evaluation.base;
  if (statics.length === 0) return null;
  const architectures = [...new Set(statics.map((one) => one.architecture))];
  return (
    <section aria-labelledby="statics">
      <h2 id="statics">Machine code</h2>
      {other?.statics_apart && <p className="notice">Not compared: {oneLine(other.statics_apart, 300)}.</p>}
      {architectures.map((architecture) => {
        const [own, others] = [statics, before].map((all) => all.filter((one) => one.architecture === architecture));
        return (
          <Architecture
            key={architecture}
            name={architecture}
            head={own ?? []}
            base={others ?? []}
            names={[base ? oneLine(base.label, 24) : "", oneLine(evaluation.revision.label, 24)]}
          />
        );
      })}
    </section>
  );
}

/** One function as it is; of several first what they are together. */
function Architecture({
  name,
  head,
  base,
  names,
}: {
  name: string;
  head: readonly Statics[];
  base: readonly Statics[];
  names: [string, string];
}): ReactNode {
  const each = head.map((one, place) => {
    const other = matching(one, head, base);
    return (
      // biome-ignore lint/suspicious/noArrayIndexKey: functions may share a name
      <div key={place}>
        <p className="function">
          <code>{oneLine(one.function, 80)}</code> <span className="muted">{oneLine(name)}</span>
        </p>
        <FiguresTable
          label={`Machine code of ${oneLine(one.function, 80)}`}
          now={figuresOf(one)}
          before={other && figuresOf(other)}
          names={names}
        />
      </div>
    );
  });
  if (head.length === 1) return each;
  return (
    <>
      <p className="function">
        {many(head.length, "function")} together <span className="muted">{oneLine(name)}</span>
      </p>
      <FiguresTable
        label={`Machine code of all functions for ${oneLine(name)}`}
        now={togetherOf(head)}
        before={base.length > 0 ? togetherOf(base) : undefined}
        names={names}
      />
      <details>
        <summary>Each of them</summary>
        {each}
      </details>
    </>
  );
}

function FiguresTable({
  label,
  now,
  before,
  names: [baseName, headName],
}: {
  label: string;
  now: ReadonlyMap<string, number>;
  before: ReadonlyMap<string, number> | undefined;
  names: [string, string];
}): ReactNode {
  // What neither side has, such as another generation's instructions, is no line.
  const shown = [...now].filter(([name, value]) => value !== 0 || before?.get(name));
  const gone = [...(before ?? [])].filter(([name, value]) => value !== 0 && !now.has(name)).map(([name]) => name);
  const rows = [...shown.map(([name]) => name), ...gone];
  return (
    <div className="figures">
      <Table
        label={label}
        head={
          <>
            <th scope="col">figure</th>
            {before && (
              <th scope="col" className="num">
                {baseName}
              </th>
            )}
            <th scope="col" className="num">
              {headName}
            </th>
            {before && (
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
          const [was, is] = [before?.get(name), now.get(name)];
          const moved = was !== undefined && is !== undefined ? is - was : 0;
          return (
            <tr key={name}>
              <th scope="row">{titleOf(name)}</th>
              {before && <td className="num">{was}</td>}
              <td className="num">{is}</td>
              {before && <td className="num">{moved !== 0 && `${moved > 0 ? "+" : "−"}${Math.abs(moved)}`}</td>}
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
