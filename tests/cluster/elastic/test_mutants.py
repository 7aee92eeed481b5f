"""Mutants of the protocol: each small fault is one that the adversary notices, but for one that is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from onlineauto.cluster.elastic.protocol.coordinator import Coordinator
from onlineauto.cluster.elastic.protocol.server import Server
from tests.cluster.elastic.machine import Adversary
from tests.cluster.elastic.network import Network

if TYPE_CHECKING:
    from onlineauto.cluster.elastic.protocol.messages import Abort, Message, Outbox, Plan, Pull, Push
    from onlineauto.cluster.elastic.protocol.work import Shard


class UnprotectedClock(Server):
    """Hopes, as DL2 does, that no server passes the clock before it hears of it."""

    def _open_fences(self, out: Outbox) -> None:
        before = self._attempt
        super()._open_fences(out)
        if self._attempt != before:
            self.hold = None


class AddsDuplicates(Server):
    """Adds a push again that has come before."""

    def _take_push(self, push: Push) -> None:
        known = self._pushes.get(push.tick, {}).get(push.role)
        super()._take_push(push)
        if known is not None and push.tick >= self.version and push.generation == self.generation:
            doubled = {block: update + known[block] for block, update in push.updates.items()}
            self._pushes[push.tick][push.role] = doubled


class DropsInstalls(Server):
    """Makes blocks anew that it was sent."""

    def _owned_shard(self, block: int, found: dict[int, Any], *, new: bool) -> Shard:
        return self._shards.make(block) if block in found else super()._owned_shard(block, found, new=new)


class ReadsAtAnyVersion(Server):
    """Answers pulls with what there is."""

    def _answer_to(self, pull: Pull) -> Message | None:
        return self._values(pull) if pull.generation == self.generation else None


class WaitsForAllButOne(Server):
    """Applies a tick without the push of one worker."""

    def _is_complete(self) -> bool:
        return len(self._pushes.get(self.version, {})) >= max(len(self._workers) - 1, 1)

    def _apply(self, pushes: dict[str, dict[int, Any]]) -> None:
        super()._apply({role: {} for role in self._workers} | pushes)


class ForgetsFences(Server):
    """Ignores a fence that has overtaken the plan before it."""

    def _open_fences(self, out: Outbox) -> None:
        super()._open_fences(out)
        self._fences.clear()


class KeepsStalePushes(Server):
    """Keeps pushes of ticks that are applied. Nobody asks for them, so no result changes: it is no fault."""

    def _take_push(self, push: Push) -> None:
        if push.generation == self.generation:
            self._pushes.setdefault(push.tick, {})[push.role] = push.updates


class TakesPartsOfOldLayouts(Server):
    """Takes a push of a worker that still has its old rank."""

    def _take_push(self, push: Push) -> None:
        if push.tick >= self.version:
            self._pushes.setdefault(push.tick, {})[push.role] = push.updates


class IgnoresAborts(Server):
    """Keeps its hold when a change is called off."""

    def _take_abort(self, abort: Abort) -> None:
        pass


class ForgetsTheTickBefore(Server):
    """Gives whoever does a tick again what is there now."""

    def _values(self, pull: Pull, *, before: bool = False) -> Any:
        return super()._values(pull)


class CoversNobody(Coordinator):
    """Leaves the parts of dead workers undone."""

    def _cover(self, out: Outbox) -> None:
        pass


class ClockOfTheSlowest(Coordinator):
    """Sets the clock before what some server has promised, or already is at."""

    def _clock(self) -> int:
        return min(self._promises.values())


class CommitsEarly(Coordinator):
    """Commits without waiting for the blocks to be where they will be."""

    def _commit(self, out: Outbox) -> None:
        self._missing = set()
        super()._commit(out)


class MakesAnew(Server):
    """Begins with new blocks at every plan, as if it were the first."""

    def _is_first(self, plan: Plan) -> bool:
        return True

    def _owned_shard(self, block: int, found: dict[int, Any], *, new: bool) -> Shard:
        return self._shards.load(block, found[block]) if block in found else self._shards.make(block)


KILLED: list[type[Server | Coordinator]] = [
    UnprotectedClock,
    AddsDuplicates,
    DropsInstalls,
    ReadsAtAnyVersion,
    WaitsForAllButOne,
    ForgetsFences,
    TakesPartsOfOldLayouts,
    IgnoresAborts,
    ForgetsTheTickBefore,
    CoversNobody,
    ClockOfTheSlowest,
    CommitsEarly,
    MakesAnew,
]


def attack(mutant: type[Server | Coordinator], examples: int) -> None:
    class Mutated(Network):
        server_class = mutant if issubclass(mutant, Server) else Server
        coordinator_class = mutant if issubclass(mutant, Coordinator) else Coordinator

    class Attack(Adversary):
        network_class = Mutated

    how = settings(
        max_examples=examples,
        stateful_step_count=30,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
        report_multiple_bugs=False,
        print_blob=False,
    )
    run_state_machine_as_test(Attack, settings=how)


@pytest.mark.parametrize("mutant", KILLED)
def test_the_adversary_notices(mutant: type[Server | Coordinator]) -> None:
    with pytest.raises(Exception, match=r".*"):
        attack(mutant, 10_000)  # most take ten, some several hundred


def test_a_mutant_that_is_no_fault_survives() -> None:
    """The answer to a stale push is to forget it sooner: that saves memory, and nothing else."""
    attack(KeepsStalePushes, 100)
