"""``Champion``: the interactions, settings and reward of the best single live config."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from onlineauto.automl.config import namespace_text
from onlineauto.features.options import FeatureOptions
from onlineauto.learners.rule import Hyperparameters

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onlineauto.workspace.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Champion:
    """The best single live config; without a search, the only config.

    It predicts until the ensemble leads or is proved better, and always with ``--predict_with champion``.

    Attributes
    ----------
    interactions : tuple of str
        Its interactions, by the full names of namespaces: ``"user*article"``.
    settings : mapping of str to float or str
        The searched hyperparameters, such as ``learning_rate``.
    events : int
        Number of events since this config became the champion.
    reward : (float, float)
        Bounds on its average reward over these events; for classification, on the negated loss, and for
        regression, on that of standardised labels. With the probability of the significance level, they hold
        at all times at once.
    changes : int
        Number of champions before it.
    """

    interactions: tuple[str, ...]
    settings: Mapping[str, float | str]
    events: int
    reward: tuple[float, float]
    changes: int

    @property
    def learning_rate(self) -> float:
        """The learning rate."""
        return float(self.settings["learning_rate"])


def champion_of(workspace: Workspace) -> Champion:
    """Return the champion of a workspace; without a search, the config that the options give."""
    searching, estimates = workspace.searching, workspace.estimates
    configuration, live = workspace.configuration, searching.live_configs
    crossed = ["*".join(map(namespace_text, names)) for names in searching.interactions(0)]
    if not live.arrays.searching:
        options = configuration[FeatureOptions]
        crossed = [*options.quadratic, *options.cubic, *options.interactions]
        crossed += [text.replace("|", "*") for text in options.experimental_full_name_interactions]
    searched = searching.options.searched() if live.arrays.searching else ()
    defaults = Hyperparameters(configuration).defaults
    settings = {
        name: value for name, value in defaults.items() if name in searched or name == "learning_rate"
    }
    return Champion(
        interactions=tuple(crossed),
        settings=settings | dict(live.configs[0].settings),
        events=live.champion_events,
        reward=(estimates.lower(0), estimates.upper(0)),
        changes=searching.n_switches,
    )
