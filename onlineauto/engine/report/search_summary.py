"""The search of a run in words (`story`), and as the ``automl`` object of ``--extra_metrics``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onlineauto.automl.config import ConfigKind, elements_text, flags_text, words_text
from onlineauto.engine.records.search import Tally
from onlineauto.engine.records.task import DecayTally
from onlineauto.estimators.scale_kernels import BELOW, FLOOR, HIGH, LOW

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onlineauto.engine.records.task import Decay
    from onlineauto.engine.search.journal import Promotion
    from onlineauto.engine.search.search_engine import Searching

_MANY = 40
_MOST_NAMED = 5
"""Maximum number of interactions that the story of a change names."""
_SILENT = 0.1

_PREDICTS = {"champion": "the champion", "mix": "a mix of all live configs", "ensemble": "the ensemble"}


def search_metrics(searching: Searching, *, verbose: bool) -> dict[str, Any]:
    """Return the counts and bounds of every live config, with VW's keys (``test_county`` is one of them)."""
    report: dict[str, Any] = {
        "current_champ": 0,
        "test_county": searching.n_learnt,
        "total_champ_switches": searching.n_switches,
    }
    for live in sorted(range(len(searching.estimates)), key=str):  # the order in VW's file
        report[f"estimator_{live}"] = _live_metrics(searching, live, verbose=verbose)
    return report


def _live_metrics(searching: Searching, live: int, *, verbose: bool) -> dict[str, Any]:
    config, estimates = searching.live_configs.configs[live], searching.estimates
    challenger, champion = estimates.last(live)
    updates = estimates.updates(live)
    metrics: dict[str, Any] = {"config_type": config.kind.value}
    if verbose:
        metrics["elements"] = elements_text(config)
    metrics["self"] = {
        "conf_idx": searching.live_configs.indices[live],
        "upcnt": updates,
        "last_r": challenger[1],
        "last_w": challenger[0],
        "lb": estimates.lower(live),
        "ub": estimates.upper(live),
    }
    if verbose:
        metrics["self"]["interactions"] = flags_text(searching.interactions(live))
    if live > 0:
        metrics["sync_champ"] = {
            "upcnt": updates,
            "last_r": champion[1],
            "last_w": champion[0],
            "lb": estimates.champion_lower(live),
            "ub": estimates.champion_upper(live),
        }
    return metrics


def search_summary(searching: Searching) -> Iterator[str]:
    """Yield sentences about each change of champion, the predictor, and the champion's interactions."""
    changes = searching.changes
    yield f"champion changes = {searching.n_switches}"
    left_out = searching.n_switches - len(changes)
    if left_out > 0:
        yield f"  the first {left_out} are not listed"
    for change in changes:
        yield f"  after {change.events} events: {_difference(change)}{_evidence(change)}"
    if searching.live_configs.arrays.ensemble.on:
        yield f"predicted by = {predicts_text(searching)}"
    if searching.n_alarms:
        yield f"the champion predicted worse than before = {searching.n_alarms} times; see --on_drift"
    yield f"champion's interactions = {_interactions_text(searching)}"
    settings = searching.live_configs.configs[0].settings
    if settings:
        yield "champion's settings = " + ", ".join(f"{name} {_value_text(value)}" for name, value in settings)


def predicts_text(searching: Searching) -> str:
    """Return the predictor, and the event since when it predicts, if the predictor has changed."""
    name, since = searching.predicts
    return _PREDICTS[name] + (f" since event {since:,}" if since else "")


def outside_warning(searching: Searching, *, costs: tuple[float, float]) -> str | None:
    """Return a warning if rewards exceeded the test's range or used a small part of it, else None."""
    arrays, options = searching.live_configs.arrays, searching.options
    outside = int(arrays.tally[Tally.OUTSIDE])
    if not arrays.tests.paired and outside:
        return (
            f"{outside} of {searching.n_learnt} events have a reward outside [0, 1] (it is the negated "
            "cost, or with --reward_as_cost the cost); the search compares configs by clipped rewards"
        )
    scale = arrays.statistics.scale
    if options.min_prob and scale[BELOW]:
        return (
            f"{int(scale[BELOW])} events were logged with less than --min_prob {options.min_prob:g}; "
            f"the test continued with {scale[FLOOR]:.4g}"
        )
    if options.cost_range is None or not arrays.tests.by_reward or not searching.n_learnt:
        return None
    low, high = options.rewards()
    if scale[LOW] < low or scale[HIGH] > high:
        return (
            f"there were costs beyond --cost_range {options.cost_range}; the test clipped each one to the "
            "range known before it"
        )
    if costs[1] - costs[0] < _SILENT * (high - low):
        return (
            f"costs were from {costs[0]:.4g} to {costs[1]:.4g}, a small part of --cost_range "
            f"{options.cost_range}: the test can hardly distinguish configs; without --cost_range it learns "
            "the range"
        )
    return None


def decay_warning(decay: Decay) -> str | None:
    """Return a warning if ``--epsilon_decay`` compared models by clipped rewards, else None."""
    outside = int(decay.tally[DecayTally.OUTSIDE_RANGE])
    if not outside:
        return None
    return (
        f"{outside} events have a cost beyond --cost_range (-1,0 if not supplied); --epsilon_decay compares "
        "models by clipped costs"
    )


def _evidence(change: Promotion) -> str:
    bounds = change.bounds
    if change.level is not None:
        relation = "it lost less on" if change.by == "loss" else "it earned more over"
        return (
            f" ({relation} {bounds.updates} events; wrong with a probability of {change.level:.2g} at most)"
        )
    return (
        f" (over {bounds.updates} events its reward is at least {bounds.lower:.4g},"
        f" the old champion's at most {bounds.champion_upper:.4g})"
    )


def _difference(change: Promotion) -> str:
    """Return the interactions and settings in which the new champion differs from the old one, as text."""
    old, new = set(change.before), set(change.after)
    gained, lost = sorted(new - old), sorted(old - new)
    parts = [
        f"{word} {words_text(names, most=_MOST_NAMED)}"
        for word, names in (("gained", gained), ("lost", lost))
        if names
    ]
    turned = dict(change.after_settings).items() - dict(change.before_settings).items()
    parts += [f"has {name} {_value_text(value)}" for name, value in sorted(turned)]
    return f"the champion {' and '.join(parts)}" if parts else "the champion was replaced by its copy"


def _value_text(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.4g}"


def _interactions_text(searching: Searching) -> str:
    """Return the champion's interactions as text; if they are many, the ones that it leaves out."""
    config, crossed = searching.live_configs.configs[0], searching.interactions(0)
    if config.kind is ConfigKind.EXCLUSION and len(crossed) > _MANY:
        left_out = f" but {words_text(config.elements)}" if config.elements else ""
        return f"all{left_out} ({len(crossed)} of {len(searching.live_configs.namespaces)} namespaces)"
    return words_text(crossed, most=_MANY) or "none"
