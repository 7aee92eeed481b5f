"""``AutoModel``: the base of `AutoML`, `AutoMLRegressor` and `AutoMLClassifier`."""

from __future__ import annotations

import os
import warnings
from collections import deque
from copy import deepcopy
from dataclasses import dataclass
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

import msgspec
import numpy as np

from onlineauto.api.champion import champion_of
from onlineauto.api.feed import Feed, check_source, nothing_learnt, progress_bar, size_of
from onlineauto.api.report import html_report, summary, text_report
from onlineauto.engine.outliers.located import WHAT
from onlineauto.engine.records.loop import Outlier
from onlineauto.engine.search.journal import Entry
from onlineauto.errors import EventTypeError, InputError, OptionError
from onlineauto.formats.lines.diagnostics import Diagnostics
from onlineauto.interop.vw.model import is_vw_model, read_model
from onlineauto.workspace.options import REGISTRY
from onlineauto.workspace.run import Run
from onlineauto.workspace.save_load import check_options, load_model, save_model
from onlineauto.workspace.warm_start import begin_with as first_champion
from onlineauto.workspace.warm_start import config_of_names, warm_start
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import BinaryIO, Self

    from onlineauto.api.champion import Champion
    from onlineauto.engine.event.outcomes import Outcomes
    from onlineauto.engine.stream.source import Sources
    from onlineauto.pictures import Picture
    from onlineauto.workspace.save_load import ModelSource

HASH_BITS: Final = 18
"""The default of ``hash_bits``."""
LIVE_CONFIGS: Final = 4
"""The default of ``live_configs``."""
HISTORY: Final = 10_000
"""Maximum number of decisions in `AutoModel.history`."""
_C = TypeVar("_C")


@dataclass(slots=True)
class LossTally:
    """Counts learnt events, with their weights and their progressive losses.

    Examples
    --------
    >>> tally = LossTally()
    >>> tally.add(1.0, loss=0.5)
    >>> tally.add(1.0, loss=0.0)
    >>> tally.events, tally.average
    (2, 0.25)
    """

    events: int = 0
    weight: float = 0.0
    loss: float = 0.0

    @property
    def average(self) -> float:
        """The average loss, NaN before the first event."""
        return self.loss / self.weight if self.weight else float("nan")

    def add(self, weight: float, *, loss: float) -> None:
        """Count an event; `loss` includes its weight."""
        self.events += 1
        self.weight += weight
        self.loss += loss

    def begin_again(self) -> None:
        """Drop the losses so far, because the first events were outliers; the events stay counted."""
        self.weight = self.loss = 0.0

    def add_block(self, outcomes: Outcomes) -> None:
        """Count the labelled events of a block that were not held out."""
        counted = outcomes.labelled & ~outcomes.holdout
        self.events += int(counted.sum())
        begins = np.flatnonzero(outcomes.outlier == Outlier.BEGINS_AGAIN)
        if len(begins):
            self.begin_again()
            counted[: begins[-1]] = False
        self.weight += float(outcomes.weight[counted].sum(dtype=float))
        self.loss += float(outcomes.loss[counted].sum(dtype=float))


def hide_class_name(decorated: type[_C]) -> type[_C]:
    """Remove the class name from the methods' names, because users know only the subclass."""
    for name, value in vars(decorated).items():
        if isinstance(value, FunctionType):
            value.__qualname__ = name
    return decorated


def options_of_model(
    options: Mapping[str, Any], *, live_configs: int | None, seed: int, hash_bits: int
) -> dict[str, Any]:
    """Return the options of a model, by flag; a flag among the `options` is an alias of a parameter."""
    flags = dict(options)
    parameters = (
        ("live_configs", "automl", live_configs, LIVE_CONFIGS),
        ("seed", "random_seed", seed, 0),
        ("hash_bits", "bit_precision", hash_bits, HASH_BITS),
    )
    for name, flag, value, default in parameters:
        if flag in flags and value != default:
            raise OptionError(f"{name} and {flag} are the same option: leave {flag} out")
        if flag not in flags and (flag == "automl" or value != default):
            flags[flag] = value
    return flags


