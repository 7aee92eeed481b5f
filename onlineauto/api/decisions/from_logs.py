"""``FromLogs``: a bandit that learns from logged decisions, in files, frames, mappings, texts and blocks."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any, ClassVar

from onlineauto.api.base import AutoModel, hide_class_name
from onlineauto.api.decisions.events import logged_event
from onlineauto.api.decisions.joining import Joined
from onlineauto.api.feed import count_of, refuse_names
from onlineauto.api.tables import is_frame, names_of_columns
from onlineauto.errors import InputError
from onlineauto.features.options import FeatureOptions
from onlineauto.formats.lines.diagnostics import Diagnostics, ProblemCode
from onlineauto.interop.datasets import decisions_in, is_arrow
from onlineauto.interop.frames import from_frame

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Self

    from onlineauto.api.decisions.events import Features
    from onlineauto.interop.datasets import Names


@hide_class_name
class FromLogs(AutoModel):
    """A contextual bandit that learns from logs."""

    _measure: ClassVar[str] = "reward"

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

    def fit(
        self,
        source: Any,
        y: object = None,
        *,
        context: Names | None = None,
        actions: str | Names | None = None,
        event: str | None = None,
        choices: Sequence[Any] | Mapping[Any, Features] | None = None,
        reward: str | None = None,
        cost: str | None = None,
        probability: str | None = None,
        weight: str | None = None,
        sample_weight: object = None,
        columns: str | os.PathLike[str] | Mapping[str, Any] | None = None,
        progress: bool | None = None,
    ) -> Self:
        r"""Learn from logged events, and return self.

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
        if y is not None or sample_weight is not None:
            name = "y" if y is not None else "sample_weight"
            raise InputError(
                f"{name}: a bandit learns decisions, fit(frame, actions=…, reward=…, probability=…, "
                "weight=…), where these name columns; AutoMLRegressor and AutoMLClassifier have fit(X, y, "
                "sample_weight=…)"
            )
        named: dict[str, Any] = {"context": context, "actions": actions, "event": event, "choices": choices}
        named |= {"reward": reward, "cost": cost, "probability": probability, "weight": weight}
        if is_frame(source) and columns is None:
            if actions is None or probability is None or (reward is None) == (cost is None):
                raise InputError(
                    "a frame needs the names of its columns: fit(frame, actions=…, reward=…, probability=…), "
                    f"or cost in place of reward; there are {', '.join(names_of_columns(source))}"
                )
            if not source.shape[0]:
                raise InputError("nothing was learnt: the frame has no rows")
            features, problems = self._workspace.configuration[FeatureOptions], Diagnostics()
            blocks = from_frame(
                source,
                **named,
                problems=problems,
                hash=features.hash,
                hash_seed=features.hash_seed,
                name_columns=features.name_columns,
            )
            n_events = source.shape[0] if event is None else None
            self._fit(blocks, progress=progress, n_events=n_events, problems=problems)
            return self
        if is_arrow(source):
            self._fit(decisions_in(source, columns, **named), progress=progress)
            return self
        refuse_names(source, {**named, "columns": columns})
        self._fit(source, progress=progress)
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
        return event
