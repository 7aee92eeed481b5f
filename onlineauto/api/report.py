"""Reports of a model: `summary` in a line, `text_report` in a paragraph, `html_report` for notebooks."""

from __future__ import annotations

from html import escape
from itertools import islice
from typing import TYPE_CHECKING

from onlineauto.engine.report.search_summary import predicts_text, search_summary
from onlineauto.formats.lines.diagnostics import ProblemCode
from onlineauto.workspace.inspection.inspection import inspection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onlineauto.api.base import AutoModel
    from onlineauto.workspace.workspace import Workspace

_MANY = 6

_STYLE = (
    "border-collapse:collapse;font:13px/1.5 system-ui,sans-serif;color:inherit;background:transparent",
    "text-align:left;padding:2px 16px 2px 0;border:0;vertical-align:top;white-space:nowrap;opacity:.75",
    "text-align:left;padding:2px 0;border:0;color:inherit",
    "text-align:left;font-weight:600;padding:0 0 4px;color:inherit",
)
"""Styles of table, heading, cell and caption. Colours are inherited, for light and dark backgrounds."""


def summary(model: AutoModel) -> str:
    """Return the number of learnt events, the average loss or reward, and the champion's interactions."""
    if not model.events:
        return "nothing learnt yet"
    return ", ".join(f"{name}: {value}" for name, value in islice(_rows(model, most=_MANY), 4))


def text_report(model: AutoModel) -> str:
    """Return the champion of a model, its evidence, and the average loss or reward, as lines of text."""
    rows = list(_rows(model, most=40))
    width = max(len(name) for name, _ in rows)
    lines = [type(model).__name__, *(f"  {name.ljust(width)}  {value}" for name, value in rows)]
    searching = model.workspace.searching
    if searching.live_configs.arrays.searching:
        lines += ["", *_challengers(model.workspace)]
        lines += [
            line for line in search_summary(searching) if not line.startswith(("champion's", "predicted"))
        ]
    return "\n".join(lines)


def html_report(model: AutoModel) -> str:
    """Return a short report of a model as a small table, for notebooks."""
    table, heading, cell, caption = _STYLE
    rows = "".join(
        f'<tr style="background:transparent"><th style="{heading}">{escape(name)}</th>'
        f'<td style="{cell}">{escape(value)}</td></tr>'
        for name, value in _rows(model, most=12)
    )
    title = f'<caption style="{caption}">{escape(type(model).__name__)}</caption>'
    return f'<table style="{table}">{title}<tbody>{rows}</tbody></table>'


def _rows(model: AutoModel, *, most: int) -> Iterator[tuple[str, str]]:
    """Yield the rows of a report, as names and values."""
    champion, measure = model.champion, model._measure  # noqa: SLF001 - one package
    sign = -1 if measure == "reward" else 1
    yield "events", f"{model.events:,}"
    if model.events:
        yield f"average {measure}", f"{sign * model.average_loss:.4g}"
    if wide := model.workspace.diagnostics.counts[ProblemCode.TOO_WIDE]:
        yield "too wide", f"{wide:,} events, learnt without their widest interactions"
    options = model.workspace.searching.options
    if champion.events and not model._standardises:  # noqa: SLF001
        low, high = champion.reward if sign < 0 else (0.0 - champion.reward[1], 0.0 - champion.reward[0])
        sure = f"{1 - options.automl_significance_level:.0%}"
        yield (
            f"champion's {measure}",
            f"{low:.4g} to {high:.4g} ({sure} sure) over its {champion.events:,} events",
        )
    crossed, more = champion.interactions[:most], len(champion.interactions) - most
    yield "crosses", (", ".join(crossed) or "nothing") + (f" and {more} more" if more > 0 else "")
    for name, value in champion.settings.items():
        yield name.replace("_", " "), value if isinstance(value, str) else f"{value:.4g}"
    if model.workspace.searching.live_configs.arrays.searching:
        yield "champions before", f"{champion.changes}"
        yield "live configs", f"{len(model.workspace.estimates)}"
        yield "predicted by", predicts_text(model.workspace.searching)
    yield from model._details()  # noqa: SLF001


def _challengers(workspace: Workspace) -> Iterator[str]:
    """Yield a line for each challenger: its difference from the champion, and its evidence."""
    live_configs = inspection(workspace, names={}, top=0)["live_configs"]
    champion = live_configs[0]["settings"]
    for challenger in live_configs[1:]:
        differs = challenger["differs_by"]
        parts = differs[:_MANY] + [f"{len(differs) - _MANY} more"] * (len(differs) > _MANY)
        turned = challenger["settings"].items() - champion.items()
        parts += [f"{name} {value}" for name, value in sorted(turned)]
        parts += [f"{name} as before" for name in sorted(champion.keys() - challenger["settings"].keys())]
        evidence = f", evidence {challenger['evidence']:.3g}" if "evidence" in challenger else ""
        config = ", ".join(parts) or "the champion's double"
        yield f"challenger {challenger['index']}: {config} (over {challenger['events']:,} events{evidence})"
