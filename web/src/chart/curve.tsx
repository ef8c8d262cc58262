import type { ReactNode } from "react";

// A small chart of a few points on two logarithmic axes: how a kernel scales, and how far it is from its roofs.
const WIDTH = 480;
const HEIGHT = 240;
const LEFT = 64;
const RIGHT = 96;
const TOP = 16;
const BOTTOM = 40;

export interface CurveLine {
  name: string;
  kind: "head" | "baseline";
  spots: readonly { x: number; y: number }[];
}

export function LogChart({
  label,
  xName,
  yName,
  lines,
}: {
  label: string;
  xName: string;
  yName: string;
  lines: readonly CurveLine[];
}): ReactNode {
  const spots = lines.flatMap((line) => line.spots).filter((spot) => spot.x > 0 && spot.y > 0);
  if (spots.length === 0) return null;
  const xs = [...new Set(spots.map((spot) => spot.x))].sort((one, other) => one - other);
  const atX = scaleOf(xs, LEFT, WIDTH - RIGHT);
  const ys = spots.map((spot) => spot.y);
  const atY = scaleOf(ys, HEIGHT - BOTTOM, TOP);
  return (
    <svg className="curve" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={label}>
      {ticksOf(ys).map((value) => (
        <g key={value}>
          <line className="grid" x1={LEFT} x2={WIDTH - RIGHT} y1={atY(value)} y2={atY(value)} />
          <text x={LEFT - 8} y={atY(value)} textAnchor="end" dominantBaseline="middle">
            {Number(value.toPrecision(3))}
          </text>
        </g>
      ))}
      {thinned(xs).map((value) => (
        <text key={value} x={atX(value)} y={HEIGHT - BOTTOM + 16} textAnchor="middle">
          {Number(value.toPrecision(3))}
        </text>
      ))}
      <text x={(LEFT + WIDTH - RIGHT) / 2} y={HEIGHT - 6} textAnchor="middle">
        {xName}
      </text>
      <text x={LEFT - 8} y={10} textAnchor="end">
        {yName}
      </text>
      {lines.map((line) => {
        const drawn = line.spots.filter((spot) => spot.x > 0 && spot.y > 0);
        const last = drawn.at(-1);
        return (
          <g key={line.name} className={line.kind}>
            <polyline points={drawn.map((spot) => `${atX(spot.x)},${atY(spot.y)}`).join(" ")} />
            {drawn.map((spot) => (
              <circle key={`${spot.x} ${spot.y}`} cx={atX(spot.x)} cy={atY(spot.y)} r="2.5" />
            ))}
            {last && (
              <text x={atX(last.x) + 8} y={atY(last.y)} dominantBaseline="middle">
                {line.name}
              </text>
            )}
          </g>
        );
      })}
    </svg>
  );
}

function scaleOf(values: readonly number[], from: number, to: number): (value: number) => number {
  const logs = values.map(Math.log);
  const [least, most] = [Math.min(...logs), Math.max(...logs)];
  return (value) =>
    most === least ? (from + to) / 2 : from + ((Math.log(value) - least) / (most - least)) * (to - from);
}

function ticksOf(values: readonly number[]): number[] {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const steps = most / least > 100 ? [1] : [1, 2, 5];
  const found: number[] = [];
  for (let power = Math.floor(Math.log10(least)); power <= Math.ceil(Math.log10(most)); power++) {
    for (const step of steps) {
      const value = step * 10 ** power;
      if (value >= least && value <= most) found.push(value);
    }
  }
  return found.length > 1 ? found : [least, most];
}

function thinned(values: readonly number[]): number[] {
  const every = Math.ceil(values.length / 8);
  return values.filter((_, place) => place % every === 0);
}
