"""The lines of an evaluation's stages: what was built, how it was verified, how far measuring is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

from rich.text import Text

from cli.text import case_name, duration, file_size, many
from contract.api import EvaluationOut
from contract.devices import COMPILED_FOR
from contract.job import Progress
from contract.outcomes import Stage
from contract.report import Check, StageTime
from contract.statics import INSTRUCTION_CLASSES, METRIC_OF, FunctionStatics, static_value
from contract.text import one_line

BAR_CELLS = 20
_SHOWN = (Stage.BUILD, Stage.RECORD, Stage.VERIFY, Stage.MEASURE, Stage.SANITIZE, Stage.PROFILE)


def stage_lines(evaluation: EvaluationOut, progress: Sequence[Progress]) -> list[Text]:
    """Lines for each stage that has begun, in order: what a finished one found, how far a running one is; and what was
    left out of it, and why."""
    ended = {time.stage: time for time in evaluation.stages}
    heard = {one.stage: one for one in progress}
    lines = []
    for stage in Stage:
        if stage in ended and stage in _SHOWN:
            lines.append(_line(stage, _ended(stage, evaluation, ended[stage])))
            if stage is Stage.BUILD:
                lines += _by_architecture(evaluation)
        elif stage in heard and (stage in _SHOWN or stage is progress[-1].stage) and not ended:
            over = stage is not progress[-1].stage
            lines.append(_line(stage, progress_words(heard[stage], idle="done" if over else "…")))
        lines += [
            _line(stage, f"left out: {one_line(one.why, limit=600)}")
            for one in evaluation.left_out
            if one.stage is stage
        ]
    return lines


def progress_words(progress: Progress, *, idle: str = "…") -> str:
    """`idle`: what is said of a stage that tells neither counts nor details."""
    counted = f"{bar(progress.done, progress.total)}  {progress.done}/{progress.total}" if progress.total else ""
    return "   ".join(part for part in (counted, one_line(progress.detail)) if part) or idle


def bar(done: int, total: int) -> str:
    full = min(BAR_CELLS, BAR_CELLS * done // max(1, total))
    return "█" * full + "░" * (BAR_CELLS - full)


def statics_words(statics: Iterable[FunctionStatics], base: Iterable[FunctionStatics], base_label: str | None) -> str:
    """`128 registers, no spills, 32 KiB shared, 9.1 KiB code (v3: 37 KiB shared)`; the base where it differs."""
    head, other = _summary(tuple(statics)), _summary(tuple(base))
    differing = [words for name, words in other.items() if head.get(name) != words]
    said = ", ".join(head.values())
    return f"{said} ({one_line(base_label)}: {', '.join(differing)})" if differing and base_label else said


def instruction_words(statics: Sequence[FunctionStatics]) -> str:
    """`64 mma, 24 async copy, 5 barrier`: of each class that the code has any of."""
    counted = {name: static_value(statics, METRIC_OF[name]) for name in INSTRUCTION_CLASSES}
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counted.items() if count)


def worst_registers(statics: Iterable[FunctionStatics]) -> int | None:
    """The most registers that a thread of any of the functions takes."""
    return static_value(statics, "registers")


def spilled_bytes(statics: Iterable[FunctionStatics]) -> int | None:
    """Spilled bytes of all functions, stores and loads."""
    return static_value(statics, "spill_bytes")


def architectures_of(statics: Iterable[FunctionStatics]) -> list[str]:
    """Each once, the oldest first; a CPU's before them."""
    order = {name: place for place, name in enumerate(COMPILED_FOR)}
    return sorted({one.architecture for one in statics}, key=lambda name: (order.get(name, -1), name))


def _by_architecture(evaluation: EvaluationOut) -> list[Text]:
    """A line each, where the revision was compiled for several."""
    names = architectures_of(evaluation.statics)
    base = evaluation.base.label if evaluation.base else None
    if len(names) < 2:
        return []
    return [Text(f"            {one_line(name):<8} {statics_words(*_only(name, evaluation), base)}") for name in names]


def _only(architecture: str, evaluation: EvaluationOut) -> tuple[list[FunctionStatics], list[FunctionStatics]]:
    head, base = (
        [one for one in statics if one.architecture == architecture]
        for statics in (evaluation.statics, evaluation.base_statics)
    )
    return head, base


def _line(stage: Stage, words: str) -> Text:
    return Text.assemble((f"  {stage.value:<9} ", "bold"), words)


def _ended(stage: Stage, evaluation: EvaluationOut, time: StageTime) -> str:
    took = "cached" if time.cached else duration((time.ended_at - time.started_at) / timedelta(seconds=1))
    if stage is Stage.BUILD:
        names = architectures_of(evaluation.statics)
        base = evaluation.base.label if evaluation.base else None
        words = statics_words(evaluation.statics, evaluation.base_statics, base) if len(names) < 2 else ""
        return _join(", ".join(map(one_line, names)), took, words)
    if stage is Stage.VERIFY:
        return _join(_checked(evaluation.checks), took)
    if stage is Stage.MEASURE:
        return _join(*_measured(evaluation), took)
    return _join(took, one_line(time.detail))


def _checked(checks: tuple[Check, ...]) -> str:
    if not checks:
        return ""
    cases, families = {check.case for check in checks}, {check.family for check in checks}
    failed = [check for check in checks if not check.passed]
    scope = f"{many(len(cases), 'case')} x {many(len(families), 'input family').replace('familys', 'families')}"
    if failed:
        first = failed[0]
        return (
            f"{scope}   {len(failed)} of {len(checks)} failed, first {case_name(first.case)}, {one_line(first.family)}"
        )
    known = [check for check in checks if check.of_bound is not None]
    if not known:
        return scope
    worst = max(known, key=lambda check: check.of_bound or 0.0)
    return f"{scope}   worst {worst.of_bound:.2g} of the bound ({case_name(worst.case)}, {one_line(worst.family)})"


def _measured(evaluation: EvaluationOut) -> tuple[str, ...]:
    done = [result for result in evaluation.cases if not result.skipped]
    if not done:
        return ()
    words = [f"{bar(1, 1)}  {many(len(done), 'case')}"]
    processes = max(len(result.pairs) for result in done)
    if processes:
        words.append(many(processes, "process").replace("processs", "processes") + " a side")
    held = sum(result.held_s or 0.0 for result in done)
    if held:
        words.append(f"{'CPU' if evaluation.device_class.value == 'cpu' else 'card'} held {duration(held)}")
    return tuple(words)


def _summary(statics: tuple[FunctionStatics, ...]) -> dict[str, str]:
    words = {}
    registers, spills = worst_registers(statics), spilled_bytes(statics)
    if registers is not None:
        words["registers"] = f"{registers} registers"
    if spills is not None:
        words["spills"] = f"{file_size(spills)} spilled" if spills else "no spills"
    shared, static = static_value(statics, "shared_bytes"), static_value(statics, "static_shared_bytes")
    code = static_value(statics, "code_bytes")
    if shared is not None:
        words["shared"] = f"{file_size(shared)} shared"
    elif static is not None:
        words["shared"] = f"{file_size(static)} static shared"
    if code is not None:
        words["code"] = f"{file_size(code)} code"
    return words


def _join(*parts: str) -> str:
    return "   ".join(part for part in parts if part)
