import type { ReactNode } from "react";
import { number } from "../text";

const WIDTH = 96;
const HEIGHT = 24;
const INSET = 3;

/** The newest values as a line; in words for those who can't see it. */
export function Sparkline({ values }: { values: readonly number[] }): ReactNode {
  if (values.length < 2) return null;
  const least = Math.min(...values);
  const span = Math.max(...values) - least || 1;
  const spots = values.map((value, place) => {
    const x = INSET + (place / (values.length - 1)) * (WIDTH - 2 * INSET);
    const y = HEIGHT - INSET - ((value - least) / span) * (HEIGHT - 2 * INSET);
    return [x, y] as const;
  });
  const [endX, endY] = spots.at(-1) ?? [0, 0];
  const said = `${values.length} values, from ${number(values[0])} to ${number(values.at(-1))}`;
  return (
    <svg
      className="sparkline"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      width={WIDTH}
      height={HEIGHT}
      role="img"
      aria-label={said}
    >
      <polyline points={spots.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ")} />
      <circle cx={endX} cy={endY} r="2" />
    </svg>
  );
}
