import createClient, { type Middleware } from "openapi-fetch";
import type { Readable } from "openapi-typescript-helpers";
import type { components, paths } from "./schema";

// As the client gives them back.
type Schemas = { [Name in keyof components["schemas"]]: Readable<components["schemas"][Name]> };
export type Overview = Schemas["Overview"];
export type Standing = Schemas["Standing"];
export type Node = Schemas["NodeOut"];
export type NodeDetail = Schemas["NodeDetail"];
export type Series = Schemas["Series"];
export type Point = Schemas["Point"];
export type Kernel = Schemas["KernelDetail"];
export type Scaling = Schemas["Scaling"];
export type Curve = Schemas["Curve"];
export type Revision = Schemas["RevisionOut"];
export type Evaluation = Schemas["EvaluationOut"];
export type Compared = Schemas["CompareOut"];
export type CaseComparison = Schemas["CaseComparison"];
export type CaseResult = Schemas["CaseResult"];
export type Check = Schemas["Check"];
export type Statics = Schemas["FunctionStatics"];
export type Progress = Schemas["Progress"];
export type Outcome = Schemas["Outcome"];
export type Verdict = Schemas["Verdict"];
export type Regression = Schemas["RegressionOut"];
export type RegressionState = Schemas["RegressionState"];
export type Changes = Schemas["ChangesOut"];
export type Change = Schemas["ChangeOut"];
export type DeviceClass = Schemas["DeviceClass"];

/** What the service answered instead of what was asked for (RFC 9457). */
export class ProblemError extends Error {
  constructor(
    readonly status: number,
    readonly type: string,
    detail: string,
  ) {
    super(detail);
  }
}

/** The service could not be reached. */
export class OfflineError extends Error {
  constructor() {
    super("the service does not answer");
  }
}

/** Whoever asks has not signed in, or may not see it. */
export const isRefused = (error: Error | null): boolean =>
  error instanceof ProblemError && (error.status === 401 || error.status === 403);

// Every change needs it beside the cookie. A page that is loaded anew learns it from GET /session.
let csrf: string | null = null;
export function keepCsrf(token: string | null): void {
  csrf = token;
}

const guard: Middleware = {
  onRequest({ request }) {
    if (request.method !== "GET" && csrf) request.headers.set("X-Kernelgate-CSRF", csrf);
    return request;
  },
};

export const client = createClient<paths>({
  credentials: "same-origin",
  fetch: async (request) => {
    try {
      return await fetch(request);
    } catch (error) {
      if (request.signal.aborted) throw error;
      throw new OfflineError();
    }
  },
});
client.use(guard);

/** The answer's body, or a ProblemError. */
export async function unwrap<T>(asked: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
  const { data, error, response } = await asked;
  if (response.ok) return data as T;
  const problem = (typeof error === "object" ? error : null) as { type?: string; detail?: string } | null;
  throw new ProblemError(
    response.status,
    problem?.type ?? "",
    problem?.detail ?? `the service answered ${response.status}`,
  );
}
