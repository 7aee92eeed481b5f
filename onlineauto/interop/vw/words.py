"""``champion_words``: the champion as a command line of Vowpal Wabbit, or the reason why it has none."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from onlineauto.automl.options import OF_DECAY, AutomlOptions
from onlineauto.errors import OptionError
from onlineauto.explorers.options import choose_explorer
from onlineauto.features.interactions import WILDCARD, parse_full_names
from onlineauto.features.slots import INDEX_NAME
from onlineauto.options import options_of
from onlineauto.options.option import to_text
from onlineauto.workspace.options import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onlineauto.features.interactions import Product
    from onlineauto.options import Configuration
    from onlineauto.workspace.workspace import Workspace

_INTERACTIONS = ("quadratic", "cubic", "interactions")
_LETTERS = (*_INTERACTIONS, "ignore", "ignore_linear", "keep")
_WRITTEN = {"bit_precision", "constant", "initial_weight"}
"""Options that other parts of the file contain, or that have no effect once weights are learnt."""
_SEARCH = {option.name for option in options_of(AutomlOptions)}
_NATIVE = {
    "cover": "arranges its policies differently",
    "regcb": "uses other plausible costs",
    "elim": "uses other plausible costs",
    "cb_sample": "draws otherwise",
    "ccb_explore_adf": "draws otherwise",
}
"""Options with which native mode and VW predict differently, and the reason."""
_PRINTABLE = range(32, 127)
_PLAIN = set(_PRINTABLE) - set(b" \\")


def champion_words(workspace: Workspace) -> tuple[list[str], list[int]]:
    """Return options with which VW predicts like the champion, and the lanes of the models that they need."""
    configuration, searching = workspace.configuration, workspace.searching
    if not workspace.semantics.predicts_as_vw:
        _refuse(workspace)
    values: dict[str, Any] = {
        option.name: configuration.get(option.name)
        for option in REGISTRY.options
        if option.keep and option.vw and option.name in configuration.supplied
    }
    searched = configuration[AutomlOptions].automl is not None
    if searched:
        champion = [
            each for each in searching.interactions(0) if INDEX_NAME not in each
        ]  # VW adds the other options
        values |= dict.fromkeys(_INTERACTIONS, ()) | {"interactions": tuple(map(_letters, champion))}
        settings = dict(searching.live_configs.configs[0].settings)
        values |= {name: value for name, value in settings.items() if REGISTRY[name].vw}
    elif "experimental_full_name_interactions" in values:
        full = [parse_full_names(text) for text in values.pop("experimental_full_name_interactions")]
        values["interactions"] = (*values.get("interactions", ()), *map(_letters_of_terms, full))
    if workspace.semantics.predicts_as_vw and (state := int(workspace.learner.task.exploration.random[0])):
        values["random_seed"] = state
    if "squarecb" not in values:  # VW has no --scaled_squarecb, the default of a search: it gets ε-greedy
        values.pop("gamma_scale", None)
    if "synthcover" in values and not workspace.semantics.predicts_as_vw:  # VW's least probability is 0
        values.setdefault("epsilon", choose_explorer(configuration).epsilon)
    searches = _SEARCH - (set(OF_DECAY) if "epsilon_decay" in values else set())
    words: list[str] = []
    for name, value in values.items():
        if name not in searches | _WRITTEN:
            words += _words(name, value)
    return words, _lanes_for(workspace, values)


def _words(name: str, value: Any) -> Iterator[str]:
    """Yield the words of one option."""
    if value is True:
        yield f"--{name}"
        return
    for each in value if isinstance(value, tuple) else (value,):
        text = to_text(each)
        if name in _LETTERS:
            text = text.replace(" ", r"\x20")
        if not text or re.search(r"\s", text) or text.startswith("--"):
            raise OptionError(f"--{name} {text!r} cannot be in a model file of Vowpal Wabbit")
        yield from (f"--{name}", text)


def _letters(interaction: tuple[bytes, ...]) -> str:
    """Return the first bytes of an interaction's names, in the spelling of an option."""
    letters = b"".join(name[:1] for name in interaction)
    if b":" in letters:
        raise OptionError("Vowpal Wabbit treats a namespace that begins with ':' as all namespaces")
    return "".join(chr(byte) if byte in _PLAIN else rf"\x{byte:02x}" for byte in letters)


def _letters_of_terms(terms: Product) -> str:
    """Return the first bytes of the full names of an interaction, in the spelling of an option."""
    if WILDCARD in terms:
        raise OptionError(
            "Vowpal Wabbit's --experimental_full_name_interactions with ':' cross other namespaces"
        )
    return _letters(tuple(term.name for term in terms))


def _lanes_for(workspace: Workspace, values: dict[str, Any]) -> list[int]:
    """Return the lanes of the champion that VW stores with these options."""
    lanes = workspace.learner.champion_lanes()
    if "cb_type" in workspace.configuration[AutomlOptions].searched() and values.get("cb_type") != "dr":
        return lanes[::2]  # the other lanes serve only the estimates of dr
    return lanes


def _refuse(workspace: Workspace) -> None:
    """Reject a model of native mode that VW cannot represent."""
    configuration = workspace.configuration
    if choose_explorer(configuration).name == "rnd":  # --vw_exact does not reproduce it either
        raise OptionError("Vowpal Wabbit would predict differently: its random predictions with --rnd differ")
    for reason in _reasons(workspace, configuration):
        raise OptionError(
            f"Vowpal Wabbit would predict differently: {reason}; learn with --vw_exact, where it does not"
        )


def _reasons(workspace: Workspace, configuration: Configuration) -> Iterator[str]:
    if "namespaces" in configuration[AutomlOptions].searched():
        yield "--search namespaces excludes namespaces, including those that appear later"
    explorer = choose_explorer(configuration).name if "explore" in workspace.kind else ""
    for name, reason in _NATIVE.items():
        if name == explorer or name in configuration.supplied:
            yield f"it {reason} with --{name}"
    flags = choose_explorer(configuration).flags
    settings = dict(workspace.searching.live_configs.configs[0].settings)
    tuned = (name for name in configuration.supplied if REGISTRY[name].tunable)
    for name in dict.fromkeys(
        (*(flag for flag in flags if flag in configuration.supplied), *tuned, *settings)
    ):
        if not REGISTRY[name].vw:
            yield f"it has no --{name}"
    layout = workspace.state(copy=False)["layout"]
    names = sorted({*layout["known"], *workspace.searching.live_configs.namespaces})
    for name, other in pairwise(names):
        if name[:1] == other[:1]:
            pair = f"{_quote_name(name)} and {_quote_name(other)}"
            yield f"namespaces {pair} begin with one letter, and are one to it"
    for name in names:
        if name[0] not in _PRINTABLE or name[:1] == b":":
            yield f"it does not cross namespace {_quote_name(name)}"
    if layout["left_out"]:
        yield "some namespaces are excluded from wildcards"


def _quote_name(name: bytes) -> str:
    return repr(name.decode("utf-8", "backslashreplace"))
