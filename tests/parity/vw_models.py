"""Cases of models that go between VW and onlineauto: their flags, and the runs of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.parity.automl_streams import content
from tests.parity.exact import command_line
from tests.parity.vw import VwRunner

_SURE = "--fixed_significance_level"
_DECAY = "rewards --cb_explore_adf --epsilon_decay --bonferroni_denominator 1"
_RANGE = "--cb_min_cost -1 --cb_max_cost 0"


@dataclass(frozen=True, slots=True)
class ModelCase:
    """A model, learnt from the first half of a stream."""

    stream: str  # as of `Case`
    flags: str
    again: str = ""  # flags that Vowpal Wabbit does not save, and that have to be given again beside ``-i``

    @property
    def id(self) -> str:
        """Name of the case."""
        return f"{self.stream} {self.flags}"


def _cases(table: str) -> list[ModelCase]:
    """Cases of a table of one a line: a stream, flags, and behind a semicolon those to be given again."""
    found = []
    for line in filter(None, table.splitlines()):
        stream, flags = line.split(maxsplit=1)
        flags, _, again = flags.partition(";")
        found.append(ModelCase(stream, f"{flags.strip()} {again.strip()}".strip(), again.strip()))
    return found


_BOTH = rf"""
numbers -q ab
numbers -q :: --sgd -l 0.1
numbers --adaptive -l 0.1 --cubic abc
numbers --normalized -l 0.1 --noconstant
numbers --invariant -l 0.01 -b 10
numbers --power_t 0.25 -b 12 ; --initial_t 5
numbers -q aa ; --permutations
numbers --sgd -l 0.1 ; --l2 1e-3
numbers -q ab ; --l1 1e-3 --l2 1e-3
numbers -b 8 ; --min_prediction -0.5 --max_prediction 0.5
numbers -q ab ; --loss_function quantile
signs --link logistic ; --loss_function logistic
signs --binary ; --loss_function hinge
counts --link poisson ; --loss_function poisson
weighted --ignore a --ignore_linear b -q bc
numbers --ngram 2 --ngram a3 --skips 1 -q ab
bandit --cb_explore_adf --ngram U2
bandit --cb_adf
bandit --cb_adf --rank_all --cb_type dr -q UA
bandit --cb_adf --cb_type ips --hash all --clip_p 0.1
bandit --cb_explore_adf --cb_type dm --epsilon 0.2
bandit --cb_explore_adf -q :: --first_only
bandit --cb_explore_adf --first 300
bandit --cb_explore_adf --first 20 --epsilon 0.1
bandit --cb_explore_adf --softmax --lambda 5
bandit --cb_explore_adf --squarecb --gamma_scale 100
bandit --cb_explore_adf --squarecb --elim --cb_min_cost -1
bandit --cb_explore_adf --regcb --mellowness 0.01
rewards --cb_explore_adf --regcb --regcbopt {_RANGE}
bandit --cb_explore_adf --synthcover
bandit --cb_explore_adf --bag 3
bandit --cb_explore_adf --bag 4 --cb_type dr --random_seed 7
bandit --cb_explore_adf --cover 3
bandit --cb_explore_adf --cover 2 --cb_type ips --nounif
bandit --cb_explore_adf --cb_sample --random_seed 4
{_DECAY}
{_DECAY} --min_scope 10 -q UA --cb_type dr
{_DECAY} --min_scope 5 --model_count 4 --min_champ_examples 10 --initial_epsilon 0.5
{_DECAY} --min_scope 10 --challenger_epsilon --reward_as_cost --noconstant
{_DECAY} --min_scope 10 --model_count 2 --constant_epsilon --epsilon 0.2 --power_t 0.3
{_DECAY} --model_count 1 --shift_model_bounds 2
slots --ccb_explore_adf
slots --ccb_explore_adf -q UA -q AU --cubic UAS -b 14
slots --ccb_explore_adf -q :: --cb_type dr --epsilon 0.2
slots --ccb_explore_adf --ccb_no_slot_index -q :: --random_seed 12
slots --ccb_explore_adf --first 20 -q UA
slots --ccb_explore_adf --squarecb --cb_min_cost -1
slots --ccb_explore_adf --bag 3 -q UA
slots --ccb_explore_adf --sgd -l 0.02 --power_t 0.3
slots_at_last --ccb_explore_adf -q ::
slots_crowded --ccb_explore_adf --cb_type ips --normalized -l 0.2
slots_rewards --ccb_explore_adf --automl 3 --default_lease 10 {_SURE}
slots_rewards --ccb_explore_adf --automl 4 --default_lease 10 {_SURE} --oracle_type one_diff_inclusion
slots --ccb_explore_adf --automl 3 --default_lease 10 {_SURE} --squarecb
rewards --cb_explore_adf -q U\x20 --interactions UUA
classic_bandit --cb 4
classic_bandit --cb_explore 4 --cb_type dr --bag 2
classic_bandit --cb_explore 4 -q :: --keep a --keep b
rewards --cb_explore_adf --automl 4 --default_lease 10 {_SURE}
rewards --cb_explore_adf --automl 3 --default_lease 10 {_SURE} --cb_type dr
rewards --cb_explore_adf --automl 3 --default_lease 10 {_SURE} --oracle_type one_diff_inclusion
bandit --cb_explore_adf --automl 3 --default_lease 10 {_SURE} --oracle_type rand --random_seed 5
bandit --cb_adf --automl 5 --default_lease 10 {_SURE} --oracle_type qbase_cubic
rewards --cb_explore_adf --automl 4 --default_lease 10 {_SURE} --squarecb
"""

_FROM = f"""
numbers --l1 1e-3
numbers -b 8 --initial_weight 0.1 --adaptive --initial_t 5
numbers -q ab --passes 3 --holdout_off
rewards --cb_explore_adf -q UA --predict_only_model
rewards --cb_explore_adf --automl 4 --default_lease 10 --predict_only_model
bandit --cb_explore_adf --bag 3 --per_model_save_load
bandit --cb_adf --cb_type dr --per_model_save_load
{_DECAY} --min_scope 10 --per_model_save_load
{_DECAY} --min_scope 10 --cb_type dr --per_model_save_load
numbered --cb_explore 4 --automl 4 --default_lease 10 {_SURE}
numbered --cb 4 --automl 2 --default_lease 10 {_SURE} --cb_type dr --per_model_save_load
classic_bandit --cb_explore 4 --bag 4 --cb_type dr --per_model_save_load
slots --ccb_explore_adf --cover 2 --per_model_save_load
slots --ccb_explore_adf -q :: --predict_only_model
slots --ccb_explore_adf --automl 4 --default_lease 10 --predict_only_model
slots_rewards --ccb_explore_adf --automl 4 --default_lease 10 -b 12 --predict_only_model
{_DECAY} --model_count 4 --predict_only_model
slots --ccb_explore_adf --squarecb --elim
bandit --cb_explore_adf --squarecb --elim -q ::
bandit --cb_explore_adf --cover 2 --cb_type dr --per_model_save_load
rewards --cb_explore_adf --automl 4 --default_lease 10 {_SURE} --per_model_save_load
rewards --cb_explore_adf --automl 4 --default_lease 10 {_SURE} --priority_type favor_popular_namespaces
tastes --cb_explore_adf --automl 3 --default_lease 10 {_SURE} --interaction_type cubic
"""

FROM_VW = _cases(_BOTH + _FROM)
"""Models that VW saves."""

TO_VW = _cases(
    _BOTH
    + """
