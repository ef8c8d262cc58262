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

/** By name; where each side has one function for the architecture, these two. */
export function matching(one: Statics, head: readonly Statics[], base: readonly Statics[]): Statics | undefined {
  const same = (each: Statics) => each.architecture === one.architecture;
  const there = base.filter(same);
  return (
    there.find((each) => each.function === one.function) ??
    (there.length === 1 && head.filter(same).length === 1 ? there[0] : undefined)
  );
}
