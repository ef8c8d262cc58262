"""The measure stage: pairs of fresh processes in balanced order, looks after 4, 8 and 16 of them."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random

from contract.outcomes import Reason, Verdict
from verdict import LOOKS, decide_all
from worker.judge.case import CaseRun
from worker.judge.device import Arena, Device
from worker.judge.faults import FaultError
from worker.judge.plan import BASELINE_BURST_US, BURST_US, CAPPED_BURST_US, Plan, plan
from worker.judge.sides import Baseline, Revision
from worker.judge.slots import Slots
from worker.judge.turns import Player, Turn, lone_call, take_capped_turn, take_turn
from worker.launch.client import Launcher
from worker.protocol import JudgeProgress

ALONE_PROCESSES = 4
_CALIBRATION_US = 4_000.0
_SUSTAINED_US = 120_000.0  # long enough for the card to say that its power is capped
_MOST_ROUNDS = 4
_MOST_PLANS = 3
_APART = 4  # times as many calls in a burst


class Measurement:
    """All cases of one evaluation. `progress` is told after each pair and case."""

    def __init__(
        self,
        *,
        device: Device,
        arena: Arena,
        head: Revision,
        base: Revision | None,
        baseline: Baseline,
        random: Random,
        max_processes: int,
        progress: Callable[[JudgeProgress], None],
    ) -> None:
        self._device, self._arena, self._random = device, arena, random
        self._head, self._base, self._baseline = head, base, baseline
        self._most, self._progress = max_processes, progress
        self._slots: dict[tuple[str, str], Slots] = {}
        self._baseline_plans: dict[tuple[str, str], Plan | None] = {}
        # A laptop's evaluation is over in seconds; on a GPU the card's time is what is scarce.
        self._round_budget_s = 0.5 if device.measures_itself else 0.25

    def run(self, runs: list[CaseRun]) -> None:
        # Its imports may take longer than all of verification: wait for them here, with the device idle.
        if runs:
            self._baseline.load(self._baseline.backends[0], runs[0].case, runs[0].subject.dims, runs[0].tensors)
        pair = 0
        while unfinished := [run for run in runs if not run.done]:
            self._pair(pair, unfinished, runs)
            pair += 1
            self._look(unfinished, runs)

    def _pair(self, pair: int, unfinished: list[CaseRun], runs: list[CaseRun]) -> None:
        began = time.monotonic()
        with self._started(self._head) as head, self._started(self._rival(unfinished)) as base:
            if head is None:
                raise FaultError(Reason.INTERNAL_ERROR, "no head to measure", side="judge")
            # Both start side by side, and all cases use them: each is charged its share of the wait.
            for revision, launcher in ((self._head, head), (self._base, base)):
                if revision is not None and launcher is not None:
                    revision.await_ready(launcher)
            for run in unfinished:
                run.held_s += (time.monotonic() - began) / len(unfinished)
            for place, run in enumerate(unfinished):
                finished = sum(other.done for other in runs)
                detail = f"{run.case}: process {pair + 1} of at most {self._limit(run)}"
                self._progress(
                    JudgeProgress(stage="measure", done=finished + place, total=len(runs), detail=detail[:300])
                )
                began = time.monotonic()
                self._measure_case(pair, run, head, base if run.against_base else None)
                run.held_s += time.monotonic() - began

    def _rival(self, unfinished: list[CaseRun]) -> Revision | None:
        return self._base if any(run.against_base for run in unfinished) else None

    @contextmanager
    def _started(self, revision: Revision | None) -> Iterator[Launcher | None]:
        if revision is None:
            yield None
            return
        launcher = revision.start()
        try:
            yield launcher
        finally:
            launcher.close()

    def _limit(self, run: CaseRun) -> int:
        return self._most if run.against_base else min(ALONE_PROCESSES, self._most)

    def _measure_case(self, pair: int, run: CaseRun, head: Launcher, base: Launcher | None) -> None:
        # Both are ready before either runs: no process starts while a burst does.
        launchers = {"head": head} if base is None else {"head": head, "base": base}
        players = self._players(run, launchers)
        players_by_turn = list(players.values()) if pair % 2 == 0 else list(players.values())[::-1]
        calls = {player.side: lone_call(run.subject, player, self._random) for player in players_by_turn}
        run.first_calls.append(calls["head"])
        while True:
            if run.plan is None:
                self._make_plan(run, players)
                players = self._players(run, launchers, load=False)
            self._rounds(pair, run, players)
            if (slow := self._slow_when_planned(run)) is None:
                break
            if run.plans == _MOST_PLANS:
                raise FaultError(
                    Reason.CLOCKS_DISAGREE,
                    f"calls were slow whenever bursts were planned, {_MOST_PLANS} times, and far quicker afterwards",
                    side=slow,
                    case=run.case,
                )
            run.forget()
        if self._device.measures_itself:
            # Now that the card runs at the clock of the bursts, from which it comes down while processes start.
            run.lone_calls.append(lone_call(run.subject, players["head"], self._random))
        # Dear under a power cap: twice up to the first look, then once every four pairs.
        if not run.capped or pair == 0 or pair % LOOKS[0] == LOOKS[0] - 1:
            self._baseline_turns(pair, run)

    def _players(self, run: CaseRun, launchers: dict[str, Launcher], *, load: bool = True) -> dict[str, Player]:
        found = {}
        for side, launcher in launchers.items():
            revision = self._head if side == "head" else self._base
            if revision is None:
                raise FaultError(Reason.INTERNAL_ERROR, "no base to measure", side="judge")
            if load:
                layout = revision.load(launcher, run.case, run.subject.dims, run.tensors)
            else:
                layout = self._slots[run.case, side].layout
            count = 2 if run.plan is None else run.plan.slots
            slots = self._slots.get((run.case, side))
            if slots is None or slots.count != count:
                slots = Slots(self._device, self._arena, layout, count, self._random)
                self._slots[run.case, side] = slots
            found[side] = Player(side=side, launcher=launcher, slots=slots)
        return found

    def _make_plan(self, run: CaseRun, players: dict[str, Player]) -> None:
        run.plans += 1
        run.estimates = {side: self._estimate(run, player) for side, player in players.items()}
        times = list(run.estimates.values())
        largest = max(player.slots.layout.slot_bytes for player in players.values())
        run.plan = self._plan(times, largest, BURST_US)
        self._check_room(run, run.plan, players)
        if self._device.measures_itself:
            take_capped_turn(
                run.subject,
                self._players(run, {"head": players["head"].launcher}, load=False)["head"],
                run.plan,
                self._random,
                turn_us=_SUSTAINED_US,
            )
            run.capped = self._device.power_capped()
        if run.capped:
            run.plan = self._plan(times, largest, CAPPED_BURST_US)

    def _check_room(self, run: CaseRun, made: Plan, players: dict[str, Player]) -> None:
        """A workspace may not make bursts so short that a difference hides in what starting them takes."""
        times = list(run.estimates.values())
        alone = self._plan(times, self._baseline.layout(run.tensors).slot_bytes, BURST_US)
        if made.calls * _APART < alone.calls and made.calls * min(times) < BURST_US / 10:
            side = max(players, key=lambda name: players[name].slots.layout.slot_bytes)
            size = players[side].slots.layout.workspace_bytes
            raise FaultError(
                Reason.NOT_RECORDABLE,
                f"its workspace of {size} bytes leaves room for {made.calls} calls in a burst instead of {alone.calls}",
                side=side,
                case=run.case,
            )

    def _slow_when_planned(self, run: CaseRun) -> str | None:
        """The side whose calls took so much longer when its bursts were planned that they are too short now.

        A machine's hiccup does that, and so would a revision that hides in what starting a burst takes.
        """
        if run.plan is None:
            return None
        times = {side: statistics.median(run.process_values(place)) for place, side in enumerate(run.estimates)}
        largest = max(self._slots[run.case, side].layout.slot_bytes for side in times)
        again = self._plan(list(times.values()), largest, CAPPED_BURST_US if run.capped else BURST_US)
        if again.calls < _APART * run.plan.calls:
            return None
        return max(times, key=lambda side: run.estimates[side] / times[side])

    def _plan(self, times: list[float], slot_bytes: int, burst_us: float) -> Plan:
        return plan(
            fast_us=min(times),
            slow_us=max(times),
            slot_bytes=slot_bytes,
            arena_bytes=self._arena.bytes,
            cache_bytes=self._device.l2_bytes,
            burst_us=burst_us,
        )

    def _estimate(self, run: CaseRun, player: Player) -> float:
        """Microseconds a call, from bursts that grow until one is long enough to tell."""
        calls, room = 1, self._arena.bytes // player.slots.layout.slot_bytes
        while True:
            where = Slots(self._device, self._arena, player.slots.layout, min(room, calls + 1), self._random)
            longer = Plan(calls=calls, pool=where.count, warm_calls=0, warm_pool=0, bursts=1)
            trial = Player(side=player.side, launcher=player.launcher, slots=where, check_outputs=player.check_outputs)
            turn = take_turn(run.subject, trial, longer, 2, self._random)
            burst = min(turn.bursts, key=lambda burst: burst.time_us)
            total = burst.time_us * calls
            if total >= _CALIBRATION_US or calls + 1 >= room:
                return burst.time_us
            calls = min(room - 1, max(2 * calls, math.ceil(_CALIBRATION_US / burst.time_us)))

    def _rounds(self, pair: int, run: CaseRun, players: dict[str, Player]) -> None:
        taken: list[tuple[list[Turn], list[Turn]]] = []
        run.rounds.append(taken)
        # On a CPU one of the head's turns is looked into.
        watched = None if self._device.measures_itself else self._random.randrange(run.rounds_a_pair or 1)
        while len(taken) < (run.rounds_a_pair or 1):
            began = time.monotonic()
            taken.append(self._round(pair + len(taken), run, players, watched=len(taken) == watched))
            if run.rounds_a_pair is None:
                spent = max(1e-3, time.monotonic() - began)
                fit = 1 if run.capped else int(self._round_budget_s / spent)
                run.rounds_a_pair = max(1, min(_MOST_ROUNDS, fit))

    def _round(
        self, turn: int, run: CaseRun, players: dict[str, Player], *, watched: bool
    ) -> tuple[list[Turn], list[Turn]]:
        """ABBA, or BAAB in every second round; under a power cap AB and BA."""
        if run.plan is None:
            raise FaultError(Reason.INTERNAL_ERROR, "a round without a plan", side="judge")
        turns: dict[str, list[Turn]] = {"head": [], "base": []}
        order = list(players) if turn % 2 == 0 else list(players)[::-1]
        bursts = run.plan.bursts
        if run.capped:
            for side in order:
                turns[side].append(take_capped_turn(run.subject, players[side], run.plan, self._random))
            return turns["head"], turns["base"]
        takes = [(side, bursts) for side in order]
        if len(order) == 2 and bursts > 1:
            first, second = order
            takes = [(first, bursts // 2), (second, bursts), (first, bursts // 2)]
        looked_into = self._random.choice([at for at, (side, _) in enumerate(takes) if side == "head"])
        for at, (side, count) in enumerate(takes):
            watch_us = run.known_us if watched and at == looked_into else None
            turns[side].append(take_turn(run.subject, players[side], run.plan, count, self._random, watch_us=watch_us))
        return turns["head"], turns["base"]

    def _baseline_turns(self, pair: int, run: CaseRun) -> None:
        for place, backend in enumerate(self._baseline.backends):
            # The primary backend gives the ratio; another one's time is for information, and dear under a power cap.
            if place and (pair if run.capped else pair % 2):
                continue
            key = (run.case, backend)
            if key in self._baseline_plans and self._baseline_plans[key] is None:
                continue
            name = self._baseline.load(backend, run.case, run.subject.dims, run.tensors)
            if name is None:
                self._baseline_plans[key] = None
                continue
            turn = self._baseline_turn(run, backend)
            run.baseline_name = run.baseline_name or name
            run.baselines.setdefault(backend, []).append((len(run.rounds) - 1, turn.time_us))

    def _baseline_turn(self, run: CaseRun, backend: str) -> Turn:
        player = self._baseline_player(run, 2)
        chosen = self._baseline_plans.get((run.case, backend))
        if chosen is None:
            burst_us = BASELINE_BURST_US if self._device.measures_itself else BURST_US
            chosen = self._plan(
                [self._estimate(run, player)],
                player.slots.layout.slot_bytes,
                CAPPED_BURST_US if run.capped else burst_us,
            )
            self._baseline_plans[run.case, backend] = chosen
        player = self._baseline_player(run, chosen.slots)
        if run.capped:
            return take_capped_turn(run.subject, player, chosen, self._random)
        return take_turn(run.subject, player, chosen, max(1, chosen.bursts // 2), self._random)

    def _baseline_player(self, run: CaseRun, count: int) -> Player:
        slots = Slots(self._device, self._arena, self._baseline.layout(run.tensors), count, self._random)
        return Player(
            side="baseline",
            launcher=self._baseline.launcher,
            slots=slots,
            check_outputs=run.subject.operator.baseline_writes_output,
        )

    def _look(self, unfinished: list[CaseRun], runs: list[CaseRun]) -> None:
        """Judge all cases together once one has as many processes as a look takes; who is decided is done."""
        for run in unfinished:
            if not run.against_base:
                run.done = len(run.rounds) >= self._limit(run)
            elif len(run.rounds) in LOOKS or len(run.rounds) >= self._most:
                run.looked_at = len(run.rounds)
        compared = {run.case: run for run in runs if run.looked_at}
        if not compared or not any(run.looked_at == len(run.rounds) for run in unfinished):
            return
        judged = decide_all({case: run.comparison() for case, run in compared.items()}, one_clock=True)
        for case, run in compared.items():
            run.judgement = judged[case]
            undecided = run.judgement.verdict is Verdict.INCONCLUSIVE
            between = len(run.rounds) != run.looked_at
            run.done = len(run.rounds) >= self._most or not (undecided or between)


def arena_bytes(device: Device, sizes: list[tuple[int, float]]) -> int:
    """For cases of these slot sizes and least times a call (us): enough for a burst, within the device's budget.

    A CPU's arena takes memory only where it is touched, and the library's workspace is not known yet: all of it.
    """
    budget = device.arena_budget()
    if not device.measures_itself:
        return budget
    wanted = max(size * (16 + round(1.4 * BURST_US / max(least_us, 2.0))) for size, least_us in sizes)
    return min(budget, wanted)
