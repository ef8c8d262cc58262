"""compute-sanitizer's command, and what its log says. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# Between any two tensors, which the driver may place next to each other.
_PADDING_BYTES = 4096
_MESSAGE = 2000
_PREFIX = re.compile(r"^=========( ?)(.*)$")
_SUMMARY = re.compile(
    r"^[A-Z]+ SUMMARY: (\d+) (?:errors?|hazards? displayed(?: \((\d+) errors?, \d+ warnings?\))?)", re.MULTILINE
)
# A finding names where in the device's code it is; what the tool says of itself or of API calls does not.
_IN_A_KERNEL = re.compile(r"^\s+(?:at \S|by thread \(|Device Frame)|Race reported|hazard detected", re.MULTILINE)
_SOFT = re.compile(r"^(?:Warn(?:ing)?|Info): ", re.IGNORECASE)
_OF_ITSELF = re.compile(
    r"Internal (?:Sanitizer|error)|Device not supported|terminated before first|No attachable process|Could not connect"
)


@dataclass(frozen=True)
class Log:
    """errors: None where the tool did not get to its end. finding: the first one until there, with its place; None
    where there is none. complaint: what the tool says of itself."""

    errors: int | None
    finding: str | None
    complaint: str | None


def command(program: Path, tool: str, *, log: Path) -> tuple[str, ...]:
    """What goes before the command that it looks at."""
    more: dict[str, tuple[str, ...]] = {
        # Errors of API calls are the launcher's own business: it says them itself.
        "memcheck": ("--report-api-errors", "no", "--padding", str(_PADDING_BYTES)),
        "racecheck": ("--racecheck-detect-level", "error"),
    }
    options = ("--log-file", str(log), "--print-limit", "10", "--show-backtrace", "no", *more.get(tool, ()))
    return (str(program), "--tool", tool, *options)


def read(text: str) -> Log:
    """A hazard that is only a warning is no error, and no finding.

    Names of functions are a submission's, and may look like lines of the tool's: the largest count of all summaries
    holds.
    """
    body = _body(text)
    counts = [int(errors or count) for count, errors in _SUMMARY.findall(body)]
    blocks = list(_blocks(body))
    findings = [block for block in blocks if _IN_A_KERNEL.search(block) and not _SOFT.match(block)]
    errors = max(counts, default=None)
    said = next((block for block in blocks if _OF_ITSELF.search(block)), None)
    return Log(
        errors=errors,
        finding=_shown(findings[0]) if findings and errors != 0 else None,
        complaint=_shown(said) if said else None,
    )


def _body(text: str) -> str:
    """Without the mark that each line begins with; other lines are not the tool's."""
    return "\n".join(match[2] for line in text.splitlines() if (match := _PREFIX.match(line)))


def _blocks(body: str) -> Iterator[str]:
    """Messages: a line at the margin and the indented ones below it."""
    block: list[str] = []
    for line in [*body.splitlines(), ""]:
        if block and not line.startswith("  "):
            yield "\n".join(block)
            block = []
        if line.strip() and not line.startswith("COMPUTE-SANITIZER") and not _SUMMARY.match(line):
            block.append(line)


def _shown(block: str) -> str:
    lines = [" ".join(line.split()) for line in block.splitlines()]
    text = "\n".join(filter(None, lines))
    return "".join(char for char in text if char == "\n" or char.isprintable())[:_MESSAGE]
