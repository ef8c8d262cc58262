import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useEffect, useRef } from "react";
import { Link, Redirect, Route, Switch, useLocation } from "wouter";
import { client, isRefused, keepCsrf, OfflineError, unwrap } from "./api/client";
import { evaluationQuery, kernelQuery, projectsQuery, queries, revisionQuery, sessionQuery } from "./api/queries";
import { LinkPage, TokenForm } from "./pages/login";
import { OverviewPage } from "./pages/overview";
import { decoded, toProject, toRevision } from "./paths";
import { Boundary } from "./ui/boundary";
import { Later, partOf } from "./ui/later";
import { Empty, Failed, Loaded, More, useTitle } from "./ui/states";
import { ThemeButton } from "./ui/theme";

// Charts and cases come with the pages that show them.
const kernelPage = partOf(() => import("./pages/kernel/index"));
const revisionPage = partOf(() => import("./pages/revision/index"));
const regressionsPage = partOf(() => import("./pages/regressions"));
const nodesPage = partOf(() => import("./pages/nodes"));

// A page that is opened by its address needs its part and its subject at once, not one after the other.
const [, first, second, third, fourth] = window.location.pathname.split("/");
if (first === "projects" && third === "kernels" && second && fourth) {
  void kernelPage.load().catch(() => {});
  void queries.prefetchQuery(kernelQuery(second, fourth));
}
if (first === "revisions" && second) {
  void revisionPage.load().catch(() => {});
  void queries.prefetchQuery(revisionQuery(second));
}

export function App(): ReactNode {
  const [path] = useLocation();
  const session = useQuery({ ...sessionQuery, refetchInterval: (query) => (query.state.error ? 5_000 : false) });
  const main = useRef<HTMLElement>(null);
  const shown = useRef(path);
  useEffect(() => {
    // A page was followed to: whoever reads with the keyboard or the ear goes on at its top.
    if (shown.current !== path) main.current?.focus({ preventScroll: true });
    shown.current = path;
    window.scrollTo(0, 0);
  }, [path]);
  return (
    <>
      <a className="skip" href="#main">
        Skip to the page
      </a>
      <Header signedIn={Boolean(session.data?.csrf)} known={session.data !== undefined} />
      <main id="main" ref={main} tabIndex={-1}>
        <Boundary path={path}>{path === "/login" ? <LinkPage /> : <Signed {...session} />}</Boundary>
      </main>
    </>
  );
}

/** Pages ask for what they show beside the session, not after it. Where there is none, that is what is asked for. */
function Signed({ data, error, refetch }: { data: unknown; error: Error | null; refetch: () => void }): ReactNode {
  if (isRefused(error)) return <TokenForm />;
  if (error && (error instanceof OfflineError || data === undefined)) {
    return <Failed error={error} what="this page" retry={refetch} />;
  }
  return (
    <Switch>
      <Route path="/">
        <HomePage />
      </Route>
      <Route path="/projects/:project">{({ project }) => <OverviewPage project={decoded(project)} />}</Route>
      <Route path="/projects/:project/kernels/:kernel">
        {({ project, kernel }) => (
          <Later part={kernelPage} props={{ project: decoded(project), kernel: decoded(kernel) }} />
        )}
      </Route>
      <Route path="/revisions/:id">
        {({ id }) => <Later key={id} part={revisionPage} props={{ id: decoded(id) }} />}
      </Route>
      <Route path="/evaluations/:id">{({ id }) => <EvaluationLink id={decoded(id)} />}</Route>
      <Route path="/regressions">
        <Later part={regressionsPage} props={{}} />
      </Route>
      <Route path="/nodes">
        <Later part={nodesPage} props={{}} />
      </Route>
      <Route>
        <Empty title="Not found">
          <p>
            There is no such page. <Link href="/">To the overview</Link>
          </p>
        </Empty>
      </Route>
    </Switch>
  );
}

function Header({ signedIn, known }: { signedIn: boolean; known: boolean }): ReactNode {
  const cache = useQueryClient();
  const [, navigate] = useLocation();
  const signOut = async () => {
    await unwrap(client.DELETE("/api/v1/session"));
    keepCsrf(null);
    cache.clear();
    navigate("/login");
  };
  return (
    <header>
      <nav aria-label="Pages">
        <Link href="/" className="brand">
          Kernelgate
        </Link>
        {known && <Link href="/regressions">Regressions</Link>}
        {known && <Link href="/nodes">Nodes</Link>}
      </nav>
      <div className="tools">
        {known && !signedIn && <Link href="/login">Sign in</Link>}
        {signedIn && (
          <button type="button" className="quiet" onClick={signOut}>
            Sign out
          </button>
        )}
        <ThemeButton />
      </div>
    </header>
  );
}

/** The one project, or a choice of them. */
function HomePage(): ReactNode {
  useTitle("Projects");
  const projects = useInfiniteQuery(projectsQuery);
  return (
    <Loaded query={projects} what="projects">
      {(found) => {
        const [only] = found;
        if (!only) {
          return (
            <Empty title="Nothing here yet">
              <p>Submit a first kernel, and its project is made:</p>
              <pre>kernelgate submit kernels/sgemm_cpu/v1_blocked --wait</pre>
            </Empty>
          );
        }
        if (found.length === 1) return <Redirect to={toProject(only.slug)} replace />;
        return (
          <>
            <h1>Projects</h1>
            <ul className="plain">
              {found.map((project) => (
                <li key={project.slug}>
                  <Link href={toProject(project.slug)}>{project.name || project.slug}</Link>
                </li>
              ))}
            </ul>
            <More list={projects}>More projects</More>
          </>
        );
      }}
    </Loaded>
  );
}

/** Links of checks and comments name an evaluation: it is shown on its revision's page. */
function EvaluationLink({ id }: { id: string }): ReactNode {
  const evaluation = useQuery(evaluationQuery(id));
  return (
    <Loaded query={evaluation} what="the evaluation">
      {(found) => <Redirect to={toRevision(found.revision.id, id)} replace />}
    </Loaded>
  );
}
