"""The catalogue of the search: which flags run on which stream, for how many events."""

from __future__ import annotations

from dataclasses import dataclass

from tests.parity.case import Case

SWITCHES = 10
"""Changes of champion that the catalogue has to cause at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchCase(Case):
    """One run; see `Case`."""

    events: int  # events of the stream

    @property
    def id(self) -> str:
        """Name of the case: the stream, the events and the flags."""
        return f"{self.stream} {self.events} {self.flags}"


def _cases(*tables: str) -> list[SearchCase]:
    """Cases of tables of one a line: stream, events, flags; explored unless ``--cb_adf`` is among these."""
    found = []
    for line in filter(None, "".join(tables).splitlines()):
        stream, events, flags = line.split(maxsplit=2)
        kind = "" if {"--cb_adf", "--cb", "--cb_explore"} & set(flags.split()) else "--cb_explore_adf "
        found.append(SearchCase(stream=stream, events=int(events), flags=kind + flags))
    return found


_SURE = "--fixed_significance_level --automl_significance_level"

_POPULAR = "--priority_type favor_popular_namespaces"

_ONE_DIFF = f"""
odd     600  --automl 3 --default_lease 10 {_SURE} 0.99
odd     500  --automl 4 --default_lease 100 {_SURE} 0.99 {_POPULAR}
tastes  1200 --automl 3 --default_lease 10 {_SURE} 0.99 --noconstant
tastes  900  --automl 4 --default_lease 100 {_SURE} 0.99 --cb_type ips
three   500  --automl 3 --default_lease 100 {_SURE} 0.5
quick   500  --automl 3 --default_lease 10 {_SURE} 0.99 --cb_adf
quick   400  --automl 3 --default_lease 10 {_SURE} 0.99 --cb_type dr
noisy   500  --automl 8 --default_lease 10 --priority_challengers 1
noisy   300  --automl 16 --default_lease 10 {_POPULAR}
rewards 300  --automl 2 --default_lease 10 --interaction_type cubic
tastes  300  --automl 4 --default_lease 10 --interaction_type cubic -b 14
tastes  200  --automl 16 --default_lease 10 --interaction_type cubic --priority_challengers 12
two     400  --automl 4 --default_lease 4000
two     1300 --automl 3 --default_lease 1000 --cb_type dr
rewards 300  --automl 5 --default_lease 10 --cb_type dr --power_t 0.3
tastes  400  --automl 3 --default_lease 10 {_SURE} 0.99 --reward_as_cost
tastes  400  --automl 4 --default_lease 10 {_SURE} 0.99 --debug_reversed_learn
bandit  300  --automl 3 --default_lease 10 --ignore T
bandit  300  --automl 4 --default_lease 10 --cb_adf --cb_type dr -q UA
bandit  300  --automl 3 --default_lease 10 --cb_type ips --l1 1e-4 --l2 1e-4
bandit  300  --automl 4 --default_lease 10 --cb_type dr --l1 1e-4 --debug_reversed_learn
rewards 300  --automl 3 --default_lease 10 {_SURE} 0.99 --cb_type dm --l2 1e-3
unsure  300  --automl 3 --default_lease 10 {_SURE} 0.5 --cb_type ips
unsure  200  --automl 3 --default_lease 10 --clip_p 0.2
rewards 300  --automl 4 --default_lease 10 --sgd -l 0.05 --ignore_linear U
rewards 300  --automl 4 --default_lease 10 --invariant -l 0.01
rewards 300  --automl 4 --default_lease 10 --invariant -l 0.01 --debug_reversed_learn
rewards 200  --automl 1 --default_lease 10
rewards 200  --automl 4 --default_lease 10 --passes 3
rewards 200  --automl 3 --default_lease 10 -t
rewards 200  --automl 3 --default_lease 10 --passes 2 --holdout_off --quiet
odd_bandit/blank_only_line 99 --automl 3 --default_lease 2
"""

_INCLUSION = f"""
three   1200 --automl 3 --default_lease 10 {_SURE} 0.5 --oracle_type one_diff_inclusion
three   400  --automl 3 --default_lease 100 {_SURE} 0.5 --oracle_type one_diff_inclusion -b 10
two     700  --automl 4 --default_lease 100 {_SURE} 0.99 --oracle_type one_diff_inclusion --cb_type dr
odd     300  --automl 8 --default_lease 10 {_SURE} 0.9 --oracle_type one_diff_inclusion --cb_adf
tastes  400  --automl 2 --default_lease 100 --oracle_type one_diff_inclusion --interaction_type cubic
noisy   400  --automl 4 --default_lease 10 --oracle_type one_diff_inclusion {_POPULAR}
bandit  300  --automl 4 --default_lease 10 --oracle_type one_diff_inclusion --epsilon 0.3 --first_only
dataset/cb-letter-e.txt.gz   200 --automl 4 --default_lease 10 --oracle_type one_diff_inclusion --adaptive
dataset/cb-diamonds-e.txt.gz 300 --automl 3 --default_lease 10 --oracle_type one_diff_inclusion -b 20
"""

_DRAWN = f"""
tastes  900  --automl 3 --default_lease 100 {_SURE} 0.99 --oracle_type rand
three   500  --automl 3 --default_lease 100 {_SURE} 0.5 --oracle_type rand --random_seed 5
odd     300  --automl 4 --default_lease 10 {_SURE} 0.99 --oracle_type rand --random_seed 7
noisy   300  --automl 8 --default_lease 10 --oracle_type rand {_POPULAR}
tastes  200  --automl 4 --default_lease 10 --oracle_type rand --interaction_type cubic --cb_type ips
two     600  --automl 4 --default_lease 10 {_SURE} 0.99 --oracle_type qbase_cubic
tastes  600  --automl 4 --default_lease 10 {_SURE} 0.99 --oracle_type qbase_cubic --random_seed 9
odd     400  --automl 3 --default_lease 10 {_SURE} 0.99 --oracle_type qbase_cubic
three   400  --automl 16 --default_lease 10 --oracle_type qbase_cubic --tol_x 1e-4
two     300  --automl 4 --default_lease 10 --oracle_type qbase_cubic --cb_type dr --priority_challengers 0
noisy   200  --automl 8 --default_lease 10 --oracle_type qbase_cubic {_POPULAR}
"""

_DOUBLES = f"""
odd     300  --automl 3 --default_lease 10 {_SURE} 0.99 --oracle_type champdupe
tastes  300  --automl 4 --default_lease 10 --oracle_type champdupe -b 8
rewards 200  --automl 2 --default_lease 10 --oracle_type champdupe --interaction_type cubic
"""

_STORMS = f"""
two     300  --automl 3 --default_lease 10 {_SURE} 1.99 --oracle_type one_diff_inclusion
two     300  --automl 3 --default_lease 5 {_SURE} 1.99 --noconstant
quick   300  --automl 3 --default_lease 10 {_SURE} 1.99 --power_t 0 -l 0.2
quick   300  --automl 3 --default_lease 1 {_SURE} 1.99 --oracle_type one_diff_inclusion
quick   300  --automl 3 --default_lease 10 {_SURE} 1.99 --oracle_type one_diff_inclusion --cb_type dr
three   300  --automl 3 --default_lease 5 {_SURE} 1.99 --oracle_type one_diff_inclusion --sgd -l 0.05
three   300  --automl 3 --default_lease 10 {_SURE} 1.99 -l 5
two     300  --automl 3 --default_lease 10 {_SURE} 1.99 --oracle_type rand
three   500  --automl 4 --default_lease 10 {_SURE} 1.99 --oracle_type qbase_cubic
two     300  --automl 3 --default_lease 10 {_SURE} 1.99 --oracle_type champdupe
"""
"""Levels above 1, at which almost anything is better than the champion."""

_NUMBERED = f"""
numbered 400 --cb 4 --automl 4 --default_lease 10 {_SURE} 0.99
numbered 300 --cb 4 --automl 2 --default_lease 10 {_SURE} 1.99 --cb_type dr --oracle_type one_diff_inclusion
numbered 200 --cb 4 --automl 8 --default_lease 10 --interaction_type cubic --cb_type ips --l1 1e-4 --l2 1e-4
numbered 400 --cb_explore 4 --automl 4 --default_lease 10 {_SURE} 1.99
numbered 400 --cb_explore 4 --automl 2 --default_lease 100 {_SURE} 0.99 --cb_type dr --first_only
numbered 300 --cb_explore 4 --automl 4 --default_lease 10 --softmax --oracle_type qbase_cubic -b 14
numbered 300 --cb_explore 4 --automl 4 --default_lease 10 {_SURE} 1.99 --squarecb --oracle_type rand
numbered 200 --cb_explore 4 --automl 4 --default_lease 10 --first 50 --random_seed 5 --cb_sample
numbered 200 --cb_explore 4 --automl 4 --default_lease 10 -t
numbered 100 --cb_explore 4 --automl 1 --default_lease 10
"""

_EXPLORERS = f"""
odd     600  --automl 3 --default_lease 10 {_SURE} 0.99 --softmax
noisy   300  --automl 8 --default_lease 10 --softmax --cb_type dr {_POPULAR}
three   300  --automl 3 --default_lease 5 --softmax --cb_sample --oracle_type one_diff_inclusion
tastes  400  --automl 4 --default_lease 10 {_POPULAR} --first 100
tastes  600  --automl 3 --default_lease 10 {_SURE} 0.99 --squarecb
noisy   300  --automl 4 --default_lease 10 --oracle_type rand --random_seed 5 --squarecb --epsilon 0.1
quick   300  --automl 3 --default_lease 10 {_SURE} 1.99 --squarecb --oracle_type one_diff_inclusion
rewards 200  --automl 3 --default_lease 10 -t --softmax
"""

CASES = _cases(_ONE_DIFF, _INCLUSION, _DRAWN, _DOUBLES, _STORMS, _NUMBERED, _EXPLORERS)

_LONG = f"""
tastes  3000 --automl 4 --default_lease 1000
three   3000 --automl 4 --default_lease 1000 --oracle_type one_diff_inclusion {_SURE} 0.5
rewards 3000 --automl 16 --default_lease 100 --oracle_type rand
odd     3000 --automl 8 --default_lease 100 --oracle_type qbase_cubic
two     3000 --automl 4 --default_lease 1000 --cb_type dr {_SURE} 0.5
dataset/cb-flights-e.txt.gz  2000 --automl 4 --default_lease 100
dataset/cb-penbased-e.txt.gz 1000 --automl 3 --default_lease 100 --oracle_type one_diff_inclusion
dataset/cb-surveys-e.txt.gz  1000 --automl 4 --default_lease 100 --oracle_type qbase_cubic
"""

LONG_CASES = _cases(_LONG)
