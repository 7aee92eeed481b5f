"""Learners for the simulator: VW and exact mode, with snapshots of their state."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from onlineauto import Workspace
from tests.parity.automl_outputs import SearchState, read_search_state, search_state
from tests.parity.exact import saved_weights
from tests.parity.result import Weights
from tests.parity.vw import read_readable_model


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Snapshot:
    """A learner at one moment.

    Attributes
    ----------
    search : SearchState or None
        State of the search; None without ``--automl``.
    interactions : tuple of int
        Number of interactions of each live config.
    switches : int
        Changes of champion so far.
    weights : Weights
        Cells of the model that hold anything.
    """

    search: SearchState | None
    interactions: tuple[int, ...]
    switches: int
    weights: Weights


class ExactLearner:
    """Exact mode, called through `Workspace`."""

    def __init__(self, flags: str) -> None:
        from onlineauto.workspace.options import REGISTRY

        self.workspace = Workspace(configuration=REGISTRY.parse([*flags.split(), "--vw_exact"]))
        self._searches = "--automl" in flags

    def predict(self, lines: Sequence[str]) -> Sequence[float]:
        return [float(chance) for chance in self.workspace.predict(_text(lines))]

    def learn(self, lines: Sequence[str]) -> None:
        self.workspace.learn(_text(lines))

    def snapshot(self) -> Snapshot:
        """See `Snapshot`."""
        searching = self.workspace.searching
        return Snapshot(
            search=search_state(self.workspace) if self._searches else None,
            interactions=tuple(
                len(searching.interactions(slot)) for slot in range(len(searching.search.slots))
            ),
            switches=searching.search.n_switches,
            weights=saved_weights(self.workspace.weights, self.workspace.configuration),
        )


class VwLearner:
    """VW, called through its Python interface; its state is read after it ends.

    Parameters
    ----------
    flags : str
        VW's options.
    directory : Path
        The folder of the files that it writes at the end.
    """

    def __init__(self, flags: str, *, directory: Path) -> None:
        import vowpalwabbit

        self._model, self._metrics = directory / "vw.model", directory / "metrics.json"
        files = ["--readable_model", str(self._model), "--extra_metrics", str(self._metrics)]
        argv = [*flags.split(), "--quiet", *files, "--hexfloat_weights"]
        self._searches = "--automl" in argv
        self._vw = vowpalwabbit.Workspace(arg_list=[*argv, *["--verbose_metrics"] * self._searches])

    def predict(self, lines: Sequence[str]) -> Sequence[float]:
        chances: Sequence[float] = self._vw.predict(list(lines))
        return chances

    def learn(self, lines: Sequence[str]) -> None:
        self._vw.learn(list(lines))

    def snapshot(self) -> Snapshot:
        """Finish VW and read its files; see `Snapshot`."""
        self._vw.finish()
        text = self._model.read_text()
        found = json.loads(self._metrics.read_text()).get("automl", {})
        slots = [value["self"] for key, value in found.items() if key.startswith("estimator_")]
        return Snapshot(
            search=read_search_state(text) if self._searches else None,
            interactions=tuple(
                slot["interactions"].count("-q ") + slot["interactions"].count("--cubic=") for slot in slots
            ),
            switches=found.get("total_champ_switches", 0),
            weights=read_readable_model(text)[1],
        )


def _text(lines: Sequence[str]) -> str:
    return "\n".join(lines) + "\n"
