"""Notes on the kernel's source: what the compiler said, and what it spilled."""

import re
from typing import Any

from contract.api import EvaluationOut
from contract.outcomes import Outcome
from service.github.markdown import shorten
from service.github.plans import Plan, Target

AT_ONCE = 50
_MOST = 200
# nvcc: `hgemm.cu(12): error: …`; g++ and clang: `sgemm.cpp:12:5: error: …`; Python: `File "kernel.py", line 12`.
_PLACES = (
    re.compile(r"(?P<file>[\w./+-]+)\((?P<line>\d+)\): (?:\w+ )?(?P<level>error|warning)[^:]*: (?P<said>.+)"),
    re.compile(r"(?P<file>[\w./+-]+):(?P<line>\d+):\d+: (?:fatal )?(?P<level>error|warning): (?P<said>.+)"),
    re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)(?P<level>)(?P<said>.*)'),
)


def annotations_of(plan: Plan, evaluations: dict[int, list[EvaluationOut]]) -> list[dict[str, Any]]:
    """In GitHub's shape, without repetition, at most 200."""
    found: dict[tuple[str, int, str], dict[str, Any]] = {}
    for fault in plan.faults:
        _add(found, path=fault.path, line=1, level="failure", said=fault.said)
    for place, target in enumerate(plan.targets):
        for evaluation in evaluations.get(place, ()):
            if evaluation.outcome is Outcome.BUILD_FAILED:
                _add_compiler(found, target, evaluation)
            _add_spills(found, target, evaluation)
    return list(found.values())[:_MOST]


def _add_compiler(found: dict[tuple[str, int, str], dict[str, Any]], target: Target, evaluation: EvaluationOut) -> None:
    before = len(found)
    for line in (evaluation.message or "").splitlines():
        for pattern in _PLACES:
            match = pattern.search(line)
            if match:
                level = "warning" if match["level"] == "warning" else "failure"
                said = match["said"] or evaluation.summary or line
                _add(found, path=_path(target, match["file"]), line=int(match["line"]), level=level, said=said)
                break
    if len(found) == before:
        said = evaluation.message or evaluation.summary or "it does not build"
        _add(found, path=target.head.source, line=1, level="failure", said=said)


def _path(target: Target, file: str) -> str:
    """A compiler knows the bundle's paths; shared headers lie in it beside the sources."""
    name = file.rpartition("/")[2]
    own = target.head.source
    return own if own.endswith(f"/{name}") else f"{target.head.folder}/{name}"


def _add_spills(found: dict[tuple[str, int, str], dict[str, Any]], target: Target, evaluation: EvaluationOut) -> None:
    spilled = [each for each in evaluation.statics if each.spill_store_bytes or each.spill_load_bytes]
    for each in spilled:
        said = (
            f"{each.function} spills on {each.architecture}: {each.spill_store_bytes or 0} bytes stored, "
            f"{each.spill_load_bytes or 0} bytes loaded ({each.registers} registers)"
        )
        _add(found, path=target.head.source, line=1, level="warning", said=said)


def _add(found: dict[tuple[str, int, str], dict[str, Any]], *, path: str, line: int, level: str, said: str) -> None:
    line = max(line, 1)
    found.setdefault(
        (path, line, said),
        {
            "path": path,
            "start_line": line,
            "end_line": line,
            "annotation_level": level,
            "message": shorten(said, 8_000),
        },
    )
