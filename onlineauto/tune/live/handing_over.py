"""``hand_over``: make the best trial of a study a challenger of a streaming search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from onlineauto.errors import OptionError
from onlineauto.tune.live.live_learner import model_of
from onlineauto.workspace.warm_start import challenge, warm_start
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    from pathlib import Path

    from onlineauto.engine.stream.source import Sources
    from onlineauto.tune.study import Study


class HasWorkspace(Protocol):
    """A model of `onlineauto.api`, such as `AutoML`."""

    @property
    def workspace(self) -> Workspace:
        """The workspace that learns and predicts."""


def hand_over(
    study: Study,
    search: Workspace | HasWorkspace,
    *,
    trial: int | None = None,
    since: Sources | None = None,
    checkpoints: str | Path | None = None,
) -> int:
    """Make the best trial of a study a challenger of a streaming search, and return its live index.

    The challenger has the flags and weights of the trial. It is a member of the ensemble, at first with the
    weight 0. It becomes the champion when the test of the search proves it better. The former champion
    returns if the test later proves it better again. A search that has not learned any event has no champion
    to protect: the trial becomes its champion, and 0 is returned.

    Parameters
    ----------
    study : Study
        A study of live learners.
    search : Workspace or model of `onlineauto.api`
        The search, with ``--automl`` and ``--search`` for each option that the study has searched.
    trial : int, optional
        The number of a trial; by default the best one.
    since : Sources, optional
        Events of the stream after the end of the study, which the trial learns first.
    checkpoints : str or Path, optional
        The folder of checkpoints of the study.

    Raises
    ------
    OptionError
        The study has no such trial or no checkpoint of it, or the search does not support its flags.
    InputError
        The checkpoint is not a checkpoint of a live learner.

    Examples
    --------
    >>> from onlineauto.tune.live import tune_stream
    >>> events = [f"{i % 2} |a x{i % 2} |b y{i % 3}" for i in range(270)]
    >>> study = tune_stream(events, search=["learning_rate"], max_trials=9)
    >>> search = Workspace(live_configs=2).fit(events)
    >>> hand_over(study, search)
    1
    """
    chosen = (
        study.best
        if trial is None
        else next((candidate for candidate in study.trials if candidate.number == trial), None)
    )
    if chosen is None:
        raise OptionError(
            "the study has no trial with a value yet" if trial is None else f"there is no trial {trial}"
        )
    saved = study.saved(chosen.number, checkpoints=checkpoints)
    if not isinstance(saved, bytes):
        raise OptionError(f"trial {chosen.number} has no checkpoint of a live learner to be handed over")
    model, _ = model_of(saved)
    if since is not None:
        model.fit(since)
    workspace = search if isinstance(search, Workspace) else search.workspace
    name = f"trial {chosen.number} of {study.name!r}"
    if not (workspace.searching.n_events or workspace.learner.model.touched.any()):
        warm_start(workspace, model, name=name)
        return 0
    return challenge(workspace, model, why=f"handed over: {name}", name=name)
