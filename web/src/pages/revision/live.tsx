import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useEffect, useState } from "react";
import { client, type Evaluation, type Progress, unwrap } from "../../api/client";
import { evaluationQuery, revisionQuery, sessionQuery } from "../../api/queries";
import { clean, oneLine } from "../../text";
import { Moment } from "../../ui/moment";

/** What it does now, as its node says it, until it has ended. */
export function Live({ evaluation }: { evaluation: Evaluation }): ReactNode {
  const { progress, lost } = useEvents(evaluation);
  const now = progress.at(-1);
  return (
    <section aria-labelledby="live">
      <h2 id="live">Now</h2>
      <p role="status">
        {evaluation.state === "queued" ? (
          <>
            Waiting for a node of class {evaluation.device_class} since <Moment at={evaluation.created_at} />
          </>
        ) : (
          <>
            {now?.stage ?? evaluation.stage ?? "starting"}
            {now?.detail && `: ${oneLine(now.detail)}`}
          </>
        )}
        {lost && <span className="muted"> (the connection was lost; trying again)</span>}
      </p>
      {progress.length > 0 && (
        <ul className="plain progress">
          {progress.map((one) => (
            <li key={one.stage}>
              <span>{one.stage}</span>
              {one.total > 0 ? (
                <>
                  <progress value={one.done} max={one.total} aria-label={`${one.stage}: ${one.done} of ${one.total}`} />
                  <span className="num">
                    {one.done}/{one.total}
                  </span>
                </>
              ) : (
                <span className="muted">{one === now ? "…" : "done"}</span>
              )}
            </li>
          ))}
        </ul>
      )}
      <Cancel evaluation={evaluation} />
    </section>
  );
}

function Cancel({ evaluation }: { evaluation: Evaluation }): ReactNode {
  const cache = useQueryClient();
  const session = useQuery(sessionQuery);
  const cancel = useMutation({
    mutationFn: () =>
      unwrap(
        client.DELETE("/api/v1/evaluations/{evaluation_id}", { params: { path: { evaluation_id: evaluation.id } } }),
      ),
    onSuccess: (answer) => cache.setQueryData(evaluationQuery(evaluation.id).queryKey, answer),
  });
  if (!session.data?.csrf || session.data.scope === "read" || session.data.scope === "worker") return null;
  return (
    <p>
      <button type="button" onClick={() => cancel.mutate()} disabled={cancel.isPending || cancel.isSuccess}>
        {cancel.isSuccess ? "Its node is being told to stop" : "Cancel it"}
      </button>
      {cancel.error && <span role="alert"> {clean(cancel.error.message)}</span>}
    </p>
  );
}

/** The latest progress of each stage, in order. The evaluation itself goes where everybody reads it. */
function useEvents({ id }: Evaluation): { progress: Progress[]; lost: boolean } {
  const cache = useQueryClient();
  const [stages, setStages] = useState<ReadonlyMap<string, Progress>>(new Map());
  const [lost, setLost] = useState(false);
  useEffect(() => {
    // The browser itself connects again and says after which event.
    const source = new EventSource(`/api/v1/evaluations/${encodeURIComponent(id)}/events`);
    const heard = (event: MessageEvent<string>) => {
      const evaluation = JSON.parse(event.data) as Evaluation;
      cache.setQueryData(evaluationQuery(id).queryKey, evaluation);
      if (event.type === "finished") {
        source.close();
        void cache.invalidateQueries({ queryKey: revisionQuery(evaluation.revision.id).queryKey });
      }
    };
    source.addEventListener("progress", (event) => {
      const progress = JSON.parse(event.data) as Progress;
      setStages((before) => new Map(before).set(progress.stage, progress));
    });
    source.addEventListener("state", heard);
    source.addEventListener("finished", heard);
    source.addEventListener("open", () => setLost(false));
    source.addEventListener("error", () => setLost(true));
    return () => source.close();
  }, [id, cache]);
  return { progress: [...stages.values()], lost };
}
