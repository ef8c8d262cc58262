import { type KeyboardEvent, type ReactNode, useEffect, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Point, Series } from "../api/client";
import { caseName, metricName, number, oneLine, percent, unitName, words } from "../text";
import { baselineOf, type Mark, pointWords, shownOf } from "./values";

const HEIGHT = 320;
const MARK_PX = 12;

interface Options {
  series: Series;
  marks: readonly Mark[];
  zero: boolean;
  asRatio: boolean;
  /** Index of the point under the cursor. */
  selected: number | null;
  onSelect: (index: number, settled: boolean) => void;
  onOpen: (point: Point) => void;
}

/** One line over the revisions. The pointer and the arrow keys move the same cursor; Enter and a click open. */
export function HistoryChart({ series, marks, zero, asRatio, selected, onSelect, onOpen }: Options): ReactNode {
  const frame = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const acts = useRef({ onSelect, onOpen, show: () => {} });
  const theme = useTheme();
  const { points } = series;

  // biome-ignore lint/correctness/useExhaustiveDependencies: theme: the canvas takes its colours from the stylesheet
  useEffect(() => {
    const box = frame.current;
    if (!box) return;
    const made = new uPlot(optionsOf({ series, marks, zero, asRatio, box, acts }), dataOf(series, asRatio), box);
    plot.current = made;
    const watch = new ResizeObserver(() => made.setSize({ width: box.clientWidth, height: HEIGHT }));
    watch.observe(box);
    return () => {
      watch.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [series, marks, zero, asRatio, theme]);

  const show = () => {
    const made = plot.current;
    const point = selected === null ? undefined : points[selected];
    // Before its first drawing it has no scales; `ready` comes back here.
    if (!made?.status || !point || made.cursor.idx === selected) return;
    const { value } = shownOf(series, point, asRatio);
    const top = value === null ? made.bbox.height / devicePixelRatio - MARK_PX : made.valToPos(value, "y");
    made.setCursor({ left: made.valToPos(point.place, "x"), top }, false);
  };
  acts.current = { onSelect, onOpen, show };
  useEffect(() => acts.current.show());

  const now = selected ?? points.length - 1;
  const onKey = (event: KeyboardEvent) => {
    const step = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: points.length - 1 }[event.key];
    const point = points[now];
    if (event.key === "Enter" && point) onOpen(point);
    else if (step !== undefined) onSelect(Math.max(0, Math.min(points.length - 1, step)), true);
    else return;
    event.preventDefault();
  };
  const point = points[now];
  return (
    <div
      className="chart"
      ref={frame}
      role="slider"
      tabIndex={0}
      aria-label={`${metricName(series.metric)} of ${series.kernel} at ${caseName(series.case)} over its revisions. Arrow keys move, Enter opens a revision; the table below says the same.`}
      aria-valuemin={0}
      aria-valuemax={points.length - 1}
      aria-valuenow={now}
      aria-valuetext={point ? pointWords(series, point) : ""}
      onKeyDown={onKey}
    />
  );
}

type Acts = { current: Pick<Options, "onSelect" | "onOpen"> & { show: () => void } };

// null is a gap; undefined is a place that the line passes over.
type Line = (number | null | undefined)[];

function dataOf(series: Series, asRatio: boolean): uPlot.AlignedData {
  const lines: [Line, Line, Line, Line] = [[], [], [], []];
  for (const point of series.points) {
    const { value, low, high } = shownOf(series, point, asRatio);
    lines[0].push(point.mainline ? value : undefined);
    lines[1].push(point.mainline ? (high ?? value) : undefined);
    lines[2].push(point.mainline ? (low ?? value) : undefined);
    lines[3].push(point.mainline ? undefined : value);
  }
  return [series.points.map((point) => point.place), ...lines];
}

function optionsOf({
  series,
  marks,
  zero,
  asRatio,
  box,
  acts,
}: Pick<Options, "series" | "marks" | "zero" | "asRatio"> & { box: HTMLElement; acts: Acts }): uPlot.Options {
  const style = getComputedStyle(box);
  const colour = (name: string) => style.getPropertyValue(`--${name}`).trim();
  const font = `12px ${style.fontFamily}`;
  const { points } = series;
  const byPlace = new Map(points.map((point) => [point.place, point]));
  const axis = { stroke: colour("muted"), font, ticks: { stroke: colour("line"), size: 4 } };
  const baseline = baselineOf(series, asRatio);
  const roomy = points.length <= box.clientWidth / 12;
  return {
    width: box.clientWidth,
    height: HEIGHT,
    padding: [16, 72, 0, 0],
    legend: { show: false },
    cursor: {
      y: false,
      points: { size: 8 },
      drag: { x: false, y: false },
      dataIdx: (_plot, _line, hovered) => hovered,
    },
    scales: {
      x: { time: false, range: () => [(points[0]?.place ?? 0) - 0.5, (points.at(-1)?.place ?? 0) + 0.5] },
      y: { range: (_plot, least, most) => rangeOf([least, most, baseline], zero) },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000],
        space: 56,
        values: (_plot, places) => places.map((place) => oneLine(byPlace.get(place)?.label ?? "", 10)),
      },
      {
        ...axis,
        grid: { stroke: colour("line"), width: 0.5 },
        size: 64,
        values: (_plot, values) => values.map((value) => tick(value)),
      },
    ],
    series: [
      {},
      {
        stroke: colour("accent"),
        width: 1.5,
        points: { show: roomy, size: 5, fill: colour("accent"), stroke: colour("accent") },
      },
      { stroke: "transparent", width: 0, points: { show: false } },
      { stroke: "transparent", width: 0, points: { show: false } },
      {
        stroke: colour("muted"),
        width: 0,
        paths: () => null,
        points: { show: true, size: 7, fill: colour("page"), stroke: colour("muted") },
      },
    ],
    bands: [{ series: [2, 3], fill: colour("band") }],
    hooks: {
      draw: [
        (plot) =>
          drawMarks(plot, {
            series,
            marks,
            asRatio,
            baseline,
            font,
            colours: { muted: colour("muted"), good: colour("good"), bad: colour("bad"), text: colour("text") },
          }),
      ],
      setCursor: [
        (plot) => {
          // Without an event it was moved from here, by a key or the address.
          if (plot.cursor.event && typeof plot.cursor.idx === "number") acts.current.onSelect(plot.cursor.idx, false);
        },
      ],
      ready: [
        (plot) => {
          acts.current.show();
          plot.over.addEventListener("click", () => {
            const point = points[plot.cursor.idx ?? -1];
            if (point) acts.current.onOpen(point);
          });
        },
      ],
    },
  };
}

