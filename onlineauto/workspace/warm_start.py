"""Start a search with the champion of another model, or with the caller's config; challenge a champion."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from itertools import islice, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from onlineauto.automl.config import MOST_FACTORS, Config, ConfigKind, words_text
from onlineauto.automl.decisions import Rotate, Widen
from onlineauto.automl.search import ConfigState
from onlineauto.engine.search.journal import entry_of
from onlineauto.engine.search.lanes import unlearn
from onlineauto.engine.stream.source import read_blocks
from onlineauto.errors import OptionError, short_repr
from onlineauto.explorers.ranking_kernels import LEARNT, Errors
from onlineauto.features.interactions import compile_products, parse_full_names, parse_letters
from onlineauto.features.layout import StreamLayout
from onlineauto.features.options import FeatureOptions
from onlineauto.formats.lines.diagnostics import Diagnostics
from onlineauto.formats.options import TEXT, InputOptions, format_of
from onlineauto.learners.gradient_kernels import MAX_LABEL, MIN_LABEL, NORM, ORIGIN, WEIGHT, T, W
from onlineauto.learners.model import adopt_sizes, apply_penalties, read_cells, write_cells
from onlineauto.learners.options import LossOptions, UpdateOptions
from onlineauto.learners.rule import Hyperparameters
from onlineauto.options import options_of
from onlineauto.workspace.options import REGISTRY
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from onlineauto.automl.config import Interaction
    from onlineauto.explorers.ranking_kernels import Exploration
    from onlineauto.learners.gradient_kernels import Model
    from onlineauto.options import Configuration

_NAMES: Final = ("names", "name_columns")
_CROSSED: Final = ("quadratic", "cubic", "interactions", "experimental_full_name_interactions")

_REVIEWED: Final = 8
"""The search requests the first challengers after this fraction of the first lease."""


def config_of_names(interactions: Any) -> Config:
    """Return the config with some interactions, written with the full names of their namespaces.

    >>> config_of_names(["user*article"]).elements
    ((b'article', b'user'),)
    """
    if isinstance(interactions, str | bytes) or not isinstance(interactions, Collection):
        raise OptionError(
            f"begin_with cannot be {short_repr(interactions)}: give a list, as ['user*article']"
        )
    elements = []
    for text in interactions:
        names: tuple[bytes, ...] = ()
        with suppress(UnicodeEncodeError):  # half of a surrogate pair is not part of any name
            parts = text.split("*") if isinstance(text, str) else ()
            names = tuple(sorted(part.encode("utf-8", "surrogateescape") for part in parts))
        if not 2 <= len(names) <= MOST_FACTORS or not all(names):
            raise OptionError(
                f"{short_repr(text)} is not an interaction: name two or three namespaces, as 'user*article'"
            )
        elements.append(names)
    return Config.of(elements, ConfigKind.INCLUSION)


def begin_with(workspace: Workspace, config: Config, *, namespaces: Iterable[bytes] = ()) -> None:
    """Make a config the first champion of a search that has learnt nothing yet.

    >>> from onlineauto import Workspace
    >>> search = Workspace(live_configs=4)
    >>> begin_with(search, config_of_names(["user*page"]))
    >>> search.fit(["1 |user tom |page a |hour x"]).searching.interactions(0)
    ((b'page', b'user'),)
    """
    if not workspace.searching.live_configs.arrays.searching:
        raise OptionError("this model does not search, so it has no first champion")
    if workspace.searching.n_events:
        raise OptionError("this model has learnt already: a new one can begin with another champion")
    for names in config.elements:
        if len(names) > MOST_FACTORS:
            text = words_text([names])
            raise OptionError(f"the first champion crosses {text}: a search crosses two or three namespaces")
    sorted_names = sorted({*namespaces}.union(*config.elements))
    with workspace.lock:
        tree, search = workspace.state(copy=False), workspace.searching.search
        first = replace(search.candidates[0], config=config, state=ConfigState.LIVE)
        if first.config.kind is not search.candidates[0].config.kind:
            raise OptionError(
                "a first champion is for --oracle_type stepwise, whose configs name interactions"
            )
        search = replace(
            search,
            candidates=(first,),
            namespaces=tuple(sorted_names),
            n_switches=1,  # so the search treats it as proved, and does not start with another one
            review=first.lease // _REVIEWED,
        )
        live = tree["search"]["slots"] | {"configs": [config], "namespaces": sorted_names}
        tree["search"] |= {"search": search, "slots": live}
        tree["layout"] |= {"known": sorted_names}
        workspace.restore(tree)
        for decision in (
            Widen(tuple(sorted_names)),
            Rotate(0, 0, config, "where the search was told to begin"),
        ):
            if workspace.searching.observers:
                entry = entry_of(decision, events=0, statistics=workspace.estimates)
                workspace.searching.observers.tell(entry)


class _Champion(NamedTuple):
    """The numbers with which a champion predicts and learns."""

    model: Model  # the model of the champion, with copies of its typical sizes
    cells: NDArray[np.float32]  # [rows, 4, lanes]
    sums_of_lanes: NDArray[np.float64]  # [lanes, 2]: NORM, WEIGHT
    shared: NDArray[np.float64]
    sums: NDArray[np.int64]
    explored: int
    costs: NDArray[np.float32]
    errors: NDArray[np.float64]


def warm_start(
    workspace: Workspace, source: Workspace, *, namespaces: Iterable[str] = (), name: str = "the model"
) -> None:
    """Make the champion of `source` the first champion of a search that has learnt nothing yet.

    The champion predicts the same as in `source`, and continues to learn; its challengers start with its
    weights. Configs that `source` has tried before, and their evidence, are not copied. A model of Vowpal
    Wabbit knows namespaces by letters; a letter becomes those of `namespaces` that begin with it.

    Examples
    --------
    >>> from onlineauto import Workspace
    >>> events = ["1 |user tom |page a", "0 |user ann |page a", "1 |user ann |page b"] * 9
    >>> old, new = Workspace(quadratic="up").fit(events), Workspace(live_configs=4)
    >>> warm_start(new, old)
    >>> new.searching.interactions(0)
    ((b'user', b'page'),)
    >>> bool(new.predict(events[0]) == old.predict(events[0]))
    True
    """
    _check(workspace, source, name)
    full = {text.encode("utf-8", "surrogateescape") for text in namespaces}
    with source.lock:
        names = _full_names(source, full)
        _check_names(source, names, name, is_full=bool(full))
        config, champion = _config(workspace, source, sorted(names)), _champion_of(source)
    with workspace.lock:
        rules = source.name_rules
        if source.layout.bytewise and not rules and workspace.configuration[FeatureOptions].names == "any":
            rules = {"names": "unknown"}
        workspace.follow_names(rules)
        begin_with(workspace, config, namespaces=names)
        _copy_champion(workspace, champion)
        workspace.unseen_namespaces = full


def challenge(
    workspace: Workspace, source: Workspace, *, why: str = "from another model", name: str = "the model"
) -> int:
    """Make the champion of `source` a challenger of a running search; return its live index.

    The challenger continues to learn from its weights in `source`. The search treats it like any challenger:
    it is a member of the ensemble, initially with the weight 0, and becomes the champion when the test of the
    search proves it better. The former champion returns if the test later proves that one better.

    Examples
    --------
    >>> from onlineauto import Workspace
    >>> events = ["1 |user tom |page a", "0 |user ann |page a", "1 |user ann |page b"] * 9
    >>> search, other = Workspace(live_configs=2).fit(events), Workspace(quadratic="up").fit(events)
    >>> search.searching.interactions(challenge(search, other))
    ((b'user', b'page'),)
    """
    _check(workspace, source, name)
    with workspace.lock:
        full = workspace.layout.state()["known"] if source.layout.bytewise else ()
    with source.lock:
        names = _full_names(source, full)
        _check_names(source, names, name, is_full=bool(full))
        _check_searched(workspace, source, name)
        config, numbers = _config(workspace, source, sorted(names)), _champion_of(source)
    with workspace.lock:
        workspace.follow_names(source.name_rules)
        model = workspace.learner.model
        live = workspace.searching.challenge(config, model, names=names, why=why)
        lanes = workspace.learner.lanes_of(live)
        unlearn(model, lanes, workspace.learner.unlearnt)
        _write(workspace, numbers, lanes, live)
        model.shared[MIN_LABEL] = min(model.shared[MIN_LABEL], numbers.shared[MIN_LABEL])
        model.shared[MAX_LABEL] = max(model.shared[MAX_LABEL], numbers.shared[MAX_LABEL])
    return live


def search_from(source: Workspace, configuration: Configuration, *, name: str = "the model") -> Workspace:
    """Return a search whose first champion is `source`, with the options of `source` unless given."""
    start, left = source.configuration, {*_CROSSED, "vw_exact"}
    stored = [option.name for option in REGISTRY.options if option.keep and option.name in start.supplied]
    options = {option: start.get(option) for option in stored if option not in left}
    options |= {option: configuration.get(option) for option in configuration.supplied}
    if options.get("names") == "unknown" and format_of(configuration) is not TEXT:
        options["names"] = "vw"
    workspace = Workspace(configuration=REGISTRY.from_keywords(**options))
    namespaces = _first_namespaces(workspace.configuration) if source.layout.bytewise else []
    warm_start(workspace, source, namespaces=namespaces, name=name)
    return workspace


def _first_namespaces(configuration: Configuration) -> list[str]:
    """Return the namespaces of the first block of the input, if that is a file."""
    layout = StreamLayout(configuration[FeatureOptions])
    for path in map(Path, configuration[InputOptions].data[:1]):
        if path.is_file():
            for block in islice(read_blocks(path, configuration, Diagnostics()), 1):
                layout.update(block)
    return [name.decode("utf-8", "surrogateescape") for name in layout.state()["known"]]


def _check(workspace: Workspace, source: Workspace, name: str) -> None:
    """Reject models that cannot have the same champion."""
    if workspace.is_scaled or source.is_scaled:
        raise OptionError(
            "the workspace of an AutoMLRegressor or AutoMLClassifier has its own scale of numbers and "
            "labels, so it cannot share a champion with another model"
        )
    if not workspace.searching.live_configs.arrays.searching:
        raise OptionError(
            "a warm start needs a model that searches (--automl); to continue with a model unchanged, load it"
        )
    if not workspace.learner.task.training:
        raise OptionError("a model that only predicts (--testonly) cannot be warm-started")
    if _learning_kind(workspace.kind) != _learning_kind(source.kind):
        raise OptionError(
            f"{name} learns events of kind {source.kind}, but this model learns events of kind "
            f"{workspace.kind}"
        )
    options, source_options = workspace.configuration, source.configuration
    rows = workspace.learner.shape.cells, source.learner.shape.cells
    if rows[0] != rows[1]:
        raise OptionError(
            f"{name} has a table of {rows[1]} rows, but this model has {rows[0]}: make this model with "
            f"hash_bits={rows[1].bit_length() - 1} (-b on the command line)"
        )
    for group in (FeatureOptions, UpdateOptions, LossOptions):
        for option in options_of(group):
            if option.name in (*_CROSSED, *_NAMES, "bit_precision") or option.tunable or not option.keep:
                continue
            if options.get(option.name) != source_options.get(option.name) and not option.override:
                raise OptionError(
                    f"{name} was made with {option.name}={source_options.get(option.name)!r}: "
                    "make this model with it"
                )
    if workspace.learner.width != source.learner.width:
        raise OptionError(
            f"{name} has {source.learner.width} models, but this one has {workspace.learner.width}"
        )


def _check_searched(workspace: Workspace, source: Workspace, name: str) -> None:
    """Reject a champion with a hyperparameter that a challenger of this search cannot have."""
    searched = workspace.searching.options.searched()
    defaults = Hyperparameters(workspace.configuration).defaults
    settings = dict(source.searching.live_configs.configs[0].settings)
    for option, value in (Hyperparameters(source.configuration).defaults | settings).items():
        if value != defaults[option] and option not in searched:
            raise OptionError(
                f"{name} has {option}={value!r}, but this search keeps {defaults[option]!r}: add {option} to "
                "search= (--search)"
            )


def _check_names(source: Workspace, names: set[bytes], name: str, *, is_full: bool) -> None:
    """Reject interactions of letters or wildcards if the full names of namespaces are unknown."""
    options, letters_only = source.configuration[FeatureOptions], source.layout.bytewise and not is_full
    crossed = [*options.quadratic, *options.cubic, *options.interactions]
    unknown = [text for text in crossed if letters_only or (":" in text and not names)]
    if letters_only and source.searching.live_configs.arrays.searching:
        unknown = [words_text([letters]) for letters in source.searching.interactions(0)]
    if unknown:
        raise OptionError(
            f"{name} crosses {unknown[0]!r}, but has not stored the names of its namespaces: in Python, "
            "warm_start(…, namespaces=[…]) takes them, the command line reads them from the file of -d; "
            "without a search, the model can be loaded unchanged"
        )


def _learning_kind(kind: str) -> str:
    """Return a kind of events without its exploration, which does not change how costs are learnt."""
    return kind.replace("cb_explore", "cb")


def _full_names(source: Workspace, names: Iterable[bytes]) -> set[bytes]:
    """Return the namespaces of `source`; names in `names` replace their first letters."""
    seen_names, names = set(source.layout.state()["known"]), set(names)
    letters = {name[:1] for name in names}
    return names | {name for name in seen_names if len(name) > 1 or name not in letters}


def _config(workspace: Workspace, source: Workspace, known: Sequence[bytes]) -> Config:
    """Return the champion of `source` as a config of the search."""
    champion = source.searching.live_configs.configs[0]
    settings = Hyperparameters(source.configuration).defaults | dict(champion.settings)
    searched = workspace.searching.options.searched()
    defaults = Hyperparameters(workspace.configuration).defaults
    config = Config.of(_champion_interactions(source, known), ConfigKind.INCLUSION)
    for name, value in settings.items():
        if name in searched and defaults.get(name, value) != value:
            config = config.with_setting(name, value)
    return config


def _champion_interactions(source: Workspace, known: Sequence[bytes]) -> Iterator[Interaction]:
    """Yield the interactions of the champion of `source`, with the full names of namespaces."""
    if source.searching.live_configs.arrays.searching:
        for names in source.searching.interactions(0):
            yield from product(
                *([full for full in known if full.startswith(name)] or [name] for name in names)
            )
        return
    options = source.configuration[FeatureOptions]
    letters = (*options.quadratic, *options.cubic, *options.interactions)
    patterns = [parse_letters(text, bytewise=source.layout.bytewise) for text in letters]
    patterns += map(parse_full_names, options.experimental_full_name_interactions)
    yield from compile_products(patterns, known, keep_duplicates=options.leave_duplicate_interactions)


def _champion_of(source: Workspace) -> _Champion:
    """Return copies of the numbers with which the champion of `source` predicts and learns."""
    model, lanes = source.learner.model, source.learner.champion_lanes()
    cells = read_cells(model, lanes=lanes)
    cells[:, W] = apply_penalties(cells[:, W], model.lanes[model.penalised[lanes]])
    return _Champion(
        model=model._replace(sizes=model.sizes.copy(), outliers=model.outliers.copy()),
        cells=cells,
        sums_of_lanes=model.lanes[lanes][:, [NORM, WEIGHT]],
        shared=model.shared.copy(),
        sums=model.sums[0].copy(),
        explored=int(source.learner.task.exploration.counts[LEARNT] or model.shared[T] or model.sums[0, 1]),
        costs=source.learner.task.exploration.costs.copy(),
        errors=source.learner.task.exploration.errors.copy(),
    )


def _copy_champion(workspace: Workspace, champion: _Champion) -> None:
    """Copy the numbers of another champion into the champion of a search that has learnt nothing."""
    shared = workspace.learner.model.shared
    shared[:] = champion.shared
    shared[ORIGIN] *= workspace.learner.task.finds_origin
    _write(workspace, champion, workspace.learner.champion_lanes(), 0)
    adopt_sizes(workspace.learner.model, [champion.model])
    exploration = workspace.learner.task.exploration
    exploration.counts[LEARNT], exploration.costs[:] = champion.explored, champion.costs
    exploration.errors[:] = champion.errors
    if not champion.errors.any():
        _assume_errors(exploration, *workspace.label_range)


def _assume_errors(exploration: Exploration, low: float, high: float) -> None:
    """Record the lowest and the highest cost once each, both predicted as their mean.

    A model of Vowpal Wabbit, or of an explorer that does not read errors, stores only the range of its costs.
    """
    error = (high - low) / 2
    exploration.errors[[Errors.EVENTS, Errors.RECENT]] = 2
    exploration.errors[Errors.MEAN] = low + error
    exploration.errors[[Errors.SQUARES, Errors.RECENT_SQUARES]] = 2 * error * error
    if exploration.sees_costs:
        exploration.costs[:] = low, high


def _write(workspace: Workspace, numbers: _Champion, lanes: Sequence[int], live: int) -> None:
    """Write the numbers of another model into lanes that have learnt nothing."""
    model = workspace.learner.model
    model.touched[:] |= (numbers.cells != read_cells(model, lanes=lanes)).any(axis=(1, 2))
    write_cells(model, slice(None), numbers.cells, lanes=lanes)
    if moved := numbers.shared[ORIGIN] - model.shared[ORIGIN]:
        cell, _ = workspace.learner.shape.constant
        model.weights[cell, lanes[0]] += np.float32(moved)
        model.touched[cell] = True
    model.lanes[np.ix_(lanes, [NORM, WEIGHT])] = numbers.sums_of_lanes
    model.sums[live] = numbers.sums
