import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { useLocation } from "wouter";
import { client, keepCsrf, unwrap } from "../api/client";
import { sessionQuery } from "../api/queries";
import { clean } from "../text";
import { useTitle } from "../ui/states";

type Credential = { token: string } | { code: string };

function useSignIn() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (credential: Credential) =>
      unwrap(client.POST("/api/v1/session", { body: { token: null, code: null, ...credential } })),
    onSuccess: (session) => {
      keepCsrf(session.csrf);
      cache.clear();
      cache.setQueryData(sessionQuery.queryKey, session);
    },
  });
}

/** A one-time link: its code stands behind `#`, is spent at once, and leaves the address bar and the history. */
export function LinkPage(): ReactNode {
  useTitle("Sign in");
  const [, navigate] = useLocation();
  const { mutate, error } = useSignIn();
  const [code] = useState(() => new URLSearchParams(window.location.hash.slice(1)).get("code"));
  const sent = useRef(false);
  useEffect(() => {
    if (!code || sent.current) return;
    sent.current = true;
    window.history.replaceState(null, "", "/login");
    mutate({ code }, { onSuccess: () => navigate("/", { replace: true }) });
  }, [code, mutate, navigate]);
  if (!code) return <TokenForm onDone={() => navigate("/", { replace: true })} />;
  if (error) {
    return (
      <TokenForm
        note="This link was used already or is too old: each works once. Ask for another with `kernelgate up`, or use a token."
        onDone={() => navigate("/", { replace: true })}
      />
    );
  }
  return (
    <p className="state" role="status">
      Signing in…
    </p>
  );
}

export function TokenForm({ note, onDone }: { note?: string; onDone?: () => void }): ReactNode {
  useTitle("Sign in");
  const [token, setToken] = useState("");
  const { mutate, error, isPending } = useSignIn();
  return (
    <form
      className="login"
      onSubmit={(event) => {
        event.preventDefault();
        mutate({ token: token.trim() }, { onSuccess: onDone });
      }}
    >
      <h1>Sign in</h1>
      {note && <p className="notice">{note}</p>}
      <label htmlFor="token">Token</label>
      <input
        id="token"
        type="password"
        autoComplete="current-password"
        required
        value={token}
        onChange={(event) => setToken(event.target.value)}
        aria-describedby="token-help"
      />
      <p id="token-help" className="muted">
        <code>kernelgate token create</code> makes one; <code>kernelgate up</code> prints a link that signs in by
        itself.
      </p>
      {error && (
        <p className="notice bad" role="alert">
          {clean(error.message)}
        </p>
      )}
      <button type="submit" className="primary" disabled={isPending}>
        Sign in
      </button>
    </form>
  );
}
