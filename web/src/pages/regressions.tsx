import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useId, useState } from "react";
import { Link } from "wouter";
import { client, type Regression, type RegressionState, unwrap } from "../api/client";
import { regressionQuery, regressionsQuery, sessionQuery } from "../api/queries";
import { toKernel, toRevision } from "../paths";
import { useSearchState } from "../search";
import { caseName, clean, many, oneLine, ratioInWords, ratioWithInterval, withCaseNames } from "../text";
import { Moment } from "../ui/moment";
import { Empty, Loaded, More, useTitle } from "../ui/states";
import { Table } from "../ui/table";
import { SIGNS } from "../ui/verdicts";

const EVIDENCE = { side_by_side: "side by side", published: "published values", history: "a step in the history" };
// What can be said of one in each state, as the service has it.
const SUCCESSORS: Record<RegressionState, RegressionState[]> = {
  new: ["acknowledged", "expected", "fixed", "noise"],
  acknowledged: ["new", "expected", "fixed", "noise"],
  expected: ["new", "acknowledged", "fixed", "noise"],
  fixed: ["new"],
  noise: ["new"],
};

export default function RegressionsPage(): ReactNode {
  useTitle("Regressions");
  const [search, change] = useSearchState();
  const all = search.has("all");
  const regressions = useInfiniteQuery(regressionsQuery(all));
  return (
    <>
      <h1>Regressions</h1>
      <div className="controls">
        <button type="button" aria-pressed={!all} onClick={() => change({ all: null })}>
          open
        </button>
        <button type="button" aria-pressed={all} onClick={() => change({ all: "1" })}>
          all
        </button>
      </div>
      <Loaded query={regressions} what="regressions">
        {(found) =>
          found.length === 0 ? (
            <Empty title={all ? "No regression yet" : "Nothing open"}>
              <p>What gets slower on a mainline, and what was said of it, is listed here: one entry a cause.</p>
            </Empty>
          ) : (
            found.map((one) => <Entry key={one.id} regression={one} />)
          )
        }
      </Loaded>
      <More list={regressions}>Older ones</More>
    </>
  );
}

function Entry({ regression: one }: { regression: Regression }): ReactNode {
  const suspects = one.suspects.length > 1 ? one.suspects : [];
  return (
    <article className={one.state === "new" ? "sentence is-bad" : "sentence"}>
      <h2>{withCaseNames(clean(one.sentence))}</h2>
      <p>
        <span className="state-word">{one.state}</span> · caused by{" "}
        <Link href={toRevision(one.revision.id)}>
          {one.kernels[0]} {oneLine(one.revision.label)}
        </Link>
        {one.revision.summary && `: ${oneLine(one.revision.summary)}`}{" "}
        <span className="muted">
          <Moment at={one.created_at} />
        </span>
      </p>
      {suspects.length > 0 && (
        <p>
          {many(suspects.length, "suspect")}: those before it were not measured.{" "}
          {suspects.map((each, place) => (
            <span key={each.id}>
              {place > 0 && ", "}
              <Link href={toRevision(each.id)}>{oneLine(each.label)}</Link>
            </span>
          ))}
        </p>
      )}
      {one.fixed_by && (
        <p>
          Back at the level before with <Link href={toRevision(one.fixed_by.id)}>{oneLine(one.fixed_by.label)}</Link>.
        </p>
      )}
      {one.reason && one.state !== "new" && (
        <p className="muted">
          {one.who && `${oneLine(one.who)}: `}
          {clean(one.reason)}
        </p>
      )}
      <Cases regression={one} />
      <Say regression={one} />
    </article>
  );
}

/** All of them are asked for when they are opened. */
function Cases({ regression: one }: { regression: Regression }): ReactNode {
  const [opened, setOpened] = useState(false);
  const whole = useQuery({ ...regressionQuery(one.id), enabled: opened });
  return (
    <details onToggle={(event) => setOpened(event.currentTarget.open)}>
      <summary>{many(one.affected, "affected case")}</summary>
      {opened && (
        <Loaded query={whole} what="the affected cases">
          {(found) => <Affected regression={found} />}
        </Loaded>
      )}
    </details>
  );
}

function Affected({ regression }: { regression: Regression }): ReactNode {
  return (
    <Table
      label="Affected cases, the most affected first"
      head={["case", "class", "change", "time ratio", "against", "evidence", "now"].map((name) => (
        <th key={name} scope="col">
          {name}
        </th>
      ))}
    >
      {regression.cases.map((each) => (
        <tr key={`${each.kernel} ${each.device_class} ${each.case}`}>
          <th scope="row">
            <Link
              href={toKernel(regression.project, each.kernel, {
                class: each.device_class,
                case: each.case,
                metric: each.metric,
                at: each.revision.id,
              })}
            >
              {caseName(each.case)}
            </Link>
          </th>
          <td>{each.device_class}</td>
          <td>
            <span className={each.ratio > 1 ? "sign-slower" : "sign-faster"}>
              {each.ratio > 1 ? SIGNS.slower : SIGNS.faster} {ratioInWords(each.ratio, each.interval)}
            </span>
          </td>
          <td className="mono">{ratioWithInterval(each.ratio, each.interval)}</td>
          <td>{oneLine(each.base?.label ?? "")}</td>
          <td className="muted">{EVIDENCE[each.evidence]}</td>
          <td>
            {each.fixed_by ? `fixed by ${oneLine(each.fixed_by.label)}` : each.now != null && ratioInWords(each.now)}
          </td>
        </tr>
      ))}
    </Table>
  );
}

/** Maintainers say what it is, and why: the reason is kept. */
function Say({ regression }: { regression: Regression }): ReactNode {
  const cache = useQueryClient();
  const session = useQuery(sessionQuery);
  const [reason, setReason] = useState("");
  const [state, setState] = useState<RegressionState>(SUCCESSORS[regression.state][0] ?? "new");
  const field = useId();
  const say = useMutation({
    mutationFn: () =>
      unwrap(
        client.PATCH("/api/v1/regressions/{regression_id}", {
          params: { path: { regression_id: regression.id } },
          body: { state, reason, who: "" },
        }),
      ),
    onSuccess: (changed) => {
      setReason("");
      setState(SUCCESSORS[changed.state][0] ?? "new");
      void cache.invalidateQueries({ queryKey: ["regressions"] });
    },
  });
  if (!session.data?.csrf || (session.data.scope !== "maintain" && session.data.scope !== "admin")) return null;
  return (
    <form
      className="controls say"
      onSubmit={(event) => {
        event.preventDefault();
        say.mutate();
      }}
    >
      <label>
        it is{" "}
        <select value={state} onChange={(event) => setState(event.target.value as RegressionState)}>
          {SUCCESSORS[regression.state].map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </select>
      </label>
      <label htmlFor={field}>because</label>
      <input id={field} required maxLength={2000} value={reason} onChange={(event) => setReason(event.target.value)} />
      <button type="submit" disabled={say.isPending}>
        Say so
      </button>
      {say.error && <span role="alert">{clean(say.error.message)}</span>}
    </form>
  );
}
