import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import type { Compared, Evaluation, Revision } from "../../api/client";
import { compareQuery } from "../../api/queries";
import { useSearchState } from "../../search";

/** What the revision is compared with: its base, or whichever revision the address names. */
export function useCompared(
  evaluation: Evaluation,
  revision: Revision,
): { against: string | null; query: UseQueryResult<Compared> } {
  const [search] = useSearchState();
  const against = search.get("against") ?? evaluation.base?.id ?? null;
  const query = useQuery({
    ...compareQuery(revision.project, revision.kernel, evaluation.device_class, against ?? "", revision.id),
    enabled: against !== null && evaluation.finished_at !== null,
  });
  return { against, query };
}
