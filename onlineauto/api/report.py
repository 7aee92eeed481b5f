"""A model at a glance: `summary` in a line, `text_report` in a paragraph, `html_report` for notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from onlineauto.engine.report.search_story import story

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onlineauto.api.base import AutoModel

__all__ = ["html_report", "summary", "text_report"]

_MANY = 6

_STYLE = (
    "border-collapse:collapse;font:13px/1.5 system-ui,sans-serif;color:inherit;background:transparent",
    "text-align:left;padding:2px 16px 2px 0;font-weight:600;border:0;vertical-align:top;opacity:.75",
    "text-align:left;padding:2px 0;border:0;color:inherit",
    "text-align:left;font-weight:600;padding:0 0 4px;color:inherit",
)
"""Styles of table, heading, cell and caption. Colours are inherited, so that it is legible on any ground."""


def summary(model: AutoModel) -> str:
    """Return what a model has learnt, how well it does, and what its champion crosses, in a line."""
    if not model.events:
        return "nothing learnt yet"
    return ", ".join(f"{name}: {value}" for name, value in _rows(model, most=_MANY))


def text_report(model: AutoModel) -> str:
    """Return the champion of a model, its evidence and how well it has done, as lines of text."""
    rows = list(_rows(model, most=40))
    width = max(len(name) for name, _ in rows)
    lines = [type(model).__name__, *(f"  {name.ljust(width)}  {value}" for name, value in rows)]
    searching = model.workspace.searching
    if searching.live_configs.arrays.searching:
        lines += ["", *story(searching)]
    return "\n".join(lines)


def html_report(model: AutoModel) -> str:
    """Return a model at a glance as a small table, for notebooks."""
    table, heading, cell, caption = _STYLE
    rows = "".join(
        f'<tr style="background:transparent"><th style="{heading}">{escape(name)}</th>'
        f'<td style="{cell}">{escape(value)}</td></tr>'
        for name, value in _rows(model, most=12)
    )
    title = f'<caption style="{caption}">{escape(type(model).__name__)}</caption>'
    return f'<table style="{table}">{title}<tbody>{rows}</tbody></table>'


def _rows(model: AutoModel, *, most: int) -> Iterator[tuple[str, str]]:
    """Yield what there is to say of a model, as names and values."""
    champion, sign = model.champion, -1 if model._measure == "reward" else 1  # noqa: SLF001 - one package
    yield "events", f"{model.events}"
    if model.events:
        yield f"average {model._measure}", f"{sign * model.average_loss:.4g}"  # noqa: SLF001
    if champion.events:
        low, high = champion.reward if sign < 0 else (-champion.reward[1], -champion.reward[0])
        yield "champion's", f"{low:.4g} to {high:.4g} over its {champion.events} events"
    crossed, more = champion.interactions[:most], len(champion.interactions) - most
    yield "crosses", (", ".join(crossed) or "nothing") + (f" and {more} more" if more > 0 else "")
    for name, value in champion.settings.items():
        yield name.replace("_", " "), value if isinstance(value, str) else f"{value:.4g}"
    if model.workspace.searching.live_configs.arrays.searching:
        yield "champions before", f"{champion.changes}"
        yield "live configs", f"{len(model.workspace.estimates)}"
