"""First champion: start a search with the caller's config in place of the oracle's."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from onlineauto.automl.config import MOST_FACTORS, Config, ConfigKind, words_text
from onlineauto.automl.decisions import Rotate, Widen
from onlineauto.automl.search import ConfigState
from onlineauto.engine.search.journal import entry_of
from onlineauto.errors import OptionError, short_repr

if TYPE_CHECKING:
    from collections.abc import Iterable

    from onlineauto.workspace.workspace import Workspace

_REVIEWED: Final = 8
"""The search requests the first challengers after this fraction of the first lease."""


def config_of_names(interactions: Any) -> Config:
    """Return the config with some interactions, written with the full names of their namespaces.

    >>> config_of_names(["user*article"]).elements
    ((b'article', b'user'),)
    """
    if isinstance(interactions, str | bytes) or not isinstance(interactions, Collection):
        raise OptionError(
            f"begin_with cannot be {short_repr(interactions)}: give a list, as ['user*article']"
        )
    elements = []
    for text in interactions:
        names: tuple[bytes, ...] = ()
        with suppress(UnicodeEncodeError):  # half of a surrogate pair is not part of any name
            parts = text.split("*") if isinstance(text, str) else ()
            names = tuple(sorted(each.encode("utf-8", "surrogateescape") for each in parts))
        if not 2 <= len(names) <= MOST_FACTORS or not all(names):
            raise OptionError(
                f"{short_repr(text)} is not an interaction: name two or three namespaces, as 'user*article'"
            )
        elements.append(names)
    return Config.of(elements, ConfigKind.INCLUSION)


def begin_with(workspace: Workspace, config: Config, *, namespaces: Iterable[bytes] = ()) -> None:
    """Make a config the first champion of a search that has learnt nothing yet.

    Examples
    --------
    >>> from onlineauto import Workspace
    >>> search = Workspace(live_configs=4)
    >>> begin_with(search, config_of_names(["user*page"]))
    >>> search.fit(["1 |user tom |page a |hour x"]).searching.interactions(0)
    ((b'page', b'user'),)
    """
    if not workspace.searching.live_configs.arrays.searching:
        raise OptionError("this model does not search, so it has no first champion")
    if workspace.searching.n_events:
        raise OptionError("this model has learnt already: a new one can begin with another champion")
    for names in config.elements:
        if len(names) > MOST_FACTORS:
            text = words_text([names])
            raise OptionError(f"the first champion crosses {text}: a search crosses two or three namespaces")
    known = sorted({*namespaces}.union(*config.elements))
    with workspace.lock:
        tree, search = workspace.state(copy=False), workspace.searching.search
        first = replace(search.candidates[0], config=config, state=ConfigState.LIVE)
        if first.config.kind is not search.candidates[0].config.kind:
            raise OptionError(
                "a first champion is for --oracle_type stepwise, whose configs name interactions"
            )
        search = replace(
            search,
            candidates=(first,),
            namespaces=tuple(known),
            n_switches=1,  # so the search treats it as proved, and does not start with another one
            review=first.lease // _REVIEWED,
        )
        live = tree["search"]["slots"] | {"configs": [config], "namespaces": known}
        tree["search"] |= {"search": search, "slots": live}
        tree["layout"] |= {"known": known}
        workspace.restore(tree)
        for decision in (Widen(tuple(known)), Rotate(0, 0, config, "where the search was told to begin")):
            if workspace.searching.observers:
                entry = entry_of(decision, events=0, statistics=workspace.estimates)
                workspace.searching.observers.tell(entry)
