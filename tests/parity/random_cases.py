"""Cases drawn at random: any flags together, on any stream that suits them."""

from __future__ import annotations

import random

from tests.parity.case import Case
from tests.parity.odd_text import ODD_BANDIT, ODD_CLASSIC, ODD_SIMPLE

_ANY = (
    "-l 0.1 | -l 0.02 | -l 1 | -l 3",
    "--power_t 0 | --power_t 0.3 | --power_t 1 | --power_t 0.5",
    "--initial_t 2 -b 12 | --initial_t 0.1 -b 11",
    "--sgd -l 0.05 | --adaptive -l 0.1 | --normalized -l 0.1 | --invariant -l 0.05 | --adaptive --invariant",
    "--adaptive --normalized | --normalized --invariant -l 0.2 | --adaptive --normalized --invariant",
    "--l1 1e-4 | --l2 1e-4 | --l1 1e-3 --l2 1e-5 | --l1 1e-2",
    "--noconstant | -C 0.5 | -C -2",
    "--hash all | --hash_seed 3 | --hash all --hash_seed 12345",
    "--initial_weight 0.1 -b 12",
    "-t | --examples 40 | --examples 1",
    "-P 3 | -P 1.7 | --progress 10 | -P 1",
    "--passes 3 --holdout_off | --passes 4 | --passes 2 --holdout_period 3 | --passes 3",
    "--decay_learning_rate 0.8",
    "--min_prediction -0.3 | --max_prediction 0.4 | --min_prediction -1 --max_prediction 1",
    "--holdout_off | --holdout_period 4 | --random_seed 5",
)
_LETTERS = {"line": "abcd", "bandit": "UTAV"}
_LOSSES = (
    "--loss_function classic | --loss_function quantile | --loss_function quantile --quantile_tau 0.2",
    "--loss_function expectile --expectile_q 0.4 | --loss_function squared",
)
_SIGNED = "--loss_function hinge | --loss_function logistic | --binary | --loss_function logistic --binary"
_LINKS = "--link logistic | --link glf1 | --link identity"
_COUNTED = "--loss_function poisson | --loss_function poisson --link poisson -l 0.1 | --link poisson"
_BANDIT = (
    "--cb_type mtr | --cb_type ips | --cb_type dr | --cb_type dm",
    "--clip_p 0.3 | --clip_p 1",
)
_EXPLORER = ("--epsilon 0 | --epsilon 0.3 | --epsilon 1", "--first_only")


def _some(draw: random.Random, tables: tuple[str, ...], chance: float) -> list[str]:
    return [draw.choice(table.split(" | ")) for table in tables if draw.random() < chance]


def _interactions(draw: random.Random, letters: str) -> list[str]:
    """Products, filters, and how they are taken."""
    found = []
    for _ in range(draw.choice((0, 0, 1, 1, 2, 3))):
        order = draw.choice((2, 2, 2, 3, 3, 4))
        term = "".join(draw.choice(letters + ":" if order < 4 else letters) for _ in range(order))
        found.append(f"{'-q' if order == 2 else '--interactions'} {term}")
    for flag, chance in (("--ignore", 0.1), ("--keep", 0.05), ("--ignore_linear", 0.15)):
        if draw.random() < chance:
            found.append(f"{flag} {draw.choice(letters)}")
    found += _some(draw, ("--permutations", "--leave_duplicate_interactions"), 0.08)
    return found


def draw_case(seed: int) -> Case:
    """Draw a case; the same seed gives the same one."""
    draw = random.Random(seed)
    kind = draw.choice(("line", "line", "adf", "adf", "cb"))
    flags = _some(draw, _ANY, 0.16) + _interactions(draw, _LETTERS["bandit" if kind == "adf" else "line"])
    if kind == "line":
        stream = draw.choice(("numbers", "weighted", "signs", "counts", "odd"))
        extra = {"signs": (_SIGNED, _LINKS), "counts": (_COUNTED,)}.get(stream, (*_LOSSES[:1], _LINKS))
        flags += _some(draw, extra, 0.4)
        stream = f"odd/{draw.choice(list(ODD_SIMPLE))}" if stream == "odd" else stream
    else:
        explores = draw.random() < 0.6
        number = f" {draw.randrange(4, 9)}" if kind == "cb" else ""
        flags.append(f"{'--cb_explore' if explores else '--cb'}{'_adf' if kind == 'adf' else number}")
        flags += _some(draw, _BANDIT, 0.5) + (_some(draw, _EXPLORER, 0.3) if explores else [])
        odd = {"adf": ODD_BANDIT, "cb": ODD_CLASSIC}[kind]
        name = f"odd_{'bandit' if kind == 'adf' else 'classic'}/{draw.choice(list(odd))}"
        usual = draw.choice(("bandit", "rewards")) if kind == "adf" else "classic_bandit"
        stream = name if draw.random() < 0.3 else usual
    return Case(stream=stream, flags=" ".join(_without_repeats(flags)))


def _without_repeats(flags: list[str]) -> list[str]:
    """Keep of each flag that takes one value the first."""
    kept: dict[str, str] = {}
    found = []
    for group in flags:
        words = group.replace(" -", "\n-").split("\n")
        for word in words:
            name = word.split()[0]
            if name in ("-q", "--interactions") or kept.setdefault(name, word) is word:
                found.append(word)
    return found
