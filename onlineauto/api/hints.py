"""``nothing_learnt``: the error for a source from which nothing was learnt."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from onlineauto.errors import InputError
from onlineauto.formats.lines.problem_code_kernels import ProblemCode
from onlineauto.formats.options import TEXT, format_of, format_of_lines

if TYPE_CHECKING:
    from onlineauto.api.feed import Feed
    from onlineauto.formats.lines.diagnostics import Diagnostics
    from onlineauto.workspace.workspace import Workspace


def nothing_learnt(workspace: Workspace, feed: Feed, problems: Diagnostics, *, events: int) -> InputError:
    """Return the error for a source from which nothing was learnt, with the likely reason."""
    hint = _hint(workspace, feed.head, binary=ProblemCode.CONTROL_BYTE in problems.counts)
    if events and not problems.total:
        problem = f"the source has {count_of(events, 'event')}, and none with a {_label(workspace)}"
        return InputError(f"nothing was learnt: {problem}{hint}")
    if problems.total:
        return InputError(f"nothing was learnt{hint}\n{problems.summary()}")
    return InputError(f"nothing was learnt: the source has no events{hint}")


def _hint(workspace: Workspace, head: bytes, *, binary: bool) -> str:
    """Return the likely format of a source, if the model does not read it."""
    if binary:
        return "; it is not text"
    form, reads = format_of_lines(head), format_of(workspace.configuration)
    bandit = workspace.kind != "simple"
    if reads is not TEXT and form is not reads:
        return f"; it looks like {form.title}: leave {reads.name} out"
    of_bandit = form.log or head.startswith(b"shared") or b"\nshared" in head or b'"_multi"' in head
    if head and of_bandit and not bandit:
        return "; it looks like the log of a contextual bandit, which AutoML learns"
    if form.log:
        return "; rewards that came later than the decisions are joined with AutoML.join"
    if head and not of_bandit and bandit and form is TEXT and b"|" in head:
        return "; it looks like single lines, which AutoMLRegressor and AutoMLClassifier learn"
    if head and form is TEXT and b"|" not in head:
        return (
            "; it looks like neither VW text nor JSON: read tables with pandas or polars and pass the frame"
        )
    return ""


def _label(workspace: Workspace) -> str:
    return "label" if workspace.kind == "simple" else "logged cost or reward"


def refuse_names(source: object, names: Mapping[str, object]) -> None:
    """Raise an error with advice if columns are named for a source that has none."""
    for name, value in names.items():
        if value is not None:
            kind, advice = type(source).__name__, table_advice(source) or f"leave {name} out"
            raise InputError(f"{name} names a column of a frame, but the data is a {kind}: {advice}")


def table_advice(source: object) -> str:
    """Return how a source that looks like a table can be passed, or ""."""
    if isinstance(source, Mapping):
        return "make a frame of it, such as pandas.DataFrame(…)"
    if hasattr(source, "collect"):
        return "collect it, frame.collect()"
    if hasattr(source, "read_row_group") or hasattr(source, "get_batch"):
        return "pass its path, or the table that its read() or read_all() returns"
    if isinstance(source, list) and source and isinstance(source[0], str):
        return "its texts are events with labels; columns are those of Parquet: paths, a folder or a pattern"
    if not isinstance(source, str | os.PathLike):
        return ""
    if not Path(source).is_file():
        return f"there is no file of Parquet {os.fspath(source)!r}, nor in a folder of this name"
    return "it is no file of Parquet; read a table, such as CSV, with pandas or polars and pass the frame"


def count_of(n: int, noun: str) -> str:
    """Return a number of things as text."""
    return f"{n} {noun}{'' if n == 1 else 's'}"
