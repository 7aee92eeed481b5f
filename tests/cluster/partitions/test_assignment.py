"""`assign` moves as little as an exact solution of the same balance needs."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from onlineauto.cluster.partitions.assignment import assign

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence


class Case(NamedTuple):
    """Blocks, their owners, and the servers of the next layout; owner 9 has left, and -1 is none."""

    sizes: list[int]
    owners: list[int]
    servers: list[int]

    def assigned(self) -> list[int]:
        """Return the server of each block."""
        owners = {block: owner for block, owner in enumerate(self.owners) if owner >= 0}
        return list(assign(dict(enumerate(self.sizes)), owners, self.servers).values())

    def spread(self, assigned: Sequence[int]) -> int:
        """Return the difference between the largest and the smallest load."""
        loads = [
            sum(size for size, owner in zip(self.sizes, assigned, strict=True) if owner == server)
            for server in self.servers
        ]
        return max(loads) - min(loads)

    def moved(self, assigned: Sequence[int]) -> int:
        """Return the total size of blocks that leave an owner that stays."""
        blocks = zip(self.sizes, self.owners, assigned, strict=True)
        return sum(size for size, before, after in blocks if before in self.servers and before != after)

    def least_moved(self, spread: int) -> int:
        """Return the exact least movement of all assignments with at most this spread."""
        n = len(self.sizes)
        every = np.array(list(itertools.product(self.servers, repeat=n))).reshape(-1, n)
        sizes, owners = np.array(self.sizes), np.array(self.owners)
        loads = np.stack([(sizes * (every == server)).sum(1) for server in self.servers], 1)
        moved = (sizes * ((every != owners) & np.isin(owners, self.servers))).sum(1)
        return int(moved[np.ptp(loads, axis=1) <= spread].min())


def _cases(sizes: st.SearchStrategy[list[int]]) -> st.SearchStrategy[Case]:
    owner = st.sampled_from([0, 1, 2, 9, -1])
    servers = st.lists(st.integers(0, 4), min_size=1, max_size=3, unique=True)
    return sizes.flatmap(
        lambda drawn: st.builds(
            Case, st.just(drawn), st.lists(owner, min_size=len(drawn), max_size=len(drawn)), servers
        )
    )


@given(_cases(st.tuples(st.integers(1, 8), st.integers(1, 9)).map(lambda pair: [pair[1]] * pair[0])))
@settings(max_examples=200, deadline=None)
def test_equal_blocks_move_as_rarely_as_an_exact_solution_needs(case: Case) -> None:
    assigned, size = case.assigned(), case.sizes[0]
    assert case.spread(assigned) <= size * bool(len(case.sizes) % len(case.servers))
    assert case.moved(assigned) == case.least_moved(size if len(case.sizes) % len(case.servers) else 0)


@given(_cases(st.lists(st.integers(1, 40), min_size=1, max_size=7)))
@example(Case([1, 40, 1], [9, 1, 1], [0, 1, 2]))
@settings(max_examples=200, deadline=None)
def test_unequal_blocks_are_balanced_to_the_largest_and_move_little(case: Case) -> None:
    assigned, largest = case.assigned(), max(case.sizes)
    assert case.spread(assigned) <= largest
    assert case.moved(assigned) <= case.least_moved(case.spread(assigned)) + largest * len(case.servers)


def test_most_unequal_cases_move_exactly_the_least() -> None:
    draw, exact, n_cases, excess = random.Random(1), 0, 400, 0.0
    for _ in range(n_cases):
        sizes = [draw.randint(1, 40) for _ in range(draw.randint(3, 7))]
        case = Case(sizes, [draw.choice([0, 1, 2, 9]) for _ in sizes], draw.sample(range(4), 3))
        assigned = case.assigned()
        more = case.moved(assigned) - case.least_moved(case.spread(assigned))
        exact += more == 0
        excess = max(excess, more / max(sizes))
    assert exact >= 0.95 * n_cases
    assert excess <= 1.0


@given(_cases(st.lists(st.integers(1, 40), max_size=30)))
def test_nothing_moves_twice_and_every_block_has_a_server(case: Case) -> None:
    assigned = case.assigned()
    assert len(assigned) == len(case.sizes)
    assert set(assigned) <= set(case.servers)
    assert case._replace(owners=assigned).assigned() == assigned


def test_names_of_any_type_and_fractions_are_blocks() -> None:
    sizes: dict[Hashable, float] = {("cells", 0): 1.5, ("covariance", 1): 0.5, "heads": 1.0}
    assert assign(sizes, {}, [3, 5]) == {("cells", 0): 3, "heads": 5, ("covariance", 1): 5}
