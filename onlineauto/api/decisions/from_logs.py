"""``FromLogs``: a bandit that learns from logged decisions, in files, frames, mappings, texts and blocks."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from onlineauto.api.base import AutoModel, hide_class_name
from onlineauto.api.decisions.events import COMPARED, EQUAL_ACTIONS, are_equal, logged_event
from onlineauto.api.decisions.joining import Joined
from onlineauto.api.feed import check_frame, count_of
from onlineauto.api.tables import LearntColumns, names_of_columns
from onlineauto.errors import InputError
from onlineauto.features.options import FeatureOptions
from onlineauto.formats.lines.diagnostics import Diagnostics, ProblemCode
from onlineauto.interop.datasets import decisions_in, is_arrow
from onlineauto.interop.frames import from_frame, without_roles

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Self

    from onlineauto.api.decisions.events import Features
    from onlineauto.api.feed import Events
    from onlineauto.interop.datasets import Names


@hide_class_name
class FromLogs(AutoModel):
    """A contextual bandit that learns from logs."""

    _measure: ClassVar[str] = "reward"
    _table_call = "fit_table(table, actions=…, probability=…, reward=…), or cost in place of reward"
    _left_to_compare: int = COMPARED

    def __init__(self, options: Mapping[str, Any], *, begin_with: Sequence[str] = ()) -> None:
        super().__init__(options, begin_with=begin_with)
        self._begin_names()

    def _begin_names(self) -> None:
        self._context_names = LearntColumns(kind="the context")
        self._action_names = LearntColumns(kind="actions")

    @property
    def _default_reward(self) -> float | None:
        """The reward to learn for decisions without one, or None to leave them out."""
        return None

    @property
    def average_reward(self) -> float:
        """Average reward of this model's policy, each event predicted before it was learnt; NaN initially.

        Events decided with other probabilities are weighted by the ratio of the two probabilities.
        """
        return -self.average_loss

    def fit(self, events: Events, *, progress: bool | None = None) -> Self:
        r"""Learn from logged events, and return self; `fit_table` learns frames, datasets and Parquet.

        Parameters
        ----------
        events : iterable, path, bytes or binary file
            An iterable of mappings, texts or blocks; or a file of text, JSON or dsjson. A mapping has
            ``context``, ``actions``, ``chosen``, ``probability``, and ``reward`` or ``cost``.
        progress : bool, optional
            Whether to display a bar; by default on a terminal and in a notebook.

        Raises
        ------
        InputError
            An event is invalid, the source is a table, or nothing was learnt.

        Examples
        --------
        >>> from onlineauto import AutoML
        >>> liked = "shared |u tom\n0:-1:0.5 |a politics\n|a sports\n"
        >>> disliked = "shared |u tom\n|a politics\n0:0:0.5 |a sports\n"
        >>> round(AutoML().fit([liked, disliked] * 100).average_reward, 3)
        0.986
        >>> event = {"context": {"user": "tom"}, "actions": [{"article": "politics"}, {"article": "sports"}]}
        >>> AutoML().fit([event | {"chosen": 0, "reward": 1, "probability": 0.5}] * 100).events
        100
        """
        before = self._context_names.same
        self._fit(events, progress=progress)
        if self._context_names.same == before:  # the events were texts or blocks
            self._forget_names()
        return self

    def fit_table(
        self,
        table: Any,
        *,
        actions: str | Names | None = None,
        probability: str | None = None,
        reward: str | None = None,
        cost: str | None = None,
        context: Names | None = None,
        event: str | None = None,
        choices: Sequence[Any] | Mapping[Any, Features] | None = None,
        weight: str | None = None,
        columns: str | os.PathLike[str] | Mapping[str, Any] | None = None,
        progress: bool | None = None,
    ) -> Self:
        """Learn from a table of logged events, and return self.

        Parameters
        ----------
        table : frame, dataset, path or list of paths
            A frame of pandas, polars or Arrow; a dataset of pyarrow; Parquet: files, a folder or a pattern.
        actions, probability, reward, cost, context, event, choices, weight : optional
            Columns of the table, as for `onlineauto.interop.from_frame`. A frame needs `actions`,
            `probability`, and `reward` or `cost`; by default, the columns of a dataset are inferred.
        columns : path or mapping, optional
            The roles of the columns of a dataset, in place of their names.
        progress : bool, optional
            Whether to display a bar; by default on a terminal and in a notebook.

        Raises
        ------
        InputError
            A row is invalid, a column is missing, the source is no table, or nothing was learnt.

        Examples
        --------
        >>> import polars
        >>> from onlineauto import AutoML
        >>> log = polars.DataFrame({"user": ["tom", "ann"], "arm": ["a", "b"], "r": [1, 0], "p": [0.5, 0.5]})
        >>> AutoML().fit_table(log, actions="arm", probability="p", reward="r").events
        2
        """
        named: dict[str, Any] = {"context": context, "actions": actions, "event": event, "choices": choices}
        named |= {"reward": reward, "cost": cost, "probability": probability, "weight": weight}
        if is_arrow(table):
            source = decisions_in(table, columns, **named)
            self._fit(source, progress=progress)
            if (described := source.roles) is not None:
                groups = [described.action] if described.action else described.actions
                self._learn_names(described.context, groups, described.choices)
            return self
        check_frame(table, columns, table_call=self._table_call)
        if actions is None or probability is None or (reward is None) == (cost is None):
            names = ", ".join(names_of_columns(table))
            raise InputError(f"a frame needs the names of its columns: {self._table_call}; there are {names}")
        if not table.shape[0]:
            raise InputError("nothing was learnt: the frame has no rows")
        if context is None:
            roles = (probability, reward, cost, event, weight)
            context = named["context"] = without_roles(names_of_columns(table), roles, actions)
        features, problems = self._workspace.configuration[FeatureOptions], Diagnostics()
        blocks = from_frame(
            table,
            **named,
            problems=problems,
            hash=features.hash,
            hash_seed=features.hash_seed,
            name_columns=features.name_columns,
        )
        n_events = table.shape[0] if event is None else None
        self._fit(blocks, progress=progress, n_events=n_events, problems=problems)
        self._learn_names(context, [actions] if isinstance(actions, str) else actions, choices)
        return self

    def join(
        self,
        log: str | os.PathLike[str],
        rewards: Mapping[str, float] | str | os.PathLike[str] | None = None,
        *,
        default_reward: float | None = None,
        progress: bool | None = None,
    ) -> Self:
        """Learn from logged decisions and their later rewards, and return self.

        Examples
        --------
        >>> from pathlib import Path
        >>> from onlineauto import AutoML
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as directory:
        ...     log = Path(directory) / "decisions.dsjson"
        ...     serving = AutoML(decision_log=log)
        ...     choice = serving.rank({"user": "tom"}, [{"article": "politics"}, {"article": "sports"}])
        ...     AutoML().join(log, {choice.event_id: 1.0}).average_reward
        1.0
        """
        default = self._default_reward if default_reward is None else default_reward
        joined = Joined(log, rewards, default_reward=default)
        before = self.events
        self._forget_names()
        self._fit(joined.file(), progress=progress, text_format="dsjson", problems=joined.problems)
        if joined.unmatched:
            warnings.warn(
                f"{count_of(joined.unmatched, 'reward')} without a decision in {os.fspath(log)}",
                UserWarning,
                stacklevel=2,
            )
        if joined.unrewarded > self.events - before:
            warnings.warn(
                f"{count_of(joined.unrewarded, 'decision')} without a reward left out; if that means "
                "a reward of 0, give default_reward=0",
                UserWarning,
                stacklevel=2,
            )
        return self

    def _event_of(self, item: Any, number: int, problems: Diagnostics) -> Mapping[str, Any]:
        event, lacking = logged_event(item, number)
        if lacking:
            problems.locate(ProblemCode.NO_LABEL, number + 1, lacking)
        if self._left_to_compare:
            self._compare(event["actions"])
        if not lacking and event["actions"] and isinstance(event.get("context"), Mapping):
            self._context_names.note(event["context"])
            self._note_actions(event["actions"])
        return event

    def _learn_names(self, context: Iterable[str], actions: Iterable[str], choices: object) -> None:
        """Note the names of the contexts and the actions of a table; `choices` may have features."""
        self._context_names.learn_names(frozenset(map(str, context)))
        sets = {frozenset(map(str, actions))}
        if isinstance(choices, Mapping):
            sets = {frozenset(map(str, features)) for features in choices.values()}
        if len(sets) == 1:
            self._action_names.learn_names(*sets)
        else:
            self._action_names.forget_names()

    def _note_actions(self, actions: Sequence[Any]) -> None:
        """Count the names of the actions of a learnt event, if all have the same."""
        if all(isinstance(action, Mapping) and action.keys() == actions[0].keys() for action in actions):
            self._action_names.note(actions[0])
        else:
            self._action_names.forget_names()

    def _forget_names(self) -> None:
        """Stop comparing names, because those of the events were not read."""
        self._context_names.forget_names()
        self._action_names.forget_names()

    def _extra_state(self) -> dict[str, Any]:
        return {"names": {"context": self._context_names.state(), "actions": self._action_names.state()}}

    def _restore(self, state: dict[str, Any]) -> None:
        self._begin_names()
        names = msgspec.convert(state.get("names", {}), dict[str, Any])
        self._context_names.restore(names.get("context", {}))
        self._action_names.restore(names.get("actions", {}))

    def _compare(self, actions: Sequence[Features]) -> None:
        """Warn, once for a model, if the actions of one of its first events have the same features."""
        self._left_to_compare = max(self._left_to_compare - 1, 0)
        if are_equal(actions):
            self._left_to_compare = 0
            warnings.warn(EQUAL_ACTIONS, UserWarning, stacklevel=4)