function tick(value: number): string {
  return Math.abs(value) >= 1e5 || (value !== 0 && Math.abs(value) < 1e-3)
    ? value.toExponential(0)
    : String(Number(value.toPrecision(4)));
}

function rangeOf(values: readonly (number | null)[], zero: boolean): [number, number] {
  const known = values.filter((value): value is number => value !== null && Number.isFinite(value));
  if (known.length === 0) return [0, 1];
  const [least, most] = [Math.min(...known), Math.max(...known)];
  const room = (most - (zero ? 0 : least)) * 0.08 || Math.abs(most) * 0.08 || 1;
  return [zero ? Math.min(0, least) : least - room, most + room];
}

interface Marks {
  series: Series;
  marks: readonly Mark[];
  asRatio: boolean;
  baseline: number | null;
  font: string;
  colours: Record<"muted" | "good" | "bad" | "text", string>;
}

function drawMarks(plot: uPlot, { series, marks, asRatio, baseline, font, colours }: Marks): void {
  const { ctx, bbox } = plot;
  const scale = devicePixelRatio;
  ctx.save();
  ctx.font = font.replace(/^\d+px/, `${12 * scale}px`);
  ctx.textBaseline = "middle";
  if (baseline !== null) {
    const y = plot.valToPos(baseline, "y", true);
    ctx.strokeStyle = colours.muted;
    ctx.setLineDash([4 * scale, 4 * scale]);
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
    ctx.setLineDash([]);
    ctx.fillStyle = colours.muted;
    ctx.textAlign = "left";
    const said = `${words(oneLine(series.baseline?.split(" (")[0] ?? "baseline", 40))} ${number(series.baseline_value)} ${unitName(series.unit)}`;
    // Above the line, unless it is at the top.
    ctx.fillText(said.trim(), bbox.left + 8 * scale, y + (y - bbox.top < 20 * scale ? 10 : -9) * scale);
  }
  ctx.fillStyle = colours.muted;
  let taken = 0;
  for (const [index, mark] of marks.entries()) {
    const x = plot.valToPos(mark.place - 0.5, "x", true);
    ctx.strokeStyle = colours.muted;
    ctx.setLineDash(mark.kind === "segment" ? [2 * scale, 4 * scale] : []);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.setLineDash([]);
    // Over the plot, from its line on or up to it, where that runs into neither neighbour.
    const next = marks[index + 1];
    const end = next ? plot.valToPos(next.place - 0.5, "x", true) : bbox.left + bbox.width;
    const width = ctx.measureText(mark.short).width;
    const after = x + width + 8 * scale < end;
    if (!after && x - width - 8 * scale < taken) continue;
    ctx.textAlign = after ? "left" : "right";
    ctx.fillText(mark.short, x, bbox.top - 8 * scale);
    taken = after ? x + width : x;
  }
  ctx.textAlign = "center";
  for (const point of series.points) {
    const x = plot.valToPos(point.place, "x", true);
    const { value } = shownOf(series, point, asRatio);
    if (value === null) {
      if (point.outcome === null || point.outcome === "passed" || point.outcome === "built") continue;
      ctx.fillStyle = colours.bad;
      ctx.fillText("✕", x, bbox.top + bbox.height - MARK_PX * scale);
    } else if (point.verdict === "slower" || (point.verdict === "faster" && series.points.length <= 60)) {
      const y = plot.valToPos(value, "y", true);
      const slower = point.verdict === "slower";
      ctx.fillStyle = slower ? colours.bad : colours.good;
      ctx.fillText(slower ? "▼" : "▲", x, y + (slower ? 14 : -14) * scale);
      if (!slower) continue;
      ctx.beginPath();
      ctx.arc(x, y, 3.5 * scale, 0, 2 * Math.PI);
      if (point.mainline) ctx.fill();
      else {
        ctx.strokeStyle = colours.bad;
        ctx.lineWidth = 1.5 * scale;
        ctx.stroke();
      }
      // How much, where labels have room side by side and above those of the axis.
      const roomy = bbox.width / series.points.length > 48 * scale && y + 36 * scale < bbox.top + bbox.height;
      if (point.ratio != null && roomy) ctx.fillText(percent(Math.abs(point.ratio - 1)), x, y + 30 * scale);
    }
  }
  const newest = series.points.findLast((point) => point.mainline && point.value !== null);
  if (newest) {
    const { value, low, high } = shownOf(series, newest, asRatio);
    ctx.fillStyle = colours.text;
    ctx.textAlign = "left";
    if (value !== null)
      ctx.fillText(number(value, low, high), bbox.left + bbox.width + 8 * scale, plot.valToPos(value, "y", true));
  }
  ctx.restore();
}

/** Counts up whenever the colours change. */
function useTheme(): number {
  const [changes, setChanges] = useState(0);
  useEffect(() => {
    const preference = matchMedia("(prefers-color-scheme: dark)");
    const changed = () => setChanges((count) => count + 1);
    window.addEventListener("theme", changed);
    preference.addEventListener("change", changed);
    return () => {
      window.removeEventListener("theme", changed);
      preference.removeEventListener("change", changed);
    };
  }, []);
  return changes;
}