@hide_class_name
class AutoModel:
    """A workspace that searches, with its decisions and its average loss; a subclass defines `_event_of`.

    An operation of several steps holds `_lock`, the lock of the workspace, so threads may share a model.
    """

    _measure: ClassVar[str] = "loss"
    """The quantity that reports average: ``"loss"``, or ``"reward"``, its negative."""
    _table_call: ClassVar[str]
    """The call of `fit_table`, for messages."""

    @property
    def _standardises(self) -> bool:
        """True if the workspace learns standardised labels, so that its losses are not those of labels."""
        return False

    def __init__(self, options: Mapping[str, Any], *, begin_with: Sequence[str] = ()) -> None:
        config = config_of_names(begin_with)
        arguments = dict(options)
        searches = arguments.get("automl") is not None
        if begin_with and not searches:
            arguments["experimental_full_name_interactions"] = [
                interaction.replace("*", "|") for interaction in begin_with
            ]
        self._workspace = Workspace(**arguments)
        check_options(self._workspace.configuration)
        self._tally = LossTally()
        self._history: deque[Entry] = deque(maxlen=HISTORY)
        self._observe()
        if begin_with and searches:
            first_champion(self._workspace, config)
        if not self._workspace.layout.bytewise:
            self._workspace.unseen_namespaces = {name for names in config.elements for name in names}

    def _observe(self) -> None:
        """Append each decision of the search to the history."""
        self._workspace.observe(self._history.append)

    @property
    def workspace(self) -> Workspace:
        """The workspace that learns and predicts."""
        return self._workspace

    @property
    def _lock(self) -> Any:
        return self._workspace.lock

    # -- results ---------------------------------------------------------------------------------------

    @property
    def champion(self) -> Champion:
        r"""The best single live config: its interactions, its learning rate, and its reward.

        It predicts until the ensemble leads or is proved better, and always with ``predict_with="champion"``.

        >>> from onlineauto import AutoML
        >>> event = "shared |user tom\n0:-1:0.5 |page a\n|page b\n"
        >>> champion = AutoML().fit([event] * 100).champion
        >>> champion.interactions, champion.learning_rate, champion.events, champion.changes
        (('page*user',), 0.5, 100, 0)
        """
        with self._lock:
            return champion_of(self._workspace)

    @property
    def history(self) -> list[dict[str, Any]]:
        """The latest decisions of the search, at most 10,000, oldest first, as the lines of a journal.

        `Workspace.observe` and ``--journal`` have all of them.

        >>> from onlineauto import AutoML
        >>> [line["decision"] for line in AutoML(begin_with=["user*page"]).history]
        ['widen', 'rotate']
        """
        with self._lock:
            entries: list[dict[str, Any]] = msgspec.to_builtins(list(self._history))
            return entries

    @property
    def events(self) -> int:
        """Number of events learnt."""
        return self._tally.events

    @property
    def average_loss(self) -> float:
        r"""Average loss of the events, each predicted before it was learnt; NaN before the first.

        >>> from onlineauto import AutoML
        >>> AutoML().fit(["shared |user tom\n0:0.5:0.5 |page a\n|page b\n"]).average_loss
        0.5
        """
        with self._lock:
            return self._tally.average

    def _outlier(self, before: Sequence[int]) -> int:
        """Return why the last event was not learnt, 0 if it was, or `Outlier.BEGINS_AGAIN`."""
        now = self._outliers()
        if now[1:] == before[1:]:  # all events that are no outliers increase the first count
            return Outlier.NONE
        if begins := now[Outlier.BEGINS_AGAIN] > before[Outlier.BEGINS_AGAIN]:
            self._tally.begin_again()
        return next((code for code in WHAT if now[code] > before[code]), Outlier.BEGINS_AGAIN * begins)

    def _outliers(self) -> list[int]:
        """Return the number of events that were not learnt, by their outlier."""
        counts: list[int] = self._workspace.learner.model.outliers.tolist()
        return counts

    def _details(self) -> Iterator[tuple[str, str]]:
        """Yield further lines of this model's report, as names and values."""
        if ignored := sum(self._workspace.outliers.values()):
            yield "not learnt", f"{ignored:,} with numbers far beyond all others"

    def report(self) -> str:
        r"""Return the champion, its challengers with their evidence, and the average loss or reward, as text.

        >>> from onlineauto import AutoML
        >>> liked = "shared |user tom\n0:-1:0.5 |page a\n|page b\n"
        >>> disliked = "shared |user tom\n|page a\n0:0:0.5 |page b\n"
        >>> print(AutoML(live_configs=1).fit([liked, disliked] * 100).report())
        AutoML
          events             200
          average reward     0.9863
          champion's reward  0.932 to 1 (95% sure) over its 200 events
          crosses            page*user
          learning rate      0.5
          champions before   0
          live configs       1
          predicted by       the champion
        <BLANKLINE>
        champion changes = 0
        """
        with self._lock:
            return text_report(self)

    def plot(self, *, title: str = "", dark: bool = False) -> Picture:
        """Draw the race of the live configs from `history`; see `onlineauto.pictures.race`."""
        from onlineauto.pictures import race

        end = {"decision": "end", "events": self._workspace.searching.n_events}
        return race([*self.history, end], title=title, dark=dark)

    def __repr__(self) -> str:
        """Return the champion and the average loss or reward, in a line."""
        with self._lock:
            return f"{type(self).__name__}({summary(self)})"

    def _repr_html_(self) -> str:
        with self._lock:
            return html_report(self)

    # -- streams ---------------------------------------------------------------------------------------

    def _event_of(self, item: Any, number: int, problems: Diagnostics) -> Mapping[str, Any]:  # noqa: ARG002
        """Return item `number` of an iterable as a mapping for `from_dicts`; report a missing label."""
        type_name = type(item).__name__
        raise EventTypeError(f"event {number}: an event is a mapping, a text or a Block, not {type_name}")

    def _fit(
        self,
        source: Any,
        *,
        progress: bool | None = None,
        n_events: int | None = None,
        text_format: str | None = None,
        problems: Diagnostics | None = None,
    ) -> Self:
        """Learn from a source, and return self."""
        source = check_source(source, table_call=self._table_call)
        total, unit = size_of(source) if n_events is None else (n_events, "events")
        problems, before = problems or Diagnostics(), self._tally.events
        with progress_bar(show=progress, total=total, unit=unit) as bar:
            feed = Feed(
                event_of=self._event_of, advance=bar.advance, watched=bar.shown, text_format=text_format
            )
            n_events = self._learn_source(source, feed, problems)
        if self._tally.events == before:
            raise nothing_learnt(self._workspace, feed, problems, events=n_events)
        if problems.total:
            warnings.warn(problems.summary(), UserWarning, stacklevel=3)
        return self

    def _learn_source(self, source: Sources, feed: Feed, problems: Diagnostics) -> int:
        """Learn the events of a source, and return their number."""
        run, n_events = Run(self._workspace, source), 0
        run.read, run.diagnostics = feed, problems
        for block, outcomes in run:
            n_events += len(block)
            with self._lock:
                self._tally.add_block(outcomes)
        self._workspace.diagnostics.add(problems)
        return n_events

    # -- models ----------------------------------------------------------------------------------------

    def _extra_state(self) -> dict[str, Any]:
        """Return the part of a model file besides the workspace: numbers, texts, lists and maps of these."""
        return {}

    def _restore(self, state: dict[str, Any]) -> None:
        """Restore the result of `_extra_state`."""

    def save(self, target: str | os.PathLike[str] | BinaryIO) -> None:
        """Write the model to a file. An existing file is replaced atomically.

        >>> import io
        >>> from onlineauto import AutoML
        >>> file, bandit = io.BytesIO(), AutoML(begin_with=["user*page"])
        >>> bandit.save(file)
        >>> AutoML.load(file.getvalue()).champion == bandit.champion
        True
        """
        with self._lock:
            tally = self._tally
            content = {
                "class": type(self).__name__,
                "tally": [tally.events, tally.weight, tally.loss],
                "history": msgspec.to_builtins(list(self._history)),
                "own": self._extra_state(),
            }
            save_model(self._workspace.state(copy=False), target, run={"api": content})

    @classmethod
    def load(cls, source: ModelSource) -> Self:
        """Return the model in a file written by `save`, exactly as it was saved."""
        name = os.fspath(source) if isinstance(source, str | os.PathLike) else "the model"
        if is_vw_model(source):
            raise InputError(
                f"{name} is one of Vowpal Wabbit: AutoML().warm_start(…) begins with it, and "
                "onlineauto.interop.read_vw_model(…) continues with it unchanged"
            )
        workspace, run = load_model(Workspace, source, REGISTRY.from_keywords(), allow_scaled=True)
        content = run.get("api") or {}
        if content.get("class") != cls.__name__:
            known = str(content.get("class", "Workspace"))
            hint = (
                f": {known}.load reads it" if known.isidentifier() else ", and names no class that reads it"
            )
            raise InputError(f"{name} was not saved by {cls.__name__}{hint}")
        model = cls.__new__(cls)
        try:
            tally = LossTally(*msgspec.convert(content["tally"], tuple[int, float, float]))
            decisions = deque(msgspec.convert(content["history"], list[Entry]), HISTORY)
            model.__setstate__({"_workspace": workspace, "_tally": tally, "_history": decisions})
            model._restore(content["own"])  # noqa: SLF001 - of this class
        except (KeyError, ValueError, TypeError, OverflowError, msgspec.ValidationError) as error:
            raise InputError(f"{name} does not fit {cls.__name__}: {error}") from None
        return model

    def warm_start(self, source: str | os.PathLike[str] | bytes, *, namespaces: Iterable[str] = ()) -> Self:
        r"""Start with the champion of another model, including its weights, and return self.

        The champion predicts the same as in the other model, and the search continues from there. The
        ensemble starts with the champion and with `ridge`, which knows no action yet. This model must not
        have learnt anything yet.

        Parameters
        ----------
        source : path or bytes
            A file of onlineauto or of Vowpal Wabbit.
        namespaces : iterable of str, optional
            The full names of the namespaces of the events. Vowpal Wabbit saves interactions by letters only,
            so its models need them: ``-q UA`` becomes the interactions of all names that begin with U and A.
            To read dicts or JSON, such a model also needs the option ``names`` of this class.

        Raises
        ------
        OptionError
            The model has other options than this one; or it has interactions by letters, and no
            `namespaces` are given.

        Examples
        --------
        >>> import io
        >>> from onlineauto import AutoML, Workspace
        >>> file, events = io.BytesIO(), ["shared |user tom\n0:-1:0.5 |page a\n|page b\n"] * 9
        >>> Workspace(cb_explore_adf=True, quadratic="up").fit(events).save(file)
        >>> AutoML().warm_start(file.getvalue()).champion.interactions
        ('user*page',)
        """
        name = os.fspath(source) if isinstance(source, str | os.PathLike) else "the model"
        warm_start(self._workspace, read_model(source), namespaces=namespaces, name=name)
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a copy; no other thread changes this model at the same time."""
        copy_ = type(self).__new__(type(self))
        memo[id(self)] = copy_
        with self._lock:
            copy_.__setstate__(deepcopy(vars(self), memo))
        return copy_

    def __getstate__(self) -> dict[str, Any]:
        """Return copies of the attributes for `pickle`."""
        with self._lock:
            return deepcopy(vars(self), {id(self): self})

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the attributes of a copy."""
        vars(self).update(state)
        self._observe()
