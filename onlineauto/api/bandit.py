"""``AutoML``: a contextual bandit that tunes itself while it serves."""

from __future__ import annotations

import os
import random
import time
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, overload

import msgspec

from onlineauto.api.base import AutoModel
from onlineauto.api.choice import Choice
from onlineauto.api.decision_log import DecisionLog
from onlineauto.api.draw import drawn
from onlineauto.api.event_ids import EventIds
from onlineauto.api.events import cost_of, index_of, listed, logged_event
from onlineauto.api.hints import several
from onlineauto.api.joining import Joined
from onlineauto.api.pending import Pending
from onlineauto.api.tables import decisions_of, is_frame
from onlineauto.errors import InputError, OptionError
from onlineauto.features.options import FeatureOptions
from onlineauto.interop.dicts import from_dicts
from onlineauto.interop.name_hashes import NameHashes
from onlineauto.workspace.first_champion import begin_with as first_champion
from onlineauto.workspace.first_champion import config_of_names

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence
    from typing import Self, Unpack

    import numpy as np
    from numpy.typing import NDArray

    from onlineauto.api.events import Actions, Features
    from onlineauto.features.block import Block
    from onlineauto.interop.frames import Names
    from onlineauto.workspace.option_types import Options
    from onlineauto.workspace.save_load import ModelSource

__all__ = ["AutoML"]

_EXPLORERS = ("greedy", "softmax", "squarecb", "regcb", "synthcover", "epsilon_decay")
_HASH_BITS = 18
_AT_ONCE = 16
"""How many expired decisions are learnt in one call, so that no call takes long."""


