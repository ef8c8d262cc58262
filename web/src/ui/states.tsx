import { type ReactNode, useEffect } from "react";
import { OfflineError, ProblemError } from "../api/client";
import { clean } from "../text";

/** Something that is asked for: coming, failed, or there; and there but old while the service is away. */
export function Loaded<T>({
  query,
  what,
  children,
}: {
  query: { data: T | undefined; error: Error | null; refetch: () => unknown };
  what: string;
  children: (data: T) => ReactNode;
}): ReactNode {
  if (query.data !== undefined) {
    return (
      <>
        {query.error && <Stale error={query.error} />}
        {children(query.data)}
      </>
    );
  }
  // Without a session the form to sign in is on its way.
  const unknown = query.error instanceof ProblemError && query.error.status === 401;
  if (query.error && !unknown) return <Failed error={query.error} what={what} retry={() => query.refetch()} />;
  return <Loading what={what} />;
}

/** The next page of a list, where there is one. */
export function More({
  list,
  children,
}: {
  list: { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => unknown };
  children: string;
}): ReactNode {
  if (!list.hasNextPage) return null;
  return (
    <button type="button" disabled={list.isFetchingNextPage} onClick={() => list.fetchNextPage()}>
      {children}
    </button>
  );
}

export function Loading({ what }: { what: string }): ReactNode {
  return (
    <p className="state" role="status">
      Loading {what}…
    </p>
  );
}

function Stale({ error }: { error: Error }): ReactNode {
  const why = error instanceof OfflineError ? "The service does not answer" : clean(error.message);
  return (
    <p className="notice" role="status">
      <strong>Offline.</strong> {why}. What is shown was true when it last did; it is asked again by itself.
    </p>
  );
}

export function Failed({ error, what, retry }: { error: Error; what: string; retry?: () => void }): ReactNode {
  const offline = error instanceof OfflineError;
  const missing = error instanceof ProblemError && error.status === 404;
  const title = offline ? "Offline" : missing ? "Not found" : "That failed";
  return (
    <div className="state" role="alert">
      <h2>{title}</h2>
      <p>
        {offline
          ? `The service does not answer, so ${what} can't be shown.`
          : `Asked for ${what}: ${clean(error.message)}.`}
      </p>
      {retry && !missing && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
      {missing && <a href="/">To the overview</a>}
    </div>
  );
}

export function Empty({ title, children }: { title: string; children: ReactNode }): ReactNode {
  return (
    <div className="state">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Kernelgate`;
  }, [title]);
}