numbers -b 8 --sgd --initial_weight 0.1
numbers -C 0.5 --adaptive
odd --cb_explore_adf --automl 3 --default_lease 10 --fixed_significance_level --automl_significance_level 0.99
numbers --interactions ab --interactions ba --leave_duplicate_interactions
"""
)
"""Models that VW loads."""

NATIVE = _cases(
    """
numbers -q ab --loss_function quantile
signs --automl 3 --predict_with champion --loss_function logistic --link logistic
rewards --cb_explore_adf --epsilon 0.05 --automl 4 --default_lease 100
rewards --cb_explore_adf --softmax --automl 4 --search cb_type,interactions,learning_rate --default_lease 20
rewards --cb_explore_adf --automl 3 --bag 2 --cb_type dr
rewards --cb_explore_adf --epsilon_decay --min_scope 10
rewards --cb_explore_adf --epsilon_decay --min_scope 10 --automl 3 --default_lease 20
rewards --cb_explore_adf --epsilon_decay --min_scope 10 --automl 3 --search cb_type --default_lease 20
rewards --cb_explore_adf --experimental_full_name_interactions U|A|A --l1 1e-4
bandit --cb_explore_adf --bag 3 --l1 1e-4 --l2 1e-4
bandit --cb_adf --rank_all --cb_type dr -q UA
bandit --cb_explore_adf --first 300
bandit --cb_explore_adf --synthcover -q ::
bandit --cb_explore_adf --squarecb
classic_bandit --cb_explore 4 -q ab
"""
)
"""Models of native mode that VW loads."""


def lay_out(case: ModelCase, directory: Path, *, events: int = 300) -> None:
    """Write the two halves of the stream of a case."""
    data = content(case.stream, events=events)
    end = b"\n\n" if data.startswith((b"shared", b"ccb")) else b"\n"
    parts = data.rstrip(b"\n").split(end)
    half = len(parts) // 2
    (directory / "first").write_bytes(end.join(parts[:half]) + end)
    (directory / "second").write_bytes(end.join(parts[half:]) + end)


def run_vw(vw: VwRunner, words: str | Sequence[str], *, directory: Path) -> None:
    """Run VW."""
    argv = [*(words.split() if isinstance(words, str) else words), "--quiet"]
    code, _, err = vw.command_line(argv, directory=directory)
    assert code == 0, err


def same_text(directory: Path, one: str, other: str) -> bool:
    """Return whether two files are the same, and not empty."""
    text = (directory / one).read_text()
    assert text
    return text == (directory / other).read_text()


def run_exact(words: str, *, directory: Path) -> None:
    """Run onlineauto."""
    code, _, err = command_line([*words.split(), "--quiet"], directory=directory)
    assert code == 0, err