class AutoML(AutoModel):
    r"""A contextual bandit that chooses actions, learns from their rewards, and tunes itself meanwhile.

    It tries out which namespaces to cross, and how fast to learn, with several live configs at once; the
    champion among them decides. Rewards are negative costs. Threads may share it: any number of them may rank
    and learn at once.

    Examples
    --------
    >>> from onlineauto import AutoML
    >>> bandit = AutoML(seed=7)
    >>> for step in range(300):
    ...     user = ("tom", "ann")[step % 2]
    ...     choice = bandit.rank({"user": user}, [{"article": "politics"}, {"article": "sports"}])
    ...     bandit.learn(choice, reward=float((user, choice.action) in {("tom", 0), ("ann", 1)}))
    >>> bandit.predict({"user": "ann"}, [{"article": "politics"}, {"article": "sports"}]).round(3)
    array([0.025, 0.975], dtype=float32)
    >>> bandit.champion.interactions
    ('article*user',)

    Parameters
    ----------
    live_configs : int or None
        Number of configs that learn at once, the champion one of them. None does not search.
    explorer : {"greedy", "softmax", "squarecb", "regcb", "synthcover", "epsilon_decay"}
        How much is explored, and which actions. Others take a number, and are options: ``bag=5``,
        ``cover=8``, ``rnd=3``, ``first=1000``.
    seed : int
        Seed of everything random.
    begin_with : sequence of str
        Interactions with which the search begins, by the full names of namespaces: ``"user*article"``. By
        default each namespace of the context is crossed with each of the actions. Without a search, these
        are the interactions.
    hash_bits : int
        The weights are a table of 2^hash_bits rows.
    default_reward : float, optional
        The reward that is learnt for a decision that expires without one. By default none is learnt.
    max_pending : int
        How many decisions can wait for their rewards; one more, and the oldest expires.
    time_to_live : float
        Seconds for which a decision waits for its reward.
    decision_log : path, optional
        A file to which decisions are appended before `rank` returns them, and rewards before they are learnt,
        as dsjson. `join` learns from it, in another process or after a crash.
    sync_log : bool
        Wait for the disk at each line of the log, so that it survives a loss of power too.
    clock : callable
        Returns the time in seconds for `time_to_live`; it never goes back.
    **options
        Options as on the command line. ``epsilon`` is the share of decisions that explore, 0.05 if the
        explorer is ``"greedy"``; with ``learning_rate`` the search begins, 0.5 by default.

    Attributes
    ----------
    pending, expired : int
        Number of decisions that wait, and of those that have expired without a reward.

    Raises
    ------
    OptionError
        An option is unknown, out of range, or contradicts another.
    InputError
        The log cannot be opened.
    """

    _measure: ClassVar[str] = "reward"

    def __init__(
        self,
        *,
        live_configs: int | None = 4,
        explorer: Literal["greedy", "softmax", "squarecb", "regcb", "synthcover", "epsilon_decay"] = "greedy",
        seed: int = 0,
        begin_with: Sequence[str] = (),
        hash_bits: int = _HASH_BITS,
        default_reward: float | None = None,
        max_pending: int = 100_000,
        time_to_live: float = 3600.0,
        decision_log: str | os.PathLike[str] | None = None,
        sync_log: bool = False,
        clock: Callable[[], float] = time.monotonic,
        **options: Unpack[Options],
    ) -> None:
        if explorer not in _EXPLORERS:
            raise OptionError(
                f"explorer cannot be {explorer!r}; it takes one of {', '.join(_EXPLORERS)}; explorers that "
                "take a number are options: bag=5, cover=8, rnd=3, first=1000"
            )
        given: dict[str, Any] = {"cb_explore_adf": True, "automl": live_configs, **options}
        if seed:
            given["random_seed"] = seed
        if hash_bits != _HASH_BITS:
            given["bit_precision"] = hash_bits
        if explorer != "greedy":
            given[explorer] = True
        config = config_of_names(begin_with)
        if live_configs is None and begin_with:
            given["experimental_full_name_interactions"] = [each.replace("*", "|") for each in begin_with]
        super().__init__(given)
        if live_configs is not None and begin_with:
            first_champion(self._workspace, config)
        self._random = random.Random(seed)
        self._pending = Pending(limit=max_pending, time_to_live=time_to_live, clock=clock)
        self._default_cost = None if default_reward is None else cost_of(default_reward, None)
        self._serve(decision_log, sync=sync_log)

    def _serve(self, log: str | os.PathLike[str] | None, *, sync: bool) -> None:
        """Prepare what neither a model file nor its reader has: encoder, ids and log."""
        features = self._workspace.configuration[FeatureOptions]
        self._names = NameHashes(hash=features.hash, hash_seed=features.hash_seed)
        self._ids = EventIds()
        self._log = None if log is None else DecisionLog(log, hash_seed=features.hash_seed, sync=sync)

    # -- one event -------------------------------------------------------------------------------------

    def rank(self, context: Features, actions: Actions, *, event_id: str | None = None) -> Choice:
        """Choose one of the actions, and remember the decision until its reward comes.

        Parameters
        ----------
        context : mapping
            Features of whoever is decided for, as `onlineauto.interop.from_dicts` takes them: numbers, texts,
            truth values, lists of names and nested mappings, by namespace.
        actions : list of mappings, or mapping of id to mapping
            Features of each action. `learn` reads them again, so do not change them in place.
        event_id : str, optional
            Names the decision; by default an id that no other process gives.

        Returns
        -------
        Choice
            The action, drawn at random from the probabilities of all.

        Raises
        ------
        InputError
            A feature is malformed, there are no actions, or a decision of this id waits already.
        OSError
            The log cannot be written; then there is no decision.

        Examples
        --------
        >>> bandit = AutoML(epsilon=0.2)
        >>> choice = bandit.rank({"user": "tom", "age": 30}, {"a7": {"topic": "art"}, "b2": {"price": 2.5}})
        >>> choice.action, choice.action_id, choice.probability, choice.pmf
        (1, 'b2', 0.5, array([0.5, 0.5], dtype=float32))
        """
        of = listed(actions)
        with self._lock:
            pmf = self._predict(context, of)
            weights: list[float] = pmf.tolist()
            action = drawn(weights, self._random.random())
            if event_id is None:
                event_id = next(self._ids)
            elif not isinstance(event_id, str):
                raise InputError(f"event_id is a str, and not {event_id!r}")
            elif event_id in self._pending:
                raise InputError(f"event {event_id!r} waits for its reward: give another id")
            if self._log is not None:
                self._log.decision(event_id, context, of, action, weights)
            self._pending.add(event_id, dict(context), of, action, weights[action])
            self._learn_expired(_AT_ONCE)
        action_id = list(actions)[action] if isinstance(actions, Mapping) else action
        return Choice(action, action_id, weights[action], pmf, event_id)

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
        """Learn the reward of a decision: of one that `rank` has made, or of one that was made elsewhere.

        Rewards may come at any time, in any order, and once each.

        Parameters
        ----------
        choice : Choice or str, or mapping
            What `rank` has returned, or its ``event_id``; or the context of a decision that was made
            elsewhere.
        actions, action, probability
            Of a decision that was made elsewhere: its actions, the one that was chosen (its index, or its id
            if the actions are a mapping), and the probability with which it was.
        reward, cost : float
            What the action earned, or what it cost; one of the two.

        Raises
        ------
        InputError
            No such decision waits: it was learnt already, has expired, or is unknown. Or the reward is not a
            finite number, or the event is malformed.
        OSError
            The log cannot be written; then nothing is learnt.

        Examples
        --------
        >>> bandit = AutoML()
        >>> choice = bandit.rank({"user": "tom"}, [{"article": "politics"}, {"article": "sports"}])
        >>> bandit.learn(choice.event_id, reward=1)
        >>> bandit.learn({"user": "ann"}, [{"x": 1}, {"y": 1}], action=0, probability=0.5, cost=-0.5)
        >>> bandit.events, bandit.average_reward
        (2, 0.75)
        """
        found = cost_of(reward, cost)
        if isinstance(choice, Mapping):
            if actions is None or action is None or probability is None:
                raise InputError(
                    "a decision that was made elsewhere needs its context, its actions, the action and its "
                    "probability: learn(context, actions, action=…, probability=…, reward=…)"
                )
            chosen = index_of(action, actions)
            with self._lock:
                self._learn(choice, listed(actions), chosen, probability, found)
            return
        event_id = choice.event_id if isinstance(choice, Choice) else choice
        with self._lock:
            waiting = self._pending.find(event_id)
            if self._log is not None:
                self._log.reward(event_id, -found)
            self._learn(waiting.context, waiting.actions, waiting.action, waiting.probability, found)
            self._pending.end(event_id)
            self._learn_expired(_AT_ONCE)

    def predict(self, context: Features, actions: Actions) -> NDArray[np.float32]:
        """Return the probability of each action: float32[n_actions]. Nothing is decided or remembered.

        Raises
        ------
        InputError
            A feature is malformed, or there are no actions.

        Examples
        --------
        >>> AutoML().predict({"user": "tom"}, [{"article": "politics"}, {"article": "sports"}])
        array([0.5, 0.5], dtype=float32)
        """
        with self._lock:
            return self._predict(context, listed(actions))

    def _predict(self, context: Features, actions: list[Features]) -> NDArray[np.float32]:
        block = self._block({"context": context, "actions": actions})
        return self._workspace.predict_block(block).by_action()

    def _learn(
        self, context: Features, actions: list[Features], action: int, probability: float, cost: float
    ) -> None:
        event = {
            "context": context,
            "actions": actions,
            "chosen": action,
            "cost": cost,
            "probability": probability,
        }
        outcomes = self._workspace.learn_block(self._block(event))
        self._tally.add_block(outcomes)

    def _block(self, event: Mapping[str, Any]) -> Block:
        [block] = from_dicts([event], names=self._names)
        return block

    # -- decisions that wait ---------------------------------------------------------------------------

    @property
    def pending(self) -> int:
        """Number of decisions that wait for their rewards."""
        return len(self._pending)

    @property
    def expired(self) -> int:
        """Number of decisions that have expired without a reward."""
        return self._pending.expired

    def expire(self) -> int:
        """End the decisions that have waited too long, and return how many there were.

        `rank` and `learn` do that too, a few at a time. With ``default_reward`` they are learnt.

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
            return self._learn_expired(len(self._pending))

    def _learn_expired(self, most: int) -> int:
        """End at most so many decisions that have expired; return how many there were."""
        for number in range(most):
            late = self._pending.pop_expired()
            if late is None:
                return number
            if self._default_cost is not None:
                self._learn(late.context, late.actions, late.action, late.probability, self._default_cost)
        return most

    @property
    def average_reward(self) -> float:
        """Average reward of this model's policy, each event predicted before it was learnt; NaN before.

        Events that were decided with other probabilities are weighted by the ratio of the two.
        """
        return -self.average_loss

    # -- many events -----------------------------------------------------------------------------------

    def fit(
        self,
        source: Any,
        *,
        context: Names | None = None,
        actions: str | Names | None = None,
        event: str | None = None,
        choices: Sequence[Any] | Mapping[Any, Features] | None = None,
        reward: str | None = None,
        cost: str | None = None,
        probability: str | None = None,
        weight: str | None = None,
        progress: bool | None = None,
    ) -> Self:
        r"""Learn from logged events, and return self.

        Parameters
        ----------
        source : path, iterable, Block, frame, bytes or binary file
            A path or a file is VW text, JSON, dsjson or blocks, packed with gzip, with zstd or not: its first
            bytes say. An iterable has events: mappings with ``context``, ``actions``, ``chosen``,
            ``probability`` and ``reward`` or ``cost``, as `onlineauto.interop.from_dicts` takes them; texts
            of one event each; blocks; or `pathlib.Path` objects.
        context, actions, event, choices, probability, weight
            Columns of a frame, as `onlineauto.interop.from_frame` takes them; the context is all other
            columns by default.
        reward, cost : str, optional
            The column of the rewards or of the costs of a frame.
        progress : bool, optional
            Whether to show a progress bar; by default on a terminal and in a notebook, if tqdm is installed.

        Raises
        ------
        InputError
            The source cannot be read, or nothing in it could be learnt; the message says what it looks like.

        Warns
        -----
        UserWarning
            Some lines were malformed; the others were learnt.

        Examples
        --------
        >>> liked = "shared |u tom\n0:-1:0.5 |a politics\n|a sports\n"
        >>> disliked = "shared |u tom\n|a politics\n0:0:0.5 |a sports\n"
        >>> round(AutoML().fit([liked, disliked] * 100).average_reward, 3)
        0.97
        >>> event = {"context": {"user": "tom"}, "actions": [{"article": "politics"}, {"article": "sports"}]}
        >>> AutoML().fit([event | {"chosen": 0, "reward": 1, "probability": 0.5}] * 100).events
        100
        """
        if is_frame(source):
            features = self._workspace.configuration[FeatureOptions]
            blocks = decisions_of(
                source,
                context=context,
                actions=actions,
                event=event,
                choices=choices,
                reward=reward,
                cost=cost,
                probability=probability,
                weight=weight,
                hash=features.hash,
                hash_seed=features.hash_seed,
            )
            self._fit(blocks, progress=progress, n_events=source.shape[0] if event is None else None)
            return self
        named = {"context": context, "actions": actions, "event": event, "choices": choices}
        named |= {"reward": reward, "cost": cost, "probability": probability, "weight": weight}
        for name, value in named.items():
            if value is not None:
                raise InputError(f"{name} names a column of a frame, and {type(source).__name__} is none")
        self._fit(source, progress=progress)
        return self

    def join(
        self,
        log: str | os.PathLike[str],
        rewards: Mapping[str, float] | None = None,
        *,
        default_reward: float | None = None,
        progress: bool | None = None,
    ) -> Self:
        """Learn from logged decisions and the rewards that came later, and return self.

        Parameters
        ----------
        log : path
            Decisions, as they are logged with ``decision_log``.
        rewards : mapping of event id to reward, optional
            If it is not given, the rewards are those that the log has behind its decisions.
        default_reward : float, optional
            The reward of decisions that have none; without it, these are not learnt.
        progress : bool, optional
            As for `fit`.

        Raises
        ------
        InputError
            The log cannot be read, or no decision of it has a reward.

        Warns
        -----
        UserWarning
            Some rewards belong to no decision of the log, or some lines were malformed.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as directory:
        ...     log = Path(directory) / "decisions.dsjson"
        ...     serving = AutoML(decision_log=log)
        ...     choice = serving.rank({"user": "tom"}, [{"article": "politics"}, {"article": "sports"}])
        ...     AutoML().join(log, {choice.event_id: 1.0}).average_reward
        1.0
        """
        joined = Joined(log, rewards, default_reward=default_reward)
        self._fit(joined, progress=progress)
        if joined.unmatched:
            warnings.warn(
                f"{several(joined.unmatched, 'reward')} without a decision in {os.fspath(log)}",
                UserWarning,
                stacklevel=2,
            )
        return self

    def _event_of(self, item: Any, place: int) -> Mapping[str, Any]:
        return logged_event(item, place)

    # -- models ----------------------------------------------------------------------------------------

    def _kept(self) -> dict[str, Any]:
        return {
            "random": self._random.getstate(),
            "default_cost": self._default_cost,
            "max_pending": self._pending.limit,
            "time_to_live": self._pending.time_to_live,
            "expired": self._pending.expired,
        }

    def _restore(self, kept: dict[str, Any]) -> None:
        stored = msgspec.convert(kept, _Kept)
        self._random = random.Random()
        self._random.setstate(stored.random)
        self._default_cost = stored.default_cost
        self._pending = Pending(limit=stored.max_pending, time_to_live=stored.time_to_live)
        self._pending.expired = stored.expired
        self._serve(None, sync=False)

    @classmethod
    def load(
        cls,
        source: ModelSource,
        *,
        decision_log: str | os.PathLike[str] | None = None,
        sync_log: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> Self:
        """Return the model of a file that `save` has written; it goes on as the saved one would.

        No decisions wait in it: those that waited when it was saved are not in the file. The log is not
        either, so it is named again.

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
        made = super().load(source)
        made._pending.clock = clock  # noqa: SLF001 - of this class
        made._serve(decision_log, sync=sync_log)  # noqa: SLF001
        return made


class _Kept(msgspec.Struct):
    """What a model file keeps of a bandit, besides its workspace."""

    random: tuple[int, tuple[int, ...], float | None]
    default_cost: float | None
    max_pending: int
    time_to_live: float
    expired: int
