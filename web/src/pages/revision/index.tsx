import { useQueries, useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link } from "wouter";
import type { Evaluation, Revision } from "../../api/client";
import { evaluationQuery, revisionQuery } from "../../api/queries";
import { toKernel, toRevision } from "../../paths";
import { useSearchState } from "../../search";
import { clean, many, oneLine, withCaseNames } from "../../text";
import { Moment } from "../../ui/moment";
import { Empty, Loaded, useTitle } from "../../ui/states";
import { isBad, OutcomeText } from "../../ui/verdicts";
import { CasesSection } from "./cases";
import { ChecksSection } from "./checks";
import { Live } from "./live";
import { ProfileSection } from "./profile";
import { EnvironmentSection, LogSection, ReproduceSection, StagesSection } from "./run";
import { SourceSection } from "./source";
import { StaticsSection } from "./statics";

// As many evaluations are asked for as tabs are shown.
const TABS = 8;

export default function RevisionPage({ id }: { id: string }): ReactNode {
  const revision = useQuery(revisionQuery(id));
  const [search] = useSearchState();
  useTitle(revision.data ? `${revision.data.kernel} ${oneLine(revision.data.label, 40)}` : "Revision");
  return (
    <Loaded query={revision} what="the revision">
      {(found) => (
        <>
          <Head revision={found} />
          {found.evaluations.length === 0 && !search.has("evaluation") ? (
            <Empty title={found.origin === "imported" ? "Measured elsewhere" : "Not evaluated"}>
              <p>
                {found.origin === "imported"
                  ? "It was imported and not verified here. Its values are in "
                  : "Nothing has been asked of it. What was measured before it is in "}
                <Link href={toKernel(found.project, found.kernel, { at: found.id })}>
                  the history of {found.kernel}
                </Link>
                .
              </p>
            </Empty>
          ) : (
            <Evaluations revision={found} />
          )}
        </>
      )}
    </Loaded>
  );
}

function Head({ revision }: { revision: Revision }): ReactNode {
  return (
    <>
      <p className="crumbs">
        <Link href={toKernel(revision.project, revision.kernel)}>
          {revision.project} / {revision.kernel}
        </Link>
      </p>
      <h1>
        {revision.kernel} {oneLine(revision.label)}
      </h1>
      {revision.summary && <p>{oneLine(revision.summary, 500)}</p>}
      <p className="muted">
        {revision.commit && (
          <>
            commit <code>{revision.commit.slice(0, 12)}</code>
            {revision.branch && ` of ${oneLine(revision.branch)}`},{" "}
          </>
        )}
        {revision.mainline ? "on the mainline" : "beside the mainline"},{" "}
        {revision.origin === "imported" ? "imported" : "submitted"} <Moment at={revision.created_at} />
        {revision.provenance && `: ${oneLine(revision.provenance, 500)}`}
      </p>
    </>
  );
}

function Evaluations({ revision }: { revision: Revision }): ReactNode {
  const [search] = useSearchState();
  const ids = revision.evaluations.slice(0, TABS);
  const chosen = search.get("evaluation") ?? ids[0] ?? "";
  const wanted = ids.includes(chosen) ? ids : [chosen, ...ids];
  const found = useQueries({ queries: wanted.map((id) => evaluationQuery(id)) });
  const shown = found[wanted.indexOf(chosen)];
  return (
    <>
      {wanted.length > 1 && (
        <ul className="tabs" aria-label="Evaluations">
          {wanted.map((id, place) => {
            const evaluation = found[place]?.data;
            return (
              <li key={id}>
                <Link href={toRevision(revision.id, id)} aria-current={id === chosen ? "true" : undefined}>
                  {evaluation ? <TabWords evaluation={evaluation} /> : "…"}
                </Link>
              </li>
            );
          })}
        </ul>
      )}
      {shown && (
        <Loaded query={shown} what="the evaluation">
          {(evaluation) => <EvaluationView key={evaluation.id} evaluation={evaluation} revision={revision} />}
        </Loaded>
      )}
    </>
  );
}

function TabWords({ evaluation }: { evaluation: Evaluation }): ReactNode {
  return (
    <>
      {evaluation.device_class}
      {evaluation.base && ` against ${oneLine(evaluation.base.label, 20)}`}{" "}
      <OutcomeText outcome={evaluation.outcome} otherwise={evaluation.state} />
    </>
  );
}

function EvaluationView({ evaluation, revision }: { evaluation: Evaluation; revision: Revision }): ReactNode {
  const running = evaluation.state === "queued" || evaluation.state === "leased";
  return (
    <>
      <Sentence evaluation={evaluation} />
      {running && <Live evaluation={evaluation} />}
      {!running && <CasesSection evaluation={evaluation} revision={revision} />}
      <ProfileSection evaluation={evaluation} />
      <ChecksSection checks={evaluation.checks} />
      <StaticsSection evaluation={evaluation} revision={revision} />
      {evaluation.left_out.length > 0 && (
        <section aria-labelledby="left-out">
          <h2 id="left-out">Left out</h2>
          <ul>
            {evaluation.left_out.map((one) => (
              <li key={`${one.stage} ${one.why}`}>
                {one.stage}: {oneLine(one.why, 1000)}
              </li>
            ))}
          </ul>
        </section>
      )}
      {revision.origin === "submitted" && <SourceSection revision={revision} evaluation={evaluation} />}
      <StagesSection evaluation={evaluation} />
      {revision.origin === "submitted" && !running && <LogSection evaluation={evaluation} />}
      <EnvironmentSection environment={evaluation.environment} />
      <ReproduceSection command={evaluation.reproduce} />
    </>
  );
}

/** `hgemm v4 against v3 on h200: passed, …`: the first line, as on the terminal. */
function Sentence({ evaluation }: { evaluation: Evaluation }): ReactNode {
  const against = evaluation.base ? ` against ${oneLine(evaluation.base.label)}` : "";
  const again = evaluation.repeat > 1 ? ` (repeat ${evaluation.repeat})` : "";
  const how = evaluation.build_only ? "built for" : "on";
  const outcome = evaluation.outcome?.replaceAll("_", " ") ?? "";
  const summary = withCaseNames(oneLine(evaluation.summary ?? "", 1000));
  const message = clean(evaluation.message ?? "").trim();
  const repeated = oneLine(message, 60).replace(/…$/, "").trimEnd();
  const shows = message.includes("\n") || (isBad(evaluation.outcome) && message !== "" && !summary.includes(repeated));
  // What stands in full below isn't repeated, cut short, above.
  const rest = shows ? summary.split(repeated, 1).join("") : summary;
  const said = (rest.startsWith(outcome) ? rest.slice(outcome.length) : rest).replace(/^[:\s]+|[:\s]+$/g, "");
  return (
    <div className={isBad(evaluation.outcome) ? "sentence is-bad" : "sentence"}>
      <p>
        <OutcomeText outcome={evaluation.outcome} otherwise={evaluation.state} />
        {said && (
          <>
            {said.startsWith("(") ? " " : ": "}
            {said}
          </>
        )}
      </p>
      <p className="muted">
        {oneLine(evaluation.revision.label)}
        {against} {how} {evaluation.device_class}
        {again}
        {evaluation.attempts.length > 0 && `, node ${oneLine(evaluation.attempts.at(-1)?.node ?? "")}`}
        {evaluation.attempts.length > 1 && `, ${many(evaluation.attempts.length, "attempt")}`}
        {evaluation.finished_at && (
          <>
            , <Moment at={evaluation.finished_at} />
          </>
        )}
      </p>
      {shows && <pre>{message}</pre>}
    </div>
  );
}
