"""``ObjectiveStudy``: a study whose objective suggests parameters, with the methods of Optuna's studies."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from onlineauto.errors import OptionError, short_repr
from onlineauto.tune.active_trial import ActiveTrial
from onlineauto.tune.plain import count
from onlineauto.tune.spaces.space import OpenSpace
from onlineauto.tune.study import Study
from onlineauto.tune.study_view import StudyDirection
from onlineauto.tune.trial import FrozenTrial, Job, TrialState

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from onlineauto.tune.schedulers import Scheduler
    from onlineauto.tune.searchers import Searcher
    from onlineauto.tune.settings import StudySettings
    from onlineauto.tune.spaces import Parameter
    from onlineauto.tune.trial import Trial


class ObjectiveStudy(Study):
    """A study without a declared space, as `create_study` and `load_study` return it.

    Its trials are of the class `FrozenTrial`, and `ask` returns a trial that suggests.
    """

    if TYPE_CHECKING:
        trials: list[FrozenTrial]  # type: ignore[assignment]
        best_trials: list[FrozenTrial]  # type: ignore[assignment]
        best_trial: FrozenTrial  # type: ignore[assignment]
        best: FrozenTrial | None  # type: ignore[assignment]

    def _open(self, *arguments: Any, **options: Any) -> None:
        super()._open(*arguments, **options)
        self._asked: dict[int, ActiveTrial] = {}
        self._curves: defaultdict[int, dict[int, float]] = defaultdict(dict)
        self._n_read = 0

    @classmethod
    def _class_for(cls, settings: StudySettings) -> type[Study]:
        return cls if isinstance(settings.setting.space, OpenSpace) else Study

    def copied(self, trial: Trial) -> FrozenTrial:  # type: ignore[override]  # noqa: D102
        most = self._replica.progress.scheduler.setting.max_resource
        return FrozenTrial(super().copied(trial), most, self._reported)

    def _reported(self) -> Mapping[int, dict[int, float]]:
        """Return the reported values of each trial by their steps, as its objective counts them."""
        with self._replica.lock:
            version = self._replica.progress.version
            for record in self._replica.records(self._n_read, version):
                if record["kind"] == "reported":
                    step = record["step"] - record.get("from_zero", False)
                    self._curves[record["trial"]][step] = record["value"]
            self._n_read = version
        return self._curves

    def ask(  # type: ignore[override]
        self, fixed_distributions: Mapping[str, Parameter] | None = None, *, wait: bool = False
    ) -> ActiveTrial:
        """Begin a trial and return it; end it by `tell`.

        Parameters
        ----------
        fixed_distributions : mapping, optional
            Parameters that are suggested at once, as of `onlineauto.tune.distributions`.
        wait : bool
            True to wait while other processes run all jobs.

        Raises
        ------
        OptionError
            If there is no job now.
        """
        job = super().ask(wait=wait)
        if job is None:
            raise OptionError(f"the study {self.name!r} has no job now; its state is {str(self.state)!r}")
        trial = self._asked[job.trial] = ActiveTrial(job, self._replica)
        for name, parameter in (fixed_distributions or {}).items():
            trial.suggest(name, parameter)
        return trial

    def tell(  # type: ignore[override]
        self,
        trial: ActiveTrial | Job | int,
        values: Any = None,
        state: TrialState | None = None,
        skip_if_finished: bool = False,
    ) -> FrozenTrial:
        """End a trial of `ask`, and return it.

        Parameters
        ----------
        trial : ActiveTrial or int
            The trial, or its number, if this object has asked for it.
        values : number or sequence, optional
            The value, or one for each objective. NaN fails the trial.
        state : TrialState, optional
            COMPLETE; or PRUNED, at the last report, or FAIL, without values.
        skip_if_finished : bool
            True to return a trial unchanged if it has ended.

        Raises
        ------
        OptionError
            If this object has not asked for the trial, or it has ended, or the arguments are not valid.
        LeaseLost
            If another process has claimed the trial.
        """
        if isinstance(trial, Job):
            trial = trial.trial
        number = trial.number if isinstance(trial, ActiveTrial) else count("trial", trial, 0)
        active, known = self._asked.get(number), self._replica.progress.trials.get(number)
        if active is None:
            if skip_if_finished and known is not None and self.copied(known).state.is_finished():
                return self.copied(known)
            raise OptionError(f"trial = {short_repr(number)} has ended, or this study has not asked for it")
        ended = str(getattr(state, "name", state or TrialState.COMPLETE))
        if ended == TrialState.COMPLETE and values is not None:
            active.end(values[0] if isinstance(values, list | tuple) and len(values) == 1 else values)
        elif ended == TrialState.PRUNED and values is None:
            active.prune()
        elif ended == TrialState.FAIL and values is None:
            active.fail("it was told as failed", final=True)
        else:
            raise OptionError(
                f"tell(values={short_repr(values)}, state={ended}): give values, or state=PRUNED or FAIL"
            )
        del self._asked[number]
        return self.copied(self._replica.progress.trials[number])

    def get_trials(
        self, deepcopy: bool = True, states: Container[TrialState] | None = None
    ) -> list[FrozenTrial]:
        """Return the trials in some states, or all; they are copies, whatever `deepcopy` is."""
        del deepcopy
        return [trial for trial in self.trials if states is None or trial.state in states]

    def add_trial(self, trial: Any) -> None:
        """Add a trial of elsewhere, such as one of `create_trial`; see `add_trials`."""
        self.add_trials([trial])

    @property
    def study_name(self) -> str:
        """The name of the study in its store; the same as `name`."""
        return self.name

    @property
    def sampler(self) -> Searcher:
        """A searcher that is equal to that of the study."""
        return self.settings.searcher[2]()

    @property
    def pruner(self) -> Scheduler:
        """The scheduler."""
        return self._replica.progress.scheduler

    @property
    def directions(self) -> list[StudyDirection]:
        """The direction of each objective."""
        signs = self._replica.progress.objectives.values()
        return [StudyDirection.MINIMIZE if sign > 0 else StudyDirection.MAXIMIZE for sign in signs]

    @property
    def direction(self) -> StudyDirection:
        """The direction of the only objective."""
        if len(self.directions) > 1:
            raise OptionError(f"the study {self.name!r} has several objectives: see directions")
        return self.directions[0]

    @property
    def metric_names(self) -> list[str] | None:
        """The names of the objectives in `trials_dataframe`, if `set_metric_names` has set them."""
        return self._replica.progress.metric_names

    def set_metric_names(self, metric_names: Sequence[str]) -> None:
        """Set the names of the objectives in `trials_dataframe`."""
        names = [*metric_names]
        if len(names) != len(self.objectives) or not all(isinstance(name, str) for name in names):
            raise OptionError(
                f"metric_names = {names!r}: give {len(self.objectives)} texts, one per objective"
            )
        self._replica.note({"metric_names": names})

    def trials_dataframe(self, attrs: Sequence[str] | None = None, multi_index: bool = False) -> Any:
        """Return a `pandas.DataFrame` with a row per trial.

        Parameters
        ----------
        attrs : sequence of str, optional
            The columns to return, such as ``("number", "value", "params", "state")``.
        multi_index : bool
            Only False is supported.
        """
        if multi_index:
            raise OptionError("multi_index = True is not supported: columns have names such as params_x")
        frame = super().trials_dataframe()
        if attrs is None:
            return frame
        kept = [
            name for attr in attrs for name in frame.columns if name == attr or name.startswith(f"{attr}_")
        ]
        return frame[list(dict.fromkeys(kept))]
