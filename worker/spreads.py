"""The spreads that a node has learnt, kept beside its cache. A file that can't be read is as none."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import UTC, date, datetime
from pathlib import Path

from pydantic import AwareDatetime, ValidationError

from contract.base import Model
from contract.spreads import Spread
from worker.settings import WorkerSettings

# Of one case: the newest measurements count.
_KEPT = 3
_log = logging.getLogger(__name__)


class Learnt(Model):
    """`spent_s`: seconds of `day` (UTC) in which the device was held to learn. `in_vain`: cases, as `key` names them,
    that gave no spread when they were last measured, and when that was."""

    spreads: tuple[Spread, ...] = ()
    in_vain: dict[str, AwareDatetime] = {}
    day: date | None = None
    spent_s: float = 0.0

    def spent_on(self, day: date) -> float:
        return self.spent_s if self.day == day else 0.0

    def newest(self) -> dict[str, datetime]:
        """When each case was last measured, whatever came of it."""
        newest: dict[str, datetime] = dict(self.in_vain)
        for each in self.spreads:
            name = key(each.kernel, each.case)
            newest[name] = max(each.measured_at, newest.get(name, each.measured_at))
        return newest

    def after(self, *, day: date, spent_s: float, found: Iterable[Spread] = (), in_vain: Iterable[str] = ()) -> Learnt:
        of_case: dict[tuple[str, str], list[Spread]] = {}
        for each in sorted((*self.spreads, *found), key=lambda each: each.measured_at):
            of_case.setdefault((each.kernel, each.case), []).append(each)
        return Learnt(
            spreads=tuple(each for own in of_case.values() for each in own[-_KEPT:]),
            in_vain=self.in_vain | dict.fromkeys(in_vain, datetime.now(UTC)),
            day=day,
            spent_s=self.spent_on(day) + spent_s,
        )


def key(kernel: str, case: str) -> str:
    return f"{kernel} {case}"


def stored(settings: WorkerSettings) -> Learnt:
    path = _file(settings)
    try:
        return Learnt.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return Learnt()
    except (OSError, ValidationError) as error:
        _log.warning("%s: %s; spreads are learnt anew", path, error)
        return Learnt()


def store(settings: WorkerSettings, learnt: Learnt) -> None:
    path = _file(settings)
    path.parent.mkdir(parents=True, exist_ok=True)
    written = path.with_suffix(".new")
    written.write_text(learnt.model_dump_json(), encoding="utf-8")
    written.replace(path)


def _file(settings: WorkerSettings) -> Path:
    return settings.cache_dir / f"{settings.node_name}.spreads.json"
