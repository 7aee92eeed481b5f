"""Blocks are shared out evenly, and few move."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from onlineauto.cluster.elastic.protocol.balance import balance

SIZES = st.dictionaries(st.integers(0, 40), st.integers(1, 9), min_size=1)
SERVERS = st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=6, unique=True)


@given(SIZES, SERVERS, SERVERS)
def test_servers_differ_by_less_than_a_block(sizes: dict[int, int], old: list[str], new: list[str]) -> None:
    owner = balance(sizes, balance(sizes, {}, old), new)
    assert owner.keys() == sizes.keys()
    loads = [sum(size for block, size in sizes.items() if owner[block] == server) for server in new]
    assert max(loads) - min(loads) <= max(sizes.values())


@given(st.integers(1, 60), SERVERS, SERVERS)
def test_equal_blocks_move_no_more_than_they_must(n: int, old: list[str], new: list[str]) -> None:
    sizes = dict.fromkeys(range(n), 1)
    before = balance(sizes, {}, old)
    after = balance(sizes, before, new)
    low, more = divmod(n, len(new))
    counts = {server: list(before.values()).count(server) for server in new}
    quotas = sorted(counts, key=lambda server: -counts[server])
    stays = sum(min(counts[server], low + (i < more)) for i, server in enumerate(quotas))
    assert sum(after[block] == before[block] for block in sizes) == stays


@given(SIZES, SERVERS)
def test_nothing_moves_without_need(sizes: dict[int, int], servers: list[str]) -> None:
    owner = balance(sizes, {}, servers)
    assert balance(sizes, owner, servers) == owner
