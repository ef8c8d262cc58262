"""What people say to the gate in a comment: `/kernelgate run`, `again`, `accept`."""

import re
from dataclasses import dataclass
from typing import Literal

Verb = Literal["run", "again", "accept"]
_LINE = re.compile(r"^/kernelgate[ \t]+(?P<verb>run|again|accept)(?:[ \t]+(?P<rest>.*))?$", re.MULTILINE)
_SHA = re.compile(r"[0-9a-f]{7,64}")


@dataclass(frozen=True, kw_only=True)
class Command:
    """`commit`: the beginning of a commit's id, with `run`. `why`: the rest, with `accept`."""

    verb: Verb
    commit: str | None = None
    why: str = ""


def command_in(comment: str) -> Command | None:
    """The first command that stands at the beginning of a line; None for anything else, and for `run` with what is no
    commit."""
    match = _LINE.search(comment.replace("\r\n", "\n"))
    if match is None:
        return None
    verb: Verb = match["verb"]  # type: ignore[assignment]
    rest = (match["rest"] or "").strip()
    if verb != "run":
        return Command(verb=verb, why=rest)
    if rest and not _SHA.fullmatch(rest):
        return None
    return Command(verb=verb, commit=rest or None)
