"""``AutoML``: a contextual bandit that tunes itself while it serves."""

from __future__ import annotations

import operator
import time
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from onlineauto.api.base import HASH_BITS, LIVE_CONFIGS, options_of_model
from onlineauto.api.decisions.choice import Choice
from onlineauto.api.decisions.decisions import Decisions, decide_many, encode_many
from onlineauto.api.decisions.events import (
    copy_context,
    cost_of,
    index_of,
    learnt_columns,
    list_features,
    lists_of_actions,
)
from onlineauto.api.decisions.from_logs import FromLogs
from onlineauto.api.decisions.pending import check_limits
from onlineauto.api.effects import effects_of_actions, largest_first, sample_rows
from onlineauto.api.tables import SURE, is_frame, mapping_of, rows_of
from onlineauto.engine.options.registry import RunOptions
from onlineauto.engine.outliers.located import BEGAN_AGAIN, WHAT, outlier_message
from onlineauto.engine.records.loop import Outlier
from onlineauto.errors import InputError, OptionError, short_repr
from onlineauto.explorers import explorer_keywords
from onlineauto.features.options import FeatureOptions
from onlineauto.formats.mappings.encoded_event import EncodedEvent
from onlineauto.formats.mappings.identities import named
from onlineauto.formats.mappings.values import plain
from onlineauto.interop.explanation import as_rewards, explain, predicted_costs

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
    from typing import Self, Unpack

    from numpy.typing import NDArray

    from onlineauto.api.decisions.decisions import ManyDecisions
    from onlineauto.api.decisions.events import Actions, Features
    from onlineauto.api.tables import Rows, Shaped
    from onlineauto.explorers.explorer import Explorer
    from onlineauto.formats.decisions.waiting import LearnAt
    from onlineauto.interop.explanation import Explanation
    from onlineauto.workspace.option_types import LearnerOptions
    from onlineauto.workspace.save_load import ModelSource

_AT_ONCE = 16
"""Maximum number of expired decisions that are learnt in one call, so that no call takes long."""


