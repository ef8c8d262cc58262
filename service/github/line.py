"""Where a push stands on the default branch's line, told from git alone: never from the order in which it came.

A place is the number of commits that the head contains, counted from the first push that was seen. Along first parents
it only grows, merges included, and of two heads that both are on the line the one with the greater place contains the
other. GitHub's comparison of the head with any head whose place is known gives it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from service.github.repository import Compared, GoneError, Repository


class NotOnBranchError(Exception):
    """The branch doesn't contain the head: it was pushed away, or GitHub doesn't show it yet."""


@dataclass(frozen=True, kw_only=True)
class Known:
    """A head that was pushed before, and its place."""

    sha: str
    index: int


@dataclass(frozen=True, kw_only=True)
class Place:
    """`base`: what the head is compared with, None where nothing came before it. `left`: the known heads that the
    branch doesn't contain any more. `late`: the branch has known heads beyond this one. `anew`: a comparison with the
    base doesn't tell all that the branch has: it is the first push that is seen, or a rewrite."""

    index: int
    base: str | None
    base_index: int
    left: tuple[str, ...] = ()
    late: bool = False
    anew: bool = False


async def place_of(
    repository: Repository,
    *,
    branch: str,
    head: str,
    before: str | None,
    parents: Sequence[str],
    known: Sequence[Known],
) -> Place:
    """`before`: the branch's head before this push, which may be gone; `known`: heads of the line, in its order.

    The base is the newest known head that this one contains, so that a push whose delivery was lost or came late is no
    gap; before any is known, it is what the branch had before the push. Raises NotOnBranchError.
    """
    if not known:
        return await _first_place(repository, head=head, before=before, parents=parents)
    newest = await _compare(repository, known[-1].sha, head)
    if newest is not None and newest.behind == 0:
        return _on(known[-1], newest)
    # Not on top of the newest: the branch was rewritten, or this delivery is late. What the branch is now decides.
    tip = await _compare(repository, branch, head)
    if tip is None or tip.ahead > 0:
        raise NotOnBranchError(f"{branch} doesn't contain {head}")
    kept = await _count_contained(repository, known, by=tip.base)
    left = tuple(each.sha for each in known[kept:])
    below = await _count_contained(repository, known[:kept], by=head)
    if below:
        under = known[below - 1]
        compared = await _compare(repository, under.sha, head)
        if compared is not None:
            return _on(under, compared, left=left, late=below < kept)
    # Nothing known is below it. Whatever can be compared tells its place all the same.
    first = await _first_place(repository, head=head, before=before, parents=parents)
    index = known[-1].index + (newest.ahead - newest.behind if newest is not None else 1)
    below_it = index - (first.index - first.base_index)
    return Place(index=index, base=first.base, base_index=below_it, left=left, late=kept > 0, anew=bool(left))


def _on(under: Known, compared: Compared, *, left: tuple[str, ...] = (), late: bool = False) -> Place:
    index = under.index + compared.ahead
    return Place(index=index, base=under.sha, base_index=under.index, left=left, late=late, anew=bool(left))


async def _first_place(repository: Repository, *, head: str, before: str | None, parents: Sequence[str]) -> Place:
    compared = await _compare(repository, before, head) if before else None
    if compared is not None:
        return Place(index=compared.ahead, base=compared.merge_base, base_index=0, anew=True)
    return Place(index=1, base=parents[0] if parents else None, base_index=0, anew=True)


async def _count_contained(repository: Repository, known: Sequence[Known], *, by: str) -> int:
    """How many of the line's heads, from its beginning, the commit `by` contains: each contains those before it."""
    contained, end = 0, len(known)
    while contained < end:
        middle = (contained + end) // 2
        compared = await _compare(repository, known[middle].sha, by)
        if compared is not None and compared.behind == 0:
            contained = middle + 1
        else:
            end = middle
    return contained


async def _compare(repository: Repository, base: str, head: str) -> Compared | None:
    """None where one of them is gone, or they have nothing in common."""
    try:
        return await repository.compare(base, head)
    except GoneError:
        return None
