"""The options of a model in the form of Vowpal Wabbit's model files.

Source: VW ``parse_regressor.cc`` (``save_load_header``), and the options that each reduction stores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from onlineauto.engine.stream.source import kind_of
from onlineauto.workspace.options import REGISTRY

if TYPE_CHECKING:
    from onlineauto.options import Configuration
    from onlineauto.options.option import Option

_DROPPED: Final = frozenset(
    (
        *("bit_precision", "constant", "decay_learning_rate", "debug_reversed_learn", "expectile_q"),
        *("initial_t", "initial_weight", "l1", "l2", "leave_duplicate_interactions", "logistic_max"),
        *("logistic_min", "loss_function", "max_prediction", "min_prediction", "permutations"),
        *("quantile_tau", "random_seed"),
    )
)
"""Options that onlineauto's models store and VW's do not."""
OF_LEARNING: Final = frozenset(("adaptive", "invariant", "learning_rate", "normalized", "power_t", "sgd"))
"""Options that VW stores only in models that can learn further."""
_MERGED: Final = ("ignore", "ignore_linear", "keep")
"""Options that are written last, each as one word with all characters of its values in ascending order."""


def vw_command(configuration: Configuration, *, seed: int, resumes: bool) -> str:
    """Return the options that VW stores, in VW's order, as text with a blank before each.

    Examples
    --------
    >>> vw_command(REGISTRY.parse("-q ab --ignore cb --epsilon 0.1 --cb_explore_adf"), seed=0, resumes=True)
    ' --cb_adf --cb_explore_adf --cb_type mtr --csoaa_ldf multiline --csoaa_rank --epsilon 0.100000001490116 \
--quadratic ab --ignore bc'
    """
    words: dict[str, str] = {}
    for option in REGISTRY.options:
        is_written = option.vw and option.keep and option.name not in _DROPPED
        if (
            option.name in configuration.supplied
            and is_written
            and (resumes or option.name not in OF_LEARNING)
        ):
            words[option.name] = _words(option, configuration.get(option.name))
    merged = {name: words.pop(name) for name in _MERGED if name in words}
    words |= _implied_options(configuration)
    text = "".join(words[name] for name in sorted(words))
    for name in merged:
        values = configuration.get(name)
        assert isinstance(values, tuple)
        text += f" --{name} {_characters(values)}"
    return f"{text} --random_seed {seed}" if seed else text


def _characters(values: tuple[str, ...]) -> str:
    """Return all bytes of the values, each once, in the order of C's signed characters."""
    characters = set("".join(values).encode("utf-8", "surrogateescape"))
    ordered = [
        *sorted(byte for byte in characters if byte > 127),
        *sorted(byte for byte in characters if byte < 128),
    ]
    return bytes(ordered).decode("utf-8", "surrogateescape")


def _implied_options(configuration: Configuration) -> dict[str, str]:
    """Return the options that VW's reductions set for one another, by name."""
    kind = kind_of(configuration)
    if kind == "simple":
        return {}
    names = ["cb_adf", "csoaa_rank", *(["cb_explore_adf"] if kind.startswith("cb_explore") else [])]
    words = {name: f" --{name}" for name in names}
    return words | {
        "csoaa_ldf": " --csoaa_ldf multiline",
        "cb_type": f" --cb_type {configuration.get('cb_type')}",
    }


def _words(option: Option, value: object) -> str:
    if option.switch:
        return f" --{option.name}"
    values = value if isinstance(value, tuple) else (value,)
    return "".join(f" --{option.name} {_text(each)}" for each in values)


def _text(value: object) -> str:
    return f"{float(np.float32(value)):.15g}" if isinstance(value, float) else str(value)