class AutoML(FromLogs):
    r"""A contextual bandit that chooses actions, learns from their rewards, and tunes itself while it learns.

    It searches for the namespaces to cross and the learning rate, with several live configs at the same time.
    The ensemble predicts: a weighted sum of all live configs and of further members, once it leads or is
    proved better than the champion, the best single live config. Rewards are negative costs. Threads may
    share a bandit: any number of them may rank and learn.

    Examples
    --------
    >>> from onlineauto import AutoML
    >>> bandit = AutoML(seed=7)
    >>> for step in range(300):
    ...     user = ("tom", "ann")[step % 2]
    ...     choice = bandit.rank({"user": user}, [{"article": "politics"}, {"article": "sports"}])
    ...     bandit.learn(choice, reward=float((user, choice.action) in {("tom", 0), ("ann", 1)}))
    >>> bandit.predict({"user": "ann"}, [{"article": "politics"}, {"article": "sports"}]).round(3)
    array([0.005, 0.995], dtype=float32)
    >>> bandit.champion.interactions
    ('article*user',)

    Parameters
    ----------
    live_configs : int or None
        Number of configs that learn at the same time, including the champion. None turns the search off.
    explorer : str or Explorer, optional
        The exploration algorithm: a name in `onlineauto.explorers.EXPLORERS`, such as ``"greedy"``, or an
        explorer with settings, such as ``Bag(5)`` or ``Greedy(epsilon=0.1)`` of `onlineauto.explorers`. By
        default ``"scaled_squarecb"``, but ε-greedy if ``epsilon`` is given or there is no search.
    seed : int
        Seed of all random numbers.
    begin_with : sequence of str
        Initial interactions of the search, by the full names of namespaces: ``"user*article"``. By default
        each namespace of the context is crossed with each namespace of the actions. Without a search, these
        are the interactions.
    hash_bits : int
        The weights are a table of 2^hash_bits rows.
    default_reward : float, optional
        The reward that is learnt for an expired decision. By default expired decisions are not learnt.
    max_pending : int
        Maximum number of decisions that wait for their rewards; beyond it, the oldest expires.
    time_to_live : float
        Seconds for which a decision waits for its reward.
    learn_at : {"reward", "wait"}
        When a decision is learnt: at its reward, or ``time_to_live`` after it was made. If only clicks are
        reported, and other decisions get the default reward, give ``"wait"``. Otherwise the model knows
        clicks only until the first decisions expire.
    decision_log : path, optional
        A file to which decisions are appended before `rank` returns them, and rewards before they are learnt,
        as dsjson. `join` learns from the file, in another process or after a crash.
    sync_log : bool
        Wait for the disk after each line of the log, so that the line also survives a loss of power.
    clock : callable
        Returns the time in seconds for `time_to_live`; it must not run back.
    **options
        Further options of a model, named as on the command line. ``epsilon`` is the share of decisions that
        explore with ε-greedy, 0.05 by default; ``learning_rate`` is its initial value in the search, 0.5
        by default.

    Attributes
    ----------
    pending, expired : int
        Number of decisions that wait, and of decisions that have expired without a reward.

    Raises
    ------
    OptionError
        An option is unknown, out of range, or contradicts another.
    InputError
        The log cannot be opened.
    """

    def __init__(
        self,
        *,
        live_configs: int | None = LIVE_CONFIGS,
        explorer: str | Explorer | None = None,
        seed: int = 0,
        begin_with: Sequence[str] = (),
        hash_bits: int = HASH_BITS,
        default_reward: float | None = None,
        max_pending: int = 100_000,
        time_to_live: float = 3600.0,
        learn_at: LearnAt = "reward",
        decision_log: str | os.PathLike[str] | None = None,
        sync_log: bool = False,
        clock: Callable[[], float] = time.monotonic,
        **options: Unpack[LearnerOptions],
    ) -> None:
        check_limits(max_pending, time_to_live)
        if learn_at not in ("reward", "wait"):
            raise OptionError(f"learn_at takes 'reward' or 'wait', not {short_repr(learn_at)}")
        flags = options_of_model(options, live_configs=live_configs, seed=seed, hash_bits=hash_bits)
        for name, value in explorer_keywords(explorer).items() if explorer is not None else ():
            if (before := flags.setdefault(name, value)) is value or before == value:
                continue
            if explorer != "greedy":  # whose epsilon is only its default
                raise OptionError(f"{name} is given as {flags[name]!r} and, by explorer, as {value!r}")
        super().__init__({"cb_explore_adf": True, **flags}, begin_with=begin_with)
        self._decisions = Decisions(
            seed=self._workspace.configuration[RunOptions].random_seed,
            limit=max_pending,
            time_to_live=time_to_live,
            default_cost=None
            if default_reward is None
            else cost_of(default_reward, None, where="default_reward"),
            learn_at=learn_at,
            clock=clock,
        )
        self._log_to(decision_log, sync=sync_log)

    def _log_to(self, log: str | os.PathLike[str] | None, *, sync: bool) -> None:
        hash_seed = self._workspace.configuration[FeatureOptions].hash_seed
        self._decisions.log_to(log, hash_seed=hash_seed, sync=sync)

    # -- one event -------------------------------------------------------------------------------------

    def rank(self, context: Features, actions: Actions, *, event_id: str | None = None) -> Choice:
        """Choose one of the actions, and keep the decision until its reward arrives.

        Parameters
        ----------
        context : mapping
            Features of the user or situation, as for `onlineauto.interop.from_dicts`: numbers, texts, truth
            values, lists of names and nested mappings, by namespace.
        actions : list of mappings, or mapping of id to mapping
            Features of each action; an id is none, so give ``{"a7": {"article": "a7"}}`` to learn by id.
            `learn` reads them again, so do not change them in place.
        event_id : str, optional
            The id of the decision; by default a unique one.

        Returns
        -------
        Choice
            The action, drawn from the probabilities of all actions.

        Raises
        ------
        InputError
            A feature is malformed, there are no actions, or a decision with this id waits already.
        OSError
            The log cannot be written; then no decision is made.

        Warns
        -----
        UserWarning
            All actions of one of the first 100 events have the same features, so they cannot be told apart.

        Examples
        --------
        >>> bandit = AutoML(epsilon=0.2)
        >>> choice = bandit.rank({"user": "tom", "age": 30}, {"a7": {"topic": "art"}, "b2": {"price": 2.5}})
        >>> choice.action, choice.action_id, choice.probability, choice.pmf
        (1, 'b2', 0.5, array([0.5, 0.5], dtype=float32))
        """
        event = self._encoded(context, actions)
        with self._workspace.lock:
            choice = self._decisions.decide(event, actions, self._workspace.predict(event), event_id)
            if self._decisions.waiting.overdue:
                self._learn_expired(_AT_ONCE)
        return choice

    def rank_many(self, decisions: ManyDecisions) -> list[Choice | InputError | OSError]:
        """Make many decisions at once, like `rank` for each in turn but in less time.

        Parameters
        ----------
        decisions : iterable of (context, actions) or (context, actions, event_id)
            The arguments of `rank` for each decision.

        Returns
        -------
        list of Choice, InputError or OSError
            The decisions in order. Each fails alone: the error that `rank` would raise is in its position.

        Examples
        --------
        >>> bandit, articles = AutoML(), [{"article": "politics"}, {"article": "sports"}]
        >>> one, other = bandit.rank_many([({"user": "tom"}, articles), ({"user": "ann"}, [])])
        >>> bandit.learn(one, reward=1)
        >>> other
        InputError('event: actions is empty')
        """
        found = encode_many(decisions, self._encoded)
        with self._lock:
            choices = decide_many(found, self._decisions, self._workspace)
            self._learn_expired(_AT_ONCE * len(choices))
        return choices

    @overload
    def learn(
        self, choice: Choice | str, /, *, reward: float | None = None, cost: float | None = None
    ) -> None: ...

    @overload
    def learn(
        self,
        context: Features,
        actions: Actions,
        /,
        *,
        action: Hashable,
        probability: float,
        reward: float | None = None,
        cost: float | None = None,
    ) -> None: ...

    def learn(
        self,
        choice: Choice | str | Features,
        actions: Actions | None = None,
        /,
        *,
        action: Hashable = None,
        probability: float | None = None,
        reward: float | None = None,
        cost: float | None = None,
    ) -> None:
        """Learn the reward of a decision, made by `rank` or elsewhere.

        Rewards may arrive at any time and in any order, once for each decision. With ``learn_at="wait"``,
        a decision made by `rank` is learnt once it has waited.

        Parameters
        ----------
        choice : Choice or str, or mapping
            The result of `rank`, or its ``event_id``; or the context of a decision that was made elsewhere.
        actions, action, probability
            For a decision that was made elsewhere: its actions, the chosen action (its index, or its id if
            the actions are a mapping), and the probability with which that action was chosen.
        reward, cost : float
            The reward of the action, or its cost; exactly one of the two.

        Raises
        ------
        InputError
            No such decision waits: it was learnt already, has expired, or is unknown. Or the reward is not a
            finite number, or the event is malformed.
        OSError
            The log cannot be written; then nothing is learnt.

        Warns
        -----
        UserWarning
            The reward or another number of the event is thousands of times larger than all before, so the
            event is not learnt. Or the first numbers turn out to be outliers, so learning starts again here.

        Examples
        --------
        >>> bandit = AutoML()
        >>> choice = bandit.rank({"user": "tom"}, [{"article": "politics"}, {"article": "sports"}])
        >>> bandit.learn(choice.event_id, reward=1)
        >>> bandit.learn({"user": "ann"}, [{"x": 1}, {"y": 1}], action=0, probability=0.5, cost=-0.5)
        >>> bandit.events, bandit.average_reward
        (2, 0.75)
        """
        loss = cost_of(reward, cost)
        event_id = choice.event_id if isinstance(choice, Choice) else choice
        if not isinstance(event_id, str):
            if actions is None or action is None or probability is None:
                raise InputError(
                    "a decision that was made elsewhere needs its context, its actions, the action and its "
                    "probability: learn(context, actions, action=…, probability=…, reward=…)"
                )
            features, likely = list_features(actions), plain(probability)
            if likely is None:
                raise InputError(f"event: the probability is missing: {short_repr(probability)}")
            chosen = index_of(action, actions if isinstance(actions, Mapping) else features)
            event = self._encoded(event_id, features, learns=True)
            with self._lock:
                self._learn(event, chosen, likely, loss)
            return
        with self._workspace.lock:
            waiting = self._decisions.waiting
            decision = waiting.find(event_id)
            self._decisions.log_reward(event_id, -loss)
            if self._decisions.learn_at == "wait":
                waiting.settle(event_id, loss)
            else:
                self._learn(decision.event, decision.action, decision.probability, loss, event_id=event_id)
                waiting.end(event_id)
            if waiting.overdue:
                self._learn_expired(_AT_ONCE)

    @overload
    def predict(self, context: Features, actions: Actions) -> NDArray[np.float32]: ...

    @overload
    def predict(self, context: Rows, actions: Actions) -> NDArray[np.float32]: ...

    @overload
    def predict(self, context: Rows, actions: Sequence[Actions]) -> list[NDArray[np.float32]]: ...

    def predict(self, context: Any, actions: Any) -> Any:
        """Return the probability of each action for one event or many. No decision is made or kept.

        Parameters
        ----------
        context : mapping or Series; or list of mappings, or frame of pandas, polars or Arrow
            The context of an event, as for `rank`; or that of each event. Of a frame or a Series, only the
            columns count that the model has learnt as the context, so it may also have those of actions and
            rewards. Of a mapping, all names count.
        actions : list of mappings, or mapping of id to mapping; or list of lists
            The actions of an event, as for `rank`. For many events, a list of mappings has the actions of all
            of them, and a list of lists those of each.

        Returns
        -------
        float32[n_actions], float32[n_events, n_actions] or list
            For many events with one list of actions, a matrix; with a list of lists, a list of one array for
            each event.

        Raises
        ------
        InputError
            A feature is malformed, there are no actions, contexts and lists of actions differ in number, or
            the frame has no column that the model has learnt.

        Warns
        -----
        UserWarning
            The frame lacks columns that the model has learnt. Or a name of a mapping was not learnt, or is
            missing: once for each of up to 20 names, if all learnt events had the same names.

        Examples
        --------
        >>> bandit, articles = AutoML(), [{"article": "politics"}, {"article": "sports"}]
        >>> bandit.predict({"user": "tom"}, articles)
        array([0.5, 0.5], dtype=float32)
        >>> bandit.predict([{"user": "tom"}, {"user": "ann"}], articles)
        array([[0.5, 0.5],
               [0.5, 0.5]], dtype=float32)
        >>> bandit.predict([{"user": "tom"}, {"user": "ann"}], [articles, articles[:1]])
        [array([0.5, 0.5], dtype=float32), array([1.], dtype=float32)]
        """
        has_columns = not isinstance(context, list | tuple | Mapping) and is_frame(context)
        if not (has_columns or isinstance(context, list | tuple)):
            context, is_row = self._one_context(context, actions)
            return self._workspace.predict(self._encoded(context, actions, is_row=is_row))
        contexts = list(rows_of(context))
        lists, n_actions = lists_of_actions(actions, len(contexts))
        if has_columns:
            contexts = self._learnt_columns(contexts, lists)
        events = []
        for index, (each, those) in enumerate(zip(contexts, lists, strict=True)):
            try:
                events.append(self._encoded(each, those, is_row=has_columns))
            except InputError as error:
                raise InputError(str(error).replace("event:", f"event {index}:", 1)) from None
        pmfs: list[NDArray[np.float32]] = []
        with self._lock:
            for index, event in enumerate(events):
                try:
                    pmfs.append(self._workspace.predict(event))
                except InputError as error:
                    raise InputError(f"event {index}: {str(error).removeprefix('event: ')}") from None
        return pmfs if n_actions is None else np.array(pmfs, np.float32).reshape(-1, n_actions)

    def explain(self, context: Features | Shaped, actions: Actions) -> Explanation:
        """Return which features and members moved the predicted reward of each action of an event.

        No decision is made or kept.

        Parameters
        ----------
        context : mapping, Series or frame of one row
            The context, as for `predict`.
        actions : list of mappings, or mapping of id to mapping
            The actions, as for `rank`.

        Returns
        -------
        Explanation
            A dict: ``predicts`` is "ensemble" or "champion". ``actions`` has for each action its number
            ``action``, its ``action_id`` if the actions are a mapping, its ``probability`` and its predicted
            ``reward``; the ``level`` that all actions share; and three mappings from names to parts of the
            reward, the largest first: ``members``, ``features`` and ``rest``. The reward is the level and all
            members; and the level, all features and all of the rest, which are the parts that are not linear
            in features. `onlineauto.pictures.parts` draws it.

        Raises
        ------
        InputError
            A feature is malformed, or there are no actions.
        OptionError
            The explorer has several models, such as ``"bag"``.

        Examples
        --------
        >>> bandit = AutoML()
        >>> for _ in range(9):
        ...     bandit.learn({"user": "tom"}, [{"x": 1}, {"y": 1}], action=0, probability=0.5, reward=1)
        >>> found = bandit.explain({"user": "tom"}, [{"x": 1}, {"y": 1}])
        >>> [round(each["reward"], 2) for each in found["actions"]]
        [1.0, 0.5]
        """
        one, is_row = self._one_context(context, actions)
        event = self._encoded(one, actions, is_row=is_row)
        found = as_rewards(explain(self._workspace, event))
        if isinstance(actions, Mapping):
            for row, action_id in zip(found["actions"], actions, strict=True):
                row["action_id"] = action_id
        return found

    def effects(self, contexts: Rows, actions: Actions) -> dict[str, Any]:
        """Return how the predicted reward of each action depends on each feature: which features matter.

        No decision is made or kept.

        Parameters
        ----------
        contexts : sequence of mappings or frame
            Usual contexts, such as some hundred that were learnt; up to 100 of them are used. The columns of
            a frame count as for `predict`.
        actions : list of mappings, or mapping of id to mapping
            The actions, as for `rank`, the same for all contexts.

        Returns
        -------
        dict
            ``features`` has for each feature, the one with the largest effect first, its ``size``, up to nine
            ``values``, and ``predictions``: float64[n_values, n_actions], the mean reward of each action in
            the order of ``labels``, their ids. The size is the largest less the smallest reward in a
            context over these values, as the mean over contexts, of the action for which that is largest.
            ``user.age`` is the feature age of the namespace user; ``actions.topic`` is one of actions: all
            actions that have it get the value. A namespace of contexts called so is ``context.actions``.
            `onlineauto.pictures.effects` draws it.

        Raises
        ------
        InputError
            There are no contexts or no actions, or a feature is malformed.
        OptionError
            The explorer has several models, such as ``"bag"``.

        Source
        ------
        Partial dependence (Friedman, 2001); the size is that of individual conditional expectations
        (Goldstein et al., 2015), so that effects that are opposite for two users do not cancel.

        Examples
        --------
        >>> bandit = AutoML()
        >>> for visit in range(400):
        ...     context = {"user": ("tom", "ann")[visit % 2], "hour": visit % 24}
        ...     choice = bandit.rank(context, {"a1": {"topic": "art"}, "b7": {"topic": "sports"}})
        ...     bandit.learn(choice, reward=float((visit % 2 == 0) == (choice.action_id == "a1")))
        >>> contexts = [{"user": ("tom", "ann")[visit % 2], "hour": visit % 24} for visit in range(100)]
        >>> found = bandit.effects(contexts, {"a1": {"topic": "art"}, "b7": {"topic": "sports"}})
        >>> next(iter(found["features"])), found["features"]["user"]["size"] > 0.8
        ('user', True)
        """
        rows, listed = list(rows_of(contexts)), list_features(actions)
        if is_frame(contexts):
            rows = self._learnt_columns(rows, [listed])
        first = sample_rows(rows)[0]
        if self._context_names.same >= SURE and not is_frame(contexts):
            for row in rows:
                self._context_names.one(row)

        def rewards(context: Features, those: list[Any]) -> NDArray[np.float64]:
            with self._lock:
                return -predicted_costs(self._workspace, self._encode(copy_context(context), [*those]))

        rewards(first, listed)  # rejects actions that are malformed
        found = effects_of_actions(rewards, rows, listed)
        labels = [*actions] if isinstance(actions, Mapping) else [*range(len(listed))]
        return {"predicts": "reward", "features": largest_first(found, outputs=True), "labels": labels}

    def _learnt_columns(
        self, rows: Sequence[Features], lists: Iterable[Any], *, stacklevel: int = 4
    ) -> list[dict[str, Any]]:
        """Return the rows of a frame without the columns that were not learnt as the context."""
        return learnt_columns(
            rows,
            lists,
            self._workspace,
            of_context=self._context_names.names,
            of_actions=self._action_names.names,
            stacklevel=stacklevel,
        )

    def _one_context(self, context: Any, actions: Actions) -> tuple[Any, bool]:
        """Return a context and False, or the learnt columns of a Series or a frame of one row and True."""
        if isinstance(context, Mapping):
            return context, False
        row = mapping_of(context)
        if row is None and is_frame(context) and context.shape[0] == 1:
            [row] = rows_of(context)
        if row is None:
            return context, False
        return self._learnt_columns([row], [actions], stacklevel=5)[0], True

    def _encoded(
        self, context: Features, actions: Actions, *, is_row: bool = False, learns: bool = False
    ) -> EncodedEvent:
        """Return an event, encoded; warn of names that were not learnt, except of a row's columns."""
        copied, listed = copy_context(context), list_features(actions)
        if self._left_to_compare:
            self._compare(listed)
        if learns:
            return self._encode(copied, listed)
        known, of_actions = self._context_names, self._action_names
        if known.same >= SURE and copied.keys() != known.names and not is_row:
            known.one(copied, stacklevel=5)
        first = listed[0] if listed and of_actions.same >= SURE else None
        if type(first) is dict and first.keys() != of_actions.names:
            of_actions.one(first, stacklevel=5)
        return self._encode(copied, listed)

    def _encode(self, copied: dict[str, Any], listed: list[Features]) -> EncodedEvent:
        """Return an event, encoded; see `_encoded`."""
        if identities := self._workspace.identities:
            copied, listed = named(copied, identities), [named(action, identities) for action in listed]
            self._decisions.note_identities(identities)
        return EncodedEvent(copied, listed)

    def _renamed(self, event: EncodedEvent) -> EncodedEvent:
        """Return a decision's event, with names for the identities that came while it waited."""
        identities = self._workspace.identities
        context, actions = named(event.context, identities), [named(a, identities) for a in event.actions]
        is_same = context is event.context and all(map(operator.is_, actions, event.actions))
        return event if is_same else EncodedEvent(context, actions)

    def _learn(
        self, event: EncodedEvent, action: int, probability: float, cost: float, *, event_id: str = ""
    ) -> None:
        """Learn an event and count it; warn if the event is an outlier, which is not learnt."""
        before = self._outliers()
        if self._workspace.identities:
            event = self._renamed(event)
        known = event.with_outcome(action, cost=cost, probability=probability)
        self._workspace.note_numbers(event.context, event.actions[action])
        predicted, usual = self._workspace.learn_outcome(known, action)
        if not usual and (outlier := self._outlier(before)):
            description = (
                f"a reward of {-cost:g}" if outlier == Outlier.FAR_COST else WHAT.get(Outlier(outlier))
            )
            message = outlier_message(description) if description else BEGAN_AGAIN
            warnings.warn(
                f"{f'event {event_id!r}' if event_id else 'event'}: {message}", UserWarning, stacklevel=3
            )
            if description:
                return
        self._tally.add(1.0, loss=cost * predicted / probability)
        names, of_actions = self._context_names, self._action_names
        if names.same >= 0 and (names.same < SURE or event.context.keys() != names.names):
            names.note(event.context)
        if of_actions.same >= 0 and (of_actions.same < SURE or event.actions[0].keys() != of_actions.names):
            self._note_actions(event.actions)

    # -- waiting decisions -----------------------------------------------------------------------------

    @property
    def _default_reward(self) -> float | None:
        cost = self._decisions.default_cost
        return None if cost is None else -cost

    @property
    def pending(self) -> int:
        """Number of decisions that wait for their rewards, or until they are learnt."""
        return len(self._decisions.waiting)

    @property
    def expired(self) -> int:
        """Number of decisions that have expired without a reward."""
        return self._decisions.waiting.expired

    def expire(self) -> int:
        """End the decisions that have waited too long, and return their number.

        `rank` and `learn` do the same for a few decisions each. Those with a reward are learnt, and with
        ``default_reward`` the others as well.

        Examples
        --------
        >>> now = 0.0
        >>> bandit = AutoML(time_to_live=60, default_reward=0, clock=lambda: now)
        >>> choice = bandit.rank({"user": "tom"}, [{"article": "politics"}, {"article": "sports"}])
        >>> now = 61.0
        >>> bandit.expire(), bandit.pending, bandit.events
        (1, 0, 1)
        """
        with self._lock:
            return self._learn_expired(len(self._decisions.waiting))

    def _details(self) -> Iterator[tuple[str, str]]:
        yield from super()._details()
        if self.pending:
            yield "waiting for rewards", f"{self.pending:,}"
        if self.expired:
            yield "expired", f"{self.expired:,}"

    def _learn_expired(self, most: int) -> int:
        """End at most `most` expired decisions; return their number."""
        number, decisions = 0, self._decisions
        while number < most and (late := decisions.waiting.pop_expired()) is not None:
            number += 1
            cost = decisions.default_cost if late.cost is None else late.cost
            if cost is not None:
                self._learn(late.event, late.action, late.probability, cost)
        return number

    # -- models ----------------------------------------------------------------------------------------

    def _extra_state(self) -> dict[str, Any]:
        return super()._extra_state() | self._decisions.kept()

    def _restore(self, state: dict[str, Any]) -> None:
        self._decisions = Decisions.restored(state, clock=time.monotonic)
        super()._restore(state)

    @classmethod
    def load(
        cls,
        source: ModelSource,
        *,
        decision_log: str | os.PathLike[str] | None = None,
        sync_log: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> Self:
        """Return the model in a file written by `save`; it continues like the saved model.

        The file has no waiting decisions, unless ``learn_at="wait"``, and no log, so pass the log again.

        Raises
        ------
        InputError
            The file is not a model of this class, is incomplete, or is of a later version; or the log cannot
            be opened.

        Examples
        --------
        >>> import io
        >>> file, bandit = io.BytesIO(), AutoML(seed=3)
        >>> bandit.save(file)
        >>> event = {"user": "tom"}, [{"article": "politics"}, {"article": "sports"}]
        >>> AutoML.load(file.getvalue()).rank(*event).action == bandit.rank(*event).action
        True
        """
        bandit = super().load(source)
        bandit._decisions.waiting.clock = clock  # noqa: SLF001 - of this class
        bandit._log_to(decision_log, sync=sync_log)  # noqa: SLF001
        return bandit
