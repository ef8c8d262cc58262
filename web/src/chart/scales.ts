export interface Spot {
  x: number;
  y: number;
}

/** A logarithmic axis. */
export function scaleOf(values: readonly number[], from: number, to: number): (value: number) => number {
  const logs = values.map(Math.log);
  const [least, most] = [Math.min(...logs), Math.max(...logs)];
  return (value) =>
    most === least ? (from + to) / 2 : from + ((Math.log(value) - least) / (most - least)) * (to - from);
}

// Of every power of ten: as few as tell where the values lie.
const STEPS = [[1], [1, 2, 5], [1, 1.5, 2, 3, 4, 5, 6, 8]];

export function ticksOf(values: readonly number[]): number[] {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const powers = Array.from(
    { length: Math.ceil(Math.log10(most)) - Math.floor(Math.log10(least)) + 1 },
    (_, place) => 10 ** (Math.floor(Math.log10(least)) + place),
  );
  for (const steps of STEPS) {
    const all = powers.flatMap((power) => steps.map((step) => step * power));
    const found = all.filter((value) => value >= least && value <= most);
    if (found.length > 2 || (found.length > 1 && steps === STEPS.at(-1))) return found;
  }
  return [...new Set([least, most])];
}

/** The line that nothing is above: memory's slope, and from the ridge on the processor's peak. It goes a little beyond
 * what was measured, and never leaves out the ridge where that is near. */
export function roofOf(
  intensities: readonly number[],
  { throughput, per_intensity: slope }: { throughput: number; per_intensity: number },
): Spot[] {
  const ridge = throughput / slope;
  const [least, most] = [Math.min(...intensities) / 1.5, Math.max(...intensities) * 1.5];
  const from = ridge > least / 4 ? Math.min(least, ridge / 1.5) : least;
  const to = ridge < most * 4 ? Math.max(most, ridge * 1.5) : most;
  const xs = [from, ...(ridge > from && ridge < to ? [ridge] : []), to];
  return xs.map((x) => ({ x, y: Math.min(throughput, slope * x) }));
}

/** Where labels stand that would lie on each other: as near to their own place as `room` apart lets them. */
export function apart(places: readonly number[], room: number): number[] {
  const order = places.map((_, index) => index).sort((one, other) => (places[one] ?? 0) - (places[other] ?? 0));
  const moved = [...places];
  // Each pass pushes overlapping neighbours half the way each; a handful of labels settles in a few.
  for (let pass = 0; pass < 50; pass++) {
    let still = true;
    for (let next = 1; next < order.length; next++) {
      const [above, below] = [order[next - 1] ?? 0, order[next] ?? 0];
      const overlap = room - ((moved[below] ?? 0) - (moved[above] ?? 0));
      if (overlap < 0.5) continue;
      moved[above] = (moved[above] ?? 0) - overlap / 2;
      moved[below] = (moved[below] ?? 0) + overlap / 2;
      still = false;
    }
    if (still) break;
  }
  return moved;
}
