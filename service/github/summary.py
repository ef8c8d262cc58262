"""What a check says: one sentence, one table with the bad rows first, how to get the same, where to read on."""

from collections.abc import Iterator, Sequence

from contract.api import EvaluationOut
from contract.gate import GateRow, RowStatus
from contract.outcomes import State
from contract.statics import STATIC_METRICS
from service.github.conclusions import Decision
from service.github.markdown import MAX_TEXT_BYTES, code, escape, shorten, take_lines
from service.github.plans import Plan, Preview, Target
from service.github.standing import Scene

_SIGNS = {
    RowStatus.BAD: "✗",
    RowStatus.MISSING: "?",
    RowStatus.CANCELLED: "-",
    RowStatus.PENDING: "…",
    RowStatus.UNPROVEN: "?",
    RowStatus.TOLERATED: "!",
    RowStatus.GOOD: "✓",
}
_HEAD = ["| | kernel | class | case | against | time ratio | verdict |", "|-|-|-|-|-|-|-|"]
# Room for the rows' part in each of the two texts; the rest is bounded below it.
_ROWS_BYTES = 50_000
_REST_BYTES = 12_000
# Without those that are sums of others.
_STATICS = tuple(metric for metric in STATIC_METRICS if metric not in {"spill_bytes", "shared_bytes"})
_MOST_FUNCTIONS = 16


def texts_of(scene: Scene, decision: Decision, *, public_url: str) -> tuple[str, str | None]:
    """(summary, text) of a check run. Rows that the summary has no room for go on in the text, and those that don't fit
    there either are linked."""
    top = [f"**{escape(decision.sentence)}**", ""]
    bottom = list(_rest(scene, public_url=public_url))
    rows = [_row(row, public_url) for row in scene.standing.answer.rows] if scene.standing.answer else []
    shown, left = take_lines(rows, limit=_ROWS_BYTES)
    table = [*_HEAD, *shown, ""] if shown else []
    if left:
        table.append(f"{len(left)} more rows are below, under the annotations.")
    summary = "\n".join([*top, *table, shorten("\n".join(bottom), _REST_BYTES)])
    return shorten(summary, MAX_TEXT_BYTES), _overflow(left, scene, public_url) if left else None


def _overflow(rows: Sequence[str], scene: Scene, public_url: str) -> str:
    shown, left = take_lines(rows, limit=_ROWS_BYTES)
    lines = [*_HEAD, *shown, ""]
    if left:
        evaluations = [each.id for listed in scene.evaluations.values() for each in listed]
        links = ", ".join(f"[{each}]({public_url}/evaluations/{each})" for each in evaluations)
        lines.append(f"{len(left)} more rows: {links}")
    return shorten("\n".join(lines), MAX_TEXT_BYTES)


def _row(row: GateRow, public_url: str) -> str:
    kernel = escape(f"{row.kernel} {row.revision or ''}".strip())
    case = code(row.case) if row.case else ""
    ratio = ""
    if row.ratio is not None:
        span = f" [{row.interval[0]:.4f}, {row.interval[1]:.4f}]" if row.interval else ""
        ratio = f"{row.ratio:.4f}{span}"
    said = escape(row.said)
    if row.evaluation:
        said = f"[{said}]({public_url}/evaluations/{row.evaluation})"
    sign = _SIGNS[row.status]
    cells = [sign, kernel, row.device_class or "", case, escape(row.base or ""), ratio, said]
    return f"| {' | '.join(cells)} |"


def _rest(scene: Scene, *, public_url: str) -> Iterator[str]:
    plan = scene.plan
    if plan is None:
        return
    for hold in scene.standing.holds:
        yield f"- **needs acceptance:** {escape(hold.said)} (`{hold.digest[:12]}`)"
    for said in scene.accepted:
        yield f"- {escape(said)}"
    for fault in plan.faults:
        yield f"- {code(fault.path)}: {escape(fault.said)}"
    for note in plan.notes:
        yield f"- {escape(note)}"
    if scene.standing.unapproved:
        yield from _how_to_approve(scene)
    yield from _progress(scene)
    yield from _previews(scene, plan, public_url=public_url)
    for place, target in enumerate(plan.targets):
        yield from _about(target, scene.evaluations.get(place, ()), public_url=public_url)
    yield ""
    yield f"Compared with `{plan.base_sha[:12]}`."


def _how_to_approve(scene: Scene) -> Iterator[str]:
    sha = scene.gate.head_sha[:12]
    yield "- Read the change first: it runs on the GPU nodes. Then press `Let it run`, or comment"
    yield f"  `/kernelgate run {sha}`. That lets this commit run and no later one."


def _progress(scene: Scene) -> Iterator[str]:
    waiting = [
        each for listed in scene.evaluations.values() for each in listed if each.state in {State.QUEUED, State.LEASED}
    ]
    for each in waiting:
        where = f"{each.kernel} {each.revision.label} on {each.device_class.value}"
        doing = each.progress or (each.stage.value if each.stage else "waiting for a node")
        yield f"- {escape(where)}: {escape(doing)}"


def _previews(scene: Scene, plan: Plan, *, public_url: str) -> Iterator[str]:
    for place, preview in enumerate(plan.previews):
        for each in scene.previews.get(place, ()):
            said = each.summary or "not finished yet"
            where = f"{each.kernel} {each.revision.label} on {each.device_class.value}"
            place_of = f"[{escape(where)}]({public_url}/evaluations/{each.id})"
            yield f"- the edited suite (`{preview.suite.digest[:12]}`) would say of {place_of}: {escape(said)}"


def _about(target: Target | Preview, evaluations: Sequence[EvaluationOut], *, public_url: str) -> Iterator[str]:
    yield ""
    against = f"against {target.base.label}" if target.base else "without a base"
    base_from = f" ({escape(target.base_from)})" if isinstance(target, Target) else ""
    yield f"**{escape(target.kernel)} {escape(target.head.label)}** {escape(against)}{base_from}"
    for each in evaluations:
        measured = f", finished {each.finished_at:%Y-%m-%d %H:%M} UTC" if each.finished_at else ""
        device = f" on {escape(each.environment.device)}" if each.environment else ""
        yield f"- [{each.id}]({public_url}/evaluations/{each.id}){device}{measured}"
        yield from _statics(each)
    classes = dict.fromkeys(each.device_class.value for each in evaluations)
    command = ["kernelgate submit", target.head.folder]
    command += [f"--base {target.base.digest}"] if target.base else []
    command += [f"--device-class {each}" for each in classes]
    yield f"- the same again: {code(' '.join([*command, '--wait']))}"


def _statics(evaluation: EvaluationOut) -> Iterator[str]:
    """What changed in the machine code, where both sides are known."""
    before = {(each.function, each.architecture): each for each in evaluation.base_statics}
    for each in evaluation.statics[:_MOST_FUNCTIONS]:
        base = before.get((each.function, each.architecture))
        if base is None:
            continue
        changes = [
            f"{name.replace('_', ' ')} {old} to {new}"
            for name in _STATICS
            if (old := base.value(name)) != (new := each.value(name)) and old is not None and new is not None
        ]
        if changes:
            yield f"  - {code(each.function)} on {each.architecture}: {', '.join(changes)}"
