import type { ReactNode } from "react";

/** A table that scrolls on its own where the screen is narrow, also with the keyboard. */
export function Table({ label, head, children }: { label: string; head: ReactNode; children: ReactNode }): ReactNode {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <section className="scroll" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>{head}</tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </section>
  );
}
