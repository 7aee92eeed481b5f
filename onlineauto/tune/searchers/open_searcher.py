"""``OpenSearcher``: lets any searcher propose configs of a space that trials declare while they run."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from onlineauto.tune.searchers.searcher import Searcher
from onlineauto.tune.spaces.space import Space, SpaceInference

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np

    from onlineauto.tune.spaces import Config, Parameter


class OpenSearcher(Searcher):
    """Proposes configs of the parameters that earlier trials have suggested.

    Conditions are inferred from the names that trials had. When the inferred space changes, the searcher
    begins again in the new space, and learns all trials that fit into it. A trial that has only other values
    than proposed, or fewer, is changed in place.
    """

    name = "open"

    def __init__(self, make: Callable[[], Searcher]) -> None:
        self._make = make

    def begin(self, space: Space, *, seed: int) -> None:  # noqa: D102
        super().begin(space, seed=seed)
        self._seed = seed
        self.parameters: dict[str, Parameter] = {}
        self._space: Space | None = None
        self._configs: list[Config] = []
        self._results: list[tuple[int, list[float]] | None] = []
        self._rows: dict[tuple[Any, ...], list[int]] = {}
        self._suggested: set[int] = set()
        self._inner: Searcher | None = None
        self._fitting: dict[int, Config] = {}  # by row: the config as the inner searcher knows it
        self._copies: Counter[tuple[Any, ...]] = Counter()  # number of rows by the key of such a config
        self._inference = SpaceInference({})
        self._outdated = False

    @property
    def known_space(self) -> Space | None:
        """The parameters with their inferred conditions; None before the first trial."""
        if self._outdated:
            self._begin_again()
        return self._space

    def may_end(self, number: int) -> bool:  # noqa: D102
        return self._inner is not None and self._inner.may_end(number)

    def propose(self, number: int, rng: np.random.Generator) -> Config | None:  # noqa: D102
        if self._outdated:
            self._begin_again()
        if self._inner is None:
            return {}
        self._inner.lowest = self.lowest
        return self._inner.propose(number, rng)

    def on_ask(self, config: Config) -> None:  # noqa: D102
        row = len(self._configs)
        self._configs.append(config)
        self._results.append(None)
        self._rows.setdefault(_key(config), []).append(row)
        self._learn(row)

    def on_suggested(self, before: Config, config: Config, parameters: Mapping[str, Parameter]) -> None:
        """Learn which values a trial has suggested in place of a proposed config."""
        row = self._row(before)
        self._rows[_key(before)].remove(row)
        self._rows.setdefault(_key(config), []).append(row)
        self._configs[row] = config
        is_first = row not in self._suggested
        self._suggested.add(row)
        new = {name: parameter for name, parameter in parameters.items() if name not in self.parameters}
        self.parameters |= new
        if not self._outdated:
            self._outdated = bool(self.parameters) and (bool(new) or not is_first or not self._replaces(row))

    def _replaces(self, row: int) -> bool:
        """Change the config of a row in place; return False if the searcher has to begin again."""
        if self._inner is None or self._space is None or row not in self._fitting or self._results[row]:
            return False
        self._inference.add(self._configs[row])
        if self._inference.conditions() != self._inferred:
            return False
        before, values = self._fitting[row], self._values(self._space, row)
        if not values or self._copies[tuple(before.items())] > 1 or not self._inner.on_change(before, values):
            return False
        self._copies.subtract([tuple(before.items())])
        self._copies.update([tuple(values.items())])
        self._fitting[row] = values
        return True

    def fitted(self, config: Config) -> Config:
        """Return a config of a table with values of the declared parameters, without missing ones."""
        declared = {name: parameter for name, parameter in self.parameters.items() if name in config}
        fitted = config | {name: parameter.of_cell(config[name]) for name, parameter in declared.items()}
        missing = [
            name for name, parameter in declared.items() if fitted[name] is None and not parameter.holds(None)
        ]
        return {name: value for name, value in fitted.items() if name not in missing}

    def _row(self, config: Config) -> int:
        """Return the row of a config; of equal configs, the first without a result."""
        rows = self._rows[_key(config)]
        return next((row for row in rows if self._results[row] is None), rows[-1])

    def on_result(self, config: Config, resource: int, loss: float) -> None:  # noqa: D102
        self.on_losses(config, resource, [loss])

    def on_losses(self, config: Config, resource: int, losses: Sequence[float]) -> None:  # noqa: D102
        row = self._row(config)
        earlier = self._results[row]
        if earlier is None and row not in self._suggested:
            self._inference.add(self._configs[row])
        if earlier is None or resource >= earlier[0]:
            self._results[row] = resource, list(losses)
        if row in self._fitting and self._inner is not None and not self._outdated:
            self._pass(self._inner, row, resource, losses)

    def _pass(self, inner: Searcher, row: int, resource: int, losses: Sequence[float]) -> None:
        if len(losses) > 1:
            inner.on_losses(self._fitting[row], resource, losses)
        else:
            inner.on_result(self._fitting[row], resource, losses[0])

    def _begin_again(self) -> None:
        self._outdated = False
        self._configs = [
            config if row in self._suggested else self.fitted(config)
            for row, config in enumerate(self._configs)
        ]
        self._inference = SpaceInference(self.parameters)
        for row, config in enumerate(self._configs):
            if row in self._suggested or self._results[row] is not None:
                self._inference.add(config)
        self._space, self._inferred = self._inference.space(), self._inference.conditions()
        self._inner = self._make()
        self._inner.begin(self._space, seed=self._seed)
        self._fitting, self._copies = {}, Counter()
        for row, result in enumerate(self._results):
            self._learn(row)
            if result is not None and row in self._fitting:
                self._pass(self._inner, row, *result)

    def _learn(self, row: int) -> None:
        """Pass the config of a row to the inner searcher, unless a value is not in the known space."""
        if self._inner is None or self._space is None or self._outdated:
            return
        if values := self._values(self._space, row):
            self._fitting[row] = values
            self._copies.update([tuple(values.items())])
            self._inner.begin_trial(values)

    def _values(self, space: Space, row: int) -> Config:
        """Return the values of a row in the order of a space; none if one of them is not in the space."""
        parameters, config = space.parameters, self._configs[row]
        values = {name: parameters[name].plain(config[name]) for name in space.ordered if name in config}
        return values if all(parameters[name].holds(value) for name, value in values.items()) else {}

    def remember(self) -> dict[str, Any]:  # noqa: D102
        return {
            "parameters": {name: parameter.described() for name, parameter in self.parameters.items()},
            "configs": list(self._configs),
            "results": [None if result is None else [result[0], *result[1]] for result in self._results],
            "suggested": sorted(self._suggested),
        }

    def recall(self, state: Mapping[str, Any]) -> None:  # noqa: D102
        declared = state["parameters"]
        self.parameters = dict(Space(declared).parameters) if declared else {}
        self._configs = [dict(config) for config in state["configs"]]
        self._results = [
            None if result is None else (result[0], list(result[1:])) for result in state["results"]
        ]
        self._suggested = set(state["suggested"])
        self._rows = {}
        for row, config in enumerate(self._configs):
            self._rows.setdefault(_key(config), []).append(row)
        self._outdated = bool(self.parameters)


def _key(config: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple((name, isinstance(value, bool), value) for name, value in config.items())
