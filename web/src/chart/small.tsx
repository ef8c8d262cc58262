import type { ReactNode } from "react";
import type { Series } from "../api/client";
import { count, metricName, oneLine, unitName } from "../text";
import { Files } from "../ui/files";

const WIDTH = 256;
const HEIGHT = 96;
const BOTTOM = 16;
const RIGHT = 56;
const INSET = 8;

/** One of several lines over the same revisions, from zero: steps, as a revision has its value until the next. */
export function SmallLine({ series }: { series: Series }): ReactNode {
  const known = series.points.flatMap(({ place, value, label }) => (value === null ? [] : [{ place, value, label }]));
  const last = known.at(-1);
  if (!last) return null;
  const most = Math.max(...known.map((point) => point.value)) || 1;
  const places = Math.max(1, series.total - 1);
  const x = (place: number) => INSET + (place / places) * (WIDTH - RIGHT - 2 * INSET);
  const y = (value: number) => HEIGHT - BOTTOM - (Math.max(0, value) / most) * (HEIGHT - BOTTOM - INSET);
  const path = known.map(({ place, value }, index) =>
    index === 0 ? `M${x(place)},${y(value)}` : `H${x(place)}V${y(value)}`,
  );
  const unit = unitName(series.unit);
  const said = `${metricName(series.metric)}: ${count(known[0]?.value)} at ${known[0]?.label}, ${count(last.value)} at ${last.label}`;
  return (
    <figure className="small-line">
      <figcaption>
        {metricName(series.metric)} {unit && `(${unit})`}{" "}
        <Files
          project={series.project}
          kernel={series.kernel}
          path="history"
          query={{ device_class: series.device_class, case: series.case, metric: series.metric }}
        />
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} width={WIDTH} height={HEIGHT} role="img" aria-label={oneLine(said)}>
        <line className="zero" x1={INSET} x2={WIDTH - RIGHT - INSET} y1={y(0)} y2={y(0)} />
        <path d={path.join("")} />
        {known.length <= 40 &&
          known.map((point) => (
            <circle key={point.place} cx={x(point.place)} cy={y(point.value)} r="2">
              <title>{`${oneLine(point.label)}: ${count(point.value)}`}</title>
            </circle>
          ))}
        <text className="end" x={INSET} y={HEIGHT - 2}>
          {oneLine(known[0]?.label ?? "", 10)}
        </text>
        <text className="end" x={WIDTH - RIGHT - INSET} y={HEIGHT - 2} textAnchor="end">
          {known.length > 1 && oneLine(last.label, 10)}
        </text>
        <text x={WIDTH - RIGHT} y={y(last.value)} dominantBaseline="middle">
          {count(last.value)}
        </text>
      </svg>
    </figure>
  );
}
