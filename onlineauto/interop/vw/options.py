"""The options in the head of a Vowpal Wabbit model file, and the parts of the file that they imply."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onlineauto.automl.options import AutomlOptions
from onlineauto.engine.loop.learner import parts_of_slot
from onlineauto.engine.stream.source import kind_of
from onlineauto.errors import InputError, OptionError
from onlineauto.exact.semantics import EXACT
from onlineauto.explorers.kinds.epsilon_decay import models_of
from onlineauto.explorers.options import choose_explorer
from onlineauto.features.options import GRAMS
from onlineauto.interop.vw.file import VwShape
from onlineauto.learners.options import CbOptions
from onlineauto.learners.rule import make_rule
from onlineauto.workspace.options import REGISTRY

if TYPE_CHECKING:
    from onlineauto.interop.vw.file import VwHead
    from onlineauto.options import Configuration

EXPLORER_FIELDS = {"first": "Q", "squarecb": "Q", "regcb": "Q", "cover": "Q", "synthcover": "ff"}
"""Types of the numbers that an explorer saves."""

PER_MODEL = b"--per_model_save_load"
"""The option with which a file has the sums of all models, not only of the first."""

_IMPLIED = {"csoaa_ldf", "csoaa_rank", PER_MODEL[2:].decode()}
_BANDITS = ("cb_explore", "cb", "ccb_explore_adf", "cb_explore_adf", "cb_adf")
"""Each of these options implies the ones after it."""

_OF_SLOTS = {"cb_sample"}
"""Options that ``--ccb_explore_adf`` implies, too."""


def configuration_of(head: VwHead, configuration: Configuration, *, name: str) -> Configuration:
    """Return the options of a file combined with `configuration`, in exact mode.

    VW saves only some options. Others, such as ``--loss_function``, have to be passed again, like to VW.
    """
    stored = _stored_options(head, name=name)
    values: dict[str, Any] = {option: stored.get(option) for option in stored.supplied}
    for option in REGISTRY.options:
        if option.name not in configuration.supplied:
            continue
        value = configuration.get(option.name)
        if value != values.get(option.name, value) and not option.override:
            raise OptionError(
                f"cannot use {option.flag} {value}: {name} was made with "
                f"{option.flag} {values[option.name]}; leave it out"
            )
        values[option.name] = value
    return REGISTRY.from_keywords(**values | {"vw_exact": True})


def _stored_options(head: VwHead, *, name: str) -> Configuration:
    """Return the options of a file."""
    values: dict[str, list[str]] = {"bit_precision": [str(head.bits)]}
    for option in GRAMS:
        if words := getattr(head, option):
            values[option] = [word.decode("utf-8", "backslashreplace") for word in words]
    option = ""
    for word in head.options.decode("utf-8", "backslashreplace").split():
        if word.startswith("--"):
            option = word[2:]
            values.setdefault(option, [])
        elif option:
            values[option].append(word)
    bandit = next((kind for kind in _BANDITS if kind in values), "")
    left_out = _IMPLIED | (set(_BANDITS) - {bandit}) | (_OF_SLOTS if bandit == "ccb_explore_adf" else set())
    words = []
    for option, texts in values.items():
        if option not in left_out:
            words += [f"--{option}={text}" for text in texts] or [f"--{option}"]
    try:
        return REGISTRY.parse_kept(["--vw_exact", *words])
    except OptionError as error:
        raise InputError(
            f"{name} was made with options that onlineauto does not reproduce: {error}"
        ) from None


def shape_of(head: VwHead, configuration: Configuration) -> VwShape:
    """Return the parts that follow the options of a file, whose options are `configuration`."""
    kind = kind_of(configuration)
    rule = make_rule(configuration)
    bandit, explorer = kind != "simple", choose_explorer(configuration)
    automl = configuration[AutomlOptions].automl
    averages = models = 1
    if PER_MODEL in head.options.split():
        estimates = bandit and configuration[CbOptions].cb_type == "dr"
        models = (automl or 1) * parts_of_slot(configuration, kind=kind, estimates=estimates, semantics=EXACT)
        averages = models // 2 if estimates else models
    return VwShape(
        slots=kind == "ccb_explore_adf",
        decaying=models_of(configuration),
        explorer=EXPLORER_FIELDS.get(explorer.name, "") if "explore" in kind else "",
        search=automl is not None,
        averages=averages if bandit else 0,
        models=models,
        fields=1 + rule.adaptive + rule.normalized,
    )
