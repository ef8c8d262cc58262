import type { ReactNode } from "react";
import type { Outcome, Verdict } from "../api/client";
import { ratioInWords, words } from "../text";

// A word, a sign, and a colour that only repeats them.
export const SIGNS: Record<Verdict, string> = { faster: "▲", slower: "▼", same: "=", inconclusive: "?" };
const GOOD = new Set<Outcome>(["passed", "built"]);
const BAD = new Set<Outcome>(["slower", "incorrect", "build_failed", "untrusted"]);

export const isBad = (outcome: Outcome | null | undefined): boolean => outcome != null && BAD.has(outcome);

export function verdictWords(verdict: Verdict, ratio: number | null, interval?: readonly number[] | null): string {
  const moved = (verdict === "faster" || verdict === "slower") && ratio != null;
  return moved ? ratioInWords(ratio, interval) : verdict;
}

/** What joins a verdict and the base: `faster than v3`, `same as v3`, `inconclusive against v3`. */
export const JOINS: Record<Verdict, string> = { faster: "than", slower: "than", same: "as", inconclusive: "against" };

/** `▲ 1.5 % faster`, `▼ 61 % slower` with `allowed here by the suite` below, `= same`, `? inconclusive`. */
export function VerdictText({
  verdict,
  ratio,
  interval,
  allowed,
}: {
  verdict: Verdict | null;
  ratio: number | null;
  interval?: readonly number[] | null;
  allowed?: string | null;
}): ReactNode {
  if (!verdict) return null;
  return (
    <span className="verdict">
      <span className={`sign-${verdict}`}>
        {SIGNS[verdict]} {verdictWords(verdict, ratio, interval)}
      </span>
      {allowed && verdict === "slower" && (
        <span className="sub" title={allowed}>
          allowed here by the suite
        </span>
      )}
    </span>
  );
}

export function OutcomeText({ outcome, otherwise = "" }: { outcome: Outcome | null; otherwise?: string }): ReactNode {
  if (!outcome) return <span className="muted">{otherwise}</span>;
  const sign = GOOD.has(outcome) ? "✓" : outcome === "slower" ? "▼" : BAD.has(outcome) ? "✕" : "?";
  const kind = GOOD.has(outcome) ? "good" : BAD.has(outcome) ? "bad" : "unsure";
  return (
    <span className={`outcome ${kind}`}>
      {sign} {words(outcome)}
    </span>
  );
}
