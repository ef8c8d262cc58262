import type { ReactNode } from "react";
import type { Evaluation } from "../../api/client";
import { caseName, number } from "../../text";
import { Table } from "../../ui/table";
import { COUNTERS, profiled } from "./counters";

/** What the card's counters said of each case, where a profile was asked for. */
export function ProfileSection({ evaluation }: { evaluation: Evaluation }): ReactNode {
  const rows = profiled(evaluation.cases);
  if (rows.length === 0) return null;
  return (
    <section aria-labelledby="profile">
      <h2 id="profile">Profile</h2>
      <Table
        label="Counters of each case"
        head={
          <>
            <th scope="col">case</th>
            {COUNTERS.map(([name, head]) => (
              <th scope="col" className="num" key={name}>
                {head}
                {!name.startsWith("stall_") && " (%)"}
              </th>
            ))}
          </>
        }
      >
        {rows.map((row) => (
          <tr key={row.case}>
            <th scope="row">{caseName(row.case)}</th>
            {COUNTERS.map(([name], place) => (
              <td className="num" key={name}>
                {number(row.values[place])}
              </td>
            ))}
          </tr>
        ))}
      </Table>
      <p className="muted">
        Shares of what there could be; stalls in cycles between two instructions of a warp. Nothing is judged by them.
      </p>
    </section>
  );
}
