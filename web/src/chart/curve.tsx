import type { ReactNode } from "react";
import { apart, roofOf, type Spot, scaleOf, ticksOf } from "./scales";

// A small chart of a few points on two logarithmic axes: how a kernel scales, and how far it is from its roofs.
const WIDTH = 560;
const HEIGHT = 280;
const LEFT = 56;
const RIGHT = 96;
const TOP = 24;
const BOTTOM = 40;
const LABEL = 13;

export interface CurveLine {
  name: string;
  kind: "head" | "baseline" | "earlier" | "roof";
  spots: readonly Spot[];
}

export function LogChart({
  label,
  xName,
  yName,
  lines,
  roofs,
}: {
  label: string;
  xName: string;
  yName: string;
  lines: readonly CurveLine[];
  roofs?: { throughput: number; per_intensity: number; name: string } | null;
}): ReactNode {
  const measured = lines.map((line) => ({ ...line, spots: line.spots.filter((spot) => spot.x > 0 && spot.y > 0) }));
  const spots = measured.flatMap((line) => line.spots);
  if (spots.length === 0) return null;
  const xs = [...new Set(spots.map((spot) => spot.x))].sort((one, other) => one - other);
  const roof: CurveLine[] = roofs ? [{ name: roofs.name, kind: "roof", spots: roofOf(xs, roofs) }] : [];
  const drawn = [...roof, ...measured].filter((line) => line.spots.length > 0);
  const ys = drawn.flatMap((line) => line.spots.map((spot) => spot.y));
  const atX = scaleOf([...xs, ...roof.flatMap((line) => line.spots.map((spot) => spot.x))], LEFT, WIDTH - RIGHT);
  const atY = scaleOf(ys, HEIGHT - BOTTOM, TOP);
  const ends = apart(
    drawn.map((line) => atY(line.spots.at(-1)?.y ?? 1)),
    LABEL,
  );
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
          {Number.isInteger(value) ? value : Number(value.toPrecision(4))}
        </text>
      ))}
      <text x={(LEFT + WIDTH - RIGHT) / 2} y={HEIGHT - 6} textAnchor="middle">
        {xName}
      </text>
      <text x={LEFT - 8} y={10} textAnchor="end">
        {yName}
      </text>
      {drawn.map((line, place) => {
        const last = line.spots.at(-1);
        return (
          <g key={`${line.kind} ${line.name}`} className={line.kind}>
            <polyline points={line.spots.map((spot) => `${atX(spot.x)},${atY(spot.y)}`).join(" ")} />
            {line.kind !== "roof" &&
              line.spots.map((spot) => (
                <circle key={`${spot.x} ${spot.y}`} cx={atX(spot.x)} cy={atY(spot.y)} r="2.5" />
              ))}
            {last && (
              <text x={atX(last.x) + 8} y={ends[place]} dominantBaseline="middle">
                {line.name}
              </text>
            )}
          </g>
        );
      })}
    </svg>
  );
}

function thinned(values: readonly number[]): number[] {
  const every = Math.ceil(values.length / 8);
  return values.filter((_, place) => place % every === 0);
}
