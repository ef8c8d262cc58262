import { useCallback } from "react";
import { useSearchParams } from "wouter";

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
