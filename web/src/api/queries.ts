import { infiniteQueryOptions, QueryCache, QueryClient, queryOptions } from "@tanstack/react-query";
import { client, type DeviceClass, keepCsrf, OfflineError, ProblemError, unwrap } from "./client";

export const REFRESH_MS = 15_000;

export const queries = new QueryClient({
  queryCache: new QueryCache({
    onError: (error, query) => {
      // The session has ended or never was: it is asked for again, and answers with the form.
      const ended = error instanceof ProblemError && error.status === 401;
      if (ended && query.queryKey[0] !== "session") void queries.invalidateQueries({ queryKey: ["session"] });
    },
  }),
  defaultOptions: {
    queries: {
      // A service on this machine answers whatever the browser thinks of the network.
      networkMode: "always",
      staleTime: 5_000,
      retry: (failures, error) => error instanceof OfflineError && failures < 2,
      retryDelay: 500,
    },
    mutations: { networkMode: "always" },
  },
});

export const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: async ({ signal }) => {
    const session = await unwrap(client.GET("/api/v1/session", { signal }));
    keepCsrf(session.csrf);
    return session;
  },
  staleTime: Number.POSITIVE_INFINITY,
});

interface Page<Item> {
  items: readonly Item[];
  next?: string | null;
}

/** What all lists do: pages that begin after a key, shown as one. */
const paged = {
  initialPageParam: undefined as string | undefined,
  getNextPageParam: (page: Page<unknown>) => page.next ?? undefined,
};
const together = <Item>({ pages }: { pages: readonly Page<Item>[] }): readonly Item[] =>
  pages.flatMap((page) => page.items);

export const projectsQuery = infiniteQueryOptions({
  ...paged,
  queryKey: ["projects"],
  queryFn: ({ pageParam, signal }) =>
    unwrap(client.GET("/api/v1/projects", { params: { query: { after: pageParam } }, signal })),
  select: together,
});

export const overviewQuery = (project: string) =>
  queryOptions({
    queryKey: ["overview", project],
    queryFn: ({ signal }) =>
      unwrap(client.GET("/api/v1/projects/{project}/overview", { params: { path: { project } }, signal })),
    refetchInterval: REFRESH_MS,
  });

export const nodesQuery = infiniteQueryOptions({
  ...paged,
  queryKey: ["nodes"],
  queryFn: ({ pageParam, signal }) =>
    unwrap(client.GET("/api/v1/nodes", { params: { query: { after: pageParam } }, signal })),
  select: together,
  refetchInterval: 5_000,
});

/** The newest first; `all`: also those that nobody needs to look at any more. */
export const regressionsQuery = (all: boolean) =>
  infiniteQueryOptions({
    ...paged,
    queryKey: ["regressions", all],
    queryFn: ({ pageParam, signal }) =>
      unwrap(
        client.GET("/api/v1/regressions", {
          params: {
            query: { state: all ? undefined : ["new", "acknowledged"], after: pageParam, limit: 20, brief: true },
          },
          signal,
        }),
      ),
    select: together,
  });

export const kernelQuery = (project: string, kernel: string) =>
  queryOptions({
    queryKey: ["kernel", project, kernel],
    queryFn: ({ signal }) =>
      unwrap(
        client.GET("/api/v1/projects/{project}/kernels/{kernel}", { params: { path: { project, kernel } }, signal }),
      ),
  });

export interface Chosen {
  project: string;
  kernel: string;
  deviceClass: DeviceClass;
  caseId: string;
  metric: string;
  limit: number;
  mainline: boolean;
  points: number;
}

export const historyQuery = (chosen: Chosen) =>
  queryOptions({
    queryKey: ["history", chosen],
    queryFn: ({ signal }) =>
      unwrap(
        client.GET("/api/v1/projects/{project}/kernels/{kernel}/history", {
          params: {
            path: { project: chosen.project, kernel: chosen.kernel },
            query: {
              device_class: chosen.deviceClass,
              case: chosen.caseId,
              metric: chosen.metric,
              limit: chosen.limit,
              mainline: chosen.mainline,
              points: chosen.points,
            },
          },
          signal,
        }),
      ),
  });

export const changesQuery = ({ project, kernel, deviceClass, caseId, metric }: Chosen) =>
  queryOptions({
    queryKey: ["changes", project, kernel, deviceClass, caseId, metric],
    queryFn: ({ signal }) =>
      unwrap(
        client.GET("/api/v1/projects/{project}/kernels/{kernel}/changes", {
          params: { path: { project, kernel }, query: { device_class: deviceClass, case: caseId, metric } },
          signal,
        }),
      ),
  });

export const scalingQuery = (project: string, kernel: string, deviceClass: DeviceClass, revision?: string) =>
  queryOptions({
    queryKey: ["scaling", project, kernel, deviceClass, revision],
    queryFn: ({ signal }) =>
      unwrap(
        client.GET("/api/v1/projects/{project}/kernels/{kernel}/scaling", {
          params: { path: { project, kernel }, query: { device_class: deviceClass, revision } },
          signal,
        }),
      ),
  });

export const revisionQuery = (id: string) =>
  queryOptions({
    queryKey: ["revision", id],
    queryFn: ({ signal }) =>
      unwrap(client.GET("/api/v1/revisions/{revision_id}", { params: { path: { revision_id: id } }, signal })),
  });

export const regressionQuery = (id: string) =>
  queryOptions({
    queryKey: ["regressions", "one", id],
    queryFn: ({ signal }) =>
      unwrap(client.GET("/api/v1/regressions/{regression_id}", { params: { path: { regression_id: id } }, signal })),
  });

/** The newest first. */
export const revisionsQuery = (project: string, kernel: string) =>
  infiniteQueryOptions({
    ...paged,
    queryKey: ["revisions", project, kernel],
    queryFn: ({ pageParam, signal }) =>
      unwrap(
        client.GET("/api/v1/revisions", {
          params: { query: { project, kernel, after: pageParam, limit: 100 } },
          signal,
        }),
      ),
    select: together,
  });

export const filesQuery = (id: string) =>
  queryOptions({
    queryKey: ["files", id],
    queryFn: ({ signal }) =>
      unwrap(client.GET("/api/v1/revisions/{revision_id}/files", { params: { path: { revision_id: id } }, signal })),
    staleTime: Number.POSITIVE_INFINITY,
  });

export const evaluationQuery = (id: string) =>
  queryOptions({
    queryKey: ["evaluation", id],
    queryFn: ({ signal }) =>
      unwrap(client.GET("/api/v1/evaluations/{evaluation_id}", { params: { path: { evaluation_id: id } }, signal })),
  });

export const logQuery = (id: string) =>
  queryOptions({
    queryKey: ["log", id],
    queryFn: ({ signal }) =>
      unwrap(
        client.GET("/api/v1/evaluations/{evaluation_id}/log", {
          params: { path: { evaluation_id: id } },
          parseAs: "text",
          signal,
        }),
      ),
  });

export const compareQuery = (project: string, kernel: string, deviceClass: DeviceClass, base: string, head: string) =>
  queryOptions({
    queryKey: ["compare", project, kernel, deviceClass, base, head],
    queryFn: ({ signal }) =>
      unwrap(
        client.GET("/api/v1/projects/{project}/kernels/{kernel}/compare", {
          params: { path: { project, kernel }, query: { base, head, device_class: deviceClass } },
          signal,
        }),
      ),
  });
