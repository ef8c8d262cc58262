"""Builds of one evaluation, several at once: compilers share nothing but the cache, which is safe."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from contract.bundle import Files
from contract.job import Job, RevisionRef
from contract.outcomes import Reason, Stage
from worker.building import BuiltSide, build_side, manifest_of
from worker.cache import Cache
from worker.failure import Failed
from worker.room import Room
from worker.settings import WorkerSettings
from worker.targets import Target, targets_of

_AT_ONCE = 2  # a laptop's cores; and a node has other work


@dataclass(frozen=True, kw_only=True)
class Builds:
    """`stopping`: whatever ends a block of its own early ends what is still being compiled."""

    job: Job
    bundles: dict[str, Files]
    room: Room
    cache: Cache
    settings: WorkerSettings
    stopping: Callable[[], AbstractContextManager[None]]

    def targets(self) -> tuple[Target, ...]:
        """What the head is built for. Raises Failed."""
        return self._targets(self.job.revision)

    def each(self, targets: tuple[Target, ...]) -> tuple[BuiltSide, ...]:
        """The head for each target. Raises Failed, which says for which where there are several."""
        return self._each(self.job.revision, targets)

    def base_beside(self, head: tuple[BuiltSide, ...]) -> tuple[BuiltSide, ...]:
        """The base by the very toolchain that built the head, for the architectures that both are for; none without a
        base. Raises Failed."""
        base = self.job.base
        if base is None:
            return ()
        if base.digest == self.job.revision.digest:
            return tuple(replace(side, ref=base) for side in head)
        wanted = {side.architecture for side in head}
        return self._each(base, tuple(target for target in self._targets(base) if target.architecture in wanted))

    def both(self) -> tuple[BuiltSide, BuiltSide | None]:
        """Head and base for the device that is at hand. Raises Failed; the base's is never the head's fault."""
        head_ref, base_ref = self.job.revision, self.job.base
        if base_ref is None or base_ref.digest == head_ref.digest:
            head = self._at_hand(head_ref)
            return head, replace(head, ref=base_ref) if base_ref else None
        with ThreadPoolExecutor(max_workers=1) as other, self.stopping():
            base_later = other.submit(self._at_hand, base_ref)
            head = self._at_hand(head_ref)
            try:
                return head, base_later.result()
            except Failed as error:
                raise error.as_base(base_ref.label) from error

    def _each(self, ref: RevisionRef, targets: tuple[Target, ...]) -> tuple[BuiltSide, ...]:
        def built(target: Target) -> BuiltSide:
            try:
                return self._build(ref, target)
            except Failed as error:
                raise (error.on(target.architecture) if len(targets) > 1 else error) from error

        with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool, self.stopping():
            return tuple(pool.map(built, targets))

    def _at_hand(self, ref: RevisionRef) -> BuiltSide:
        target = self._targets(ref)[0]
        if not target.at_hand:
            message = f"{ref.label} is compiled for {target.architecture}, and there is no card here"
            raise Failed(Reason.ARCHITECTURE_UNSUPPORTED, Stage.BUILD, message)
        return self._build(ref, target)

    def _targets(self, ref: RevisionRef) -> tuple[Target, ...]:
        return targets_of(manifest_of(ref, self.bundles[ref.digest]), self.job)

    def _build(self, ref: RevisionRef, target: Target) -> BuiltSide:
        return build_side(
            ref,
            self.bundles[ref.digest],
            target=target,
            suite=self.job.suite,
            room=self.room,
            cache=self.cache,
            settings=self.settings,
        )
