import { useCallback } from "react";
import { useSearchParams } from "wouter";

export const ALL = 10_000;

/** How many revisions are asked for, the newest: all, unless the address has a number that can be one. */
export function rangeOf(search: URLSearchParams): number {
  const range = Number(search.get("range"));
  return Number.isInteger(range) && range > 0 ? Math.min(range, ALL) : ALL;
}

/** What a page shows is in its address. `change` keeps the rest; null takes a part out. */
export function useSearchState(): [URLSearchParams, (change: Record<string, string | null>, push?: boolean) => void] {
  const [search, setSearch] = useSearchParams();
  const change = useCallback(
    (changed: Record<string, string | null>, push = true) =>
      setSearch(
        (now) => {
          const next = new URLSearchParams(now);
          for (const [name, value] of Object.entries(changed)) {
            if (value === null) next.delete(name);
            else next.set(name, value);
          }
          return next;
        },
        { replace: !push },
      ),
    [setSearch],
  );
  return [search, change];
}
