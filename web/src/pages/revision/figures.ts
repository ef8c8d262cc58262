import type { Statics } from "../../api/client";

/** Every number that is known of a function, by name: its own, and those of its groups (`wgmma_instructions`). */
export function figuresOf(one: Statics): Map<string, number> {
  const found = new Map<string, number>();
  for (const [name, value] of Object.entries(one)) {
    const group: object = typeof value === "object" && value !== null ? value : {};
    const parts = Object.entries(group).map(([part, count]) => [`${part}_${name}`, count]);
    for (const [each, count] of [[name, value], ...parts]) if (typeof count === "number") found.set(each, count);
  }
  return found;
}

// Each function has them for itself; everything else adds up (contract/statics.py).
const OF_THE_LARGEST = new Set([
  "registers",
  "stack_bytes",
  "shared_bytes",
  "static_shared_bytes",
  "dynamic_shared_bytes",
]);

/** The figures of all of them together: the largest, or the sum. */
export function togetherOf(functions: readonly Statics[]): Map<string, number> {
  const found = new Map<string, number>();
  for (const one of functions) {
    for (const [name, value] of figuresOf(one)) {
      const before = found.get(name) ?? 0;
      found.set(name, OF_THE_LARGEST.has(name) ? Math.max(before, value) : before + value);
    }
  }
  return found;
}

/**
 * The base's function that stands beside `one` of `head`: of the same name and place among those of that name (a
 * function compiled for several types has one name), where there are as many; else the only one, where each side has one.
 */
export function matching(one: Statics, head: readonly Statics[], base: readonly Statics[]): Statics | undefined {
  const same = (each: Statics) => each.architecture === one.architecture;
  const named = (each: Statics) => same(each) && each.function === one.function;
  const [own, others] = [head.filter(named), base.filter(named)];
  if (others.length > 0) return own.length === others.length ? others[own.indexOf(one)] : undefined;
  const there = base.filter(same);
  return there.length === 1 && head.filter(same).length === 1 ? there[0] : undefined;
}
