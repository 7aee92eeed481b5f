"""Draw the pictures of the README and the documentation, light and dark, from ``data``.

``python docs/pictures/draw.py [FOLDER]`` writes them, here by default. ``record.py`` has written the data.
"""

from __future__ import annotations

import csv
import sys
from functools import partial
from pathlib import Path
from textwrap import wrap
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec
from matplotlib.patches import FancyBboxPatch

from onlineauto.explorers.policy import Policy
from onlineauto.pictures import (
    Picture,
    crossings,
    effects,
    front_picture,
    race,
    rewards,
    study_picture,
    values,
)
from onlineauto.pictures.runs import course_of
from onlineauto.pictures.story import story_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onlineauto.pictures.picture import Look
    from onlineauto.pictures.runs import Course

HERE = Path(__file__).parent
DATA = HERE / "data"
JOURNAL = DATA / "flights-journal.jsonl"
RUNS = {
    "flights-automl": "onlineauto --automl",
    "flights-all-pairs": "all pairs, -q ::",
    "flights-vw": "VW --automl 4",
}
"""By name of a file: what the picture calls the run."""
MEMBERS = {
    "stones-all": "all members",
    "stones-features-waves": "live configs, features, waves",
    "stones-none": "live configs",
    "stones-champion": "the champion alone",
}
"""The same, of runs whose ensembles have more and fewer members."""

BENCHMARKS = DATA.parents[1] / "benchmarks" / "data"
"""The figures of `bench.publish`."""

_FIGURES: dict[str, tuple[tuple[str, ...], str, str, dict[str, Any]]] = {
    "quality": (
        ("logs", "logs-peers"),
        "What is earned on each log",
        "mean true reward of the best-ranked action; bars: range over seeds; more is better",
        {
            "columns": (
                "onlineauto",
                "champion alone",
                "all pairs",
                "VW `--automl 4`",
                "LightGBM",
            )
        },
    ),
    "speed": (
        ("kinds",),
        "What an event costs",
        "CPU microseconds to predict and learn an event of the first of each stream; less is faster",
        {"logarithmic": True},
    ),
    "service": (
        ("service",),
        "Decisions and rewards over HTTP",
        "pairs of a rank and its reward a second, by the number of connections; more is faster",
        {"unit": "pairs/s"},
    ),
    "partitions": (
        ("partitions-ratios",),
        "What partitions earn",
        "true mean reward of the second half of each stream / that of one learner",
        {},
    ),
    "off-policy": (
        ("off-policy-errors",),
        "How far estimates of a policy are from the truth",
        "mean distance of the estimate from the true value; bars: range over policies; less is better",
        {},
    ),
    "tuners": (
        ("tuners",),
        "How far from the optimum a search ends",
        "regret: 0 is the optimum, 1 the median of random configs; bars: range over seeds",
        {},
    ),
    "policies": (
        ("cluster",),
        "How long jobs take under each policy",
        "mean completion time / that of fair sharing, with 95 % intervals; less is faster",
        {},
    ),
}
"""By name of a picture of figures: its tables, its title, its note, and what else it needs."""

EXPLORERS: dict[str, dict[str, Any]] = {
    "greedy, epsilon 0.2": {"epsilon": 0.2},
    "softmax, lambda 5": {"softmax": True, "lambda": 5.0},
    "squarecb, gamma scale 10": {"squarecb": True, "gamma_scale": 10.0},
    "regcb": {"regcb": True},
    "regcb, optimistic": {"regcbopt": True},
    "synthcover": {"synthcover": True},
}
"""By title in the picture of explorers: their options."""


def pictures(*, dark: bool) -> Iterator[tuple[str, Picture]]:
    """Yield each picture with its name."""
    story = story_of(JOURNAL)
    yield "ensemble", _ensemble(dark=dark)
    yield "members", _members(dark=dark)
    yield "reward", _reward([events for events, _ in story.swaps], dark=dark)
    yield "race", race(JOURNAL, dark=dark)
    yield (
        "crossings",
        crossings(story.champion_interactions(), namespaces=story.namespaces, dark=dark),
    )
    yield "pmfs", _pmfs(dark=dark)
    yield "new-article", _new_article(dark=dark)
    yield "values", _values(dark=dark)
    yield "evidence", _evidence(dark=dark)
    yield "drift", _drift(dark=dark)
    yield (
        "study",
        study_picture(
            **msgspec.json.decode((DATA / "study.json").read_bytes()),
            title="A study of three parameters",
            dark=dark,
        ),
    )
    front = msgspec.json.decode((DATA / "front.json").read_bytes())
    yield "front", front_picture(**front, title="A study with two objectives", dark=dark)
    found = msgspec.json.decode((DATA / "effects.json").read_bytes())
    yield "effects", effects(found, title="What makes the price of a home", dark=dark)
    title = "How an event becomes a decision, and evidence"
    yield "parts", _flow(_BOXES, _ARROWS, "ensemble", title=title, dark=dark)
    title = "How Python calls machine code"
    yield "abi", _flow(_ABI_BOXES, _ABI_ARROWS, "program", title=title, dark=dark)
    title = "Who does what in a study"
    yield "study-parts", _flow(_STUDY_BOXES, _STUDY_ARROWS, "study", title=title, dark=dark)
    yield "rungs", _rungs(dark=dark)
    yield "cluster", _cluster(dark=dark)
    yield "servers", _servers(dark=dark)
    for name, (tables, title, note, options) in _FIGURES.items():
        if not all((BENCHMARKS / f"{table}.csv").exists() for table in tables):
            continue  # a section of `bench.publish` failed
        yield name, _figures(*tables, title=title, note=note, dark=dark, **options)


def main(folder: Path) -> None:
    """Draw all pictures into a folder."""
    for dark in (False, True):
        for name, picture in pictures(dark=dark):
            picture.save(folder / f"{name}-{'dark' if dark else 'light'}.svg")


def _pmfs(*, dark: bool) -> Picture:
    """Draw the probability of each action under several explorers, all for the same predicted costs."""
    scores, learnt, slack = (0.2, 0.25, 0.4, 0.6, 0.9), 1000, 0.1
    predicted = ", ".join(f"{score:g}" for score in scores)
    picture = Picture(
        3.1 * 3,
        0.9 + 2.1 * 2,
        title="From the same predictions to probabilities",
        note=f"predicted costs of {len(scores)} actions: {predicted} · after {learnt:,} events",
        dark=dark,
    )
    plausible = [(score - slack, score + slack) for score in scores]
    with picture.drawing() as look:
        grid = picture.figure.subplots(2, 3, sharey=True)
        for at, (title, options) in enumerate(EXPLORERS.items()):
            axes, policy = grid.flat[at], Policy(**options)
            given = plausible if policy.needs_plausible else None
            pmf = policy.pmf(scores, learnt=learnt, plausible=given)
            bars = axes.bar(range(len(pmf)), pmf, color=look.series[0], width=0.72)
            axes.bar_label(
                bars, [f"{p:.2f}" for p in pmf], size=7.5, color=look.quiet, padding=1
            )
            axes.set_title(title)
            axes.set_ylim(0, 1.15)
            axes.set_yticks([0, 0.5, 1])
            axes.set_xticks(range(len(pmf)), [str(action) for action in range(len(pmf))])
            axes.tick_params(length=0)
            axes.grid(visible=False, axis="x")
            axes.spines["left"].set_visible(False)
            if at >= 3:
                axes.set_xlabel("action")
            if at % 3 == 0:
                axes.set_ylabel("probability")
    return picture


def _new_article(*, dark: bool) -> Picture:
    """Draw the share of a new article with each of several seeds, and the bound of its first share."""
    recorded = msgspec.json.decode((DATA / "new-article.json").read_bytes())
    title = "The share of a new article"
    note = (
        "13th article of 3 % clicks, 20 seeds; rewards come 500 visits late; dashed: 1/13"
    )
    picture = Picture(9, 3.6, title=title, note=note, dark=dark)
    with picture.drawing() as look:
        axes = picture.figure.subplots()
        for shares in recorded["shares"]:
            axes.plot(
                recorded["visits"], shares, color=look.series[0], linewidth=0.8, alpha=0.7
            )
        axes.axhline(1 / 13, color=look.quiet, linestyle="--", linewidth=1)
        axes.set_ylim(0, 1)
        axes.set_xlabel("visits since the article was added")
        axes.set_ylabel("probability, mean of four segments")
    return picture


def _members(*, dark: bool) -> Picture:
    courses = [_settled(DATA / f"{file}.txt", name=name) for file, name in MEMBERS.items()]
    title = "Which of ten prices has a stone? Average reward of ensembles"
    picture = rewards(courses, title=title, dark=dark)
    picture.figure.axes[0].set_xlim(left=100)
    return picture


def _settled(path: Path, *, name: str) -> Course:
    """Return the course of a run without the first hundred events, which are noise."""
    course = course_of(path)
    loss = [
        loss
        for events, loss in zip(course.events, course.loss, strict=True)
        if events > 100
    ]
    return course._replace(
        name=name, loss=loss, events=[events for events in course.events if events > 100]
    )


def _reward(changes: list[int], *, dark: bool) -> Picture:
    courses = [_settled(DATA / f"{file}.txt", name=name) for file, name in RUNS.items()]
    title = "Which of ten carriers flew? Average reward over a log of 30,000 events"
    picture = rewards(
        courses, changes={RUNS["flights-automl"]: changes}, title=title, dark=dark
    )
    picture.figure.axes[0].set_xlim(left=100)
    return picture


def _values(*, dark: bool) -> Picture:
    recorded = msgspec.json.decode((DATA / "values.json").read_bytes())
    found = {policy: SimpleNamespace(**each) for policy, each in recorded["values"].items()}
    title = "Surveys: what three policies would have cost"
    return values(found, recorded["growth"], title=title, dark=dark)


def _evidence(*, dark: bool) -> Picture:
    """Draw how the evidence of challengers grows until one is the champion."""
    recorded = msgspec.json.decode((DATA / "evidence.json").read_bytes())
    note = "flights: how sure it is that each challenger is better; 1 is no evidence"
    picture = Picture(
        9, 3.6, title="Evidence until the champion changes", note=note, dark=dark
    )
    with picture.drawing() as look:
        axes = picture.figure.subplots()
        events = [recorded["every"] * (i + 1) for i in range(len(recorded["evidence"]))]
        for i, course in enumerate(zip(*recorded["evidence"], strict=True)):
            axes.plot(events, course, color=look.series[i], label=f"challenger {i + 1}")
        axes.axvline(
            recorded["changed"], color=look.ink, linewidth=1, linestyle=(0, (2, 2))
        )
        axes.annotate(
            f"challenger 1 is the champion,\nafter {recorded['changed']:,} events",
            (recorded["changed"], 40), xytext=(-48, 0), textcoords="offset points", ha="right",
        )  # fmt: skip
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.set_xlabel("events")
        axes.set_ylabel("evidence")
        axes.legend(loc="upper left")
    return picture


def _drift(*, dark: bool) -> Picture:
    """Draw the reward of two runs over a stream that changes."""
    recorded = msgspec.json.decode((DATA / "drift.json").read_bytes())
    note = f"true reward of the best-looking action, averages of {recorded['every']} events"
    picture = Picture(
        9,
        3.8,
        title="The world changes: what is best, and what to cross",
        note=note,
        dark=dark,
    )
    with picture.drawing() as look:
        axes = picture.figure.subplots()
        for i, (name, course) in enumerate(recorded["rewards"].items()):
            events = [recorded["every"] * (k + 0.5) for k in range(len(course))]
            axes.plot(events, course, color=look.series[i], label=name)
        axes.axvline(
            recorded["change"], color=look.quiet, linewidth=1, linestyle=(0, (2, 2))
        )
        axes.text(recorded["change"], 0.12, " the stream changes", color=look.quiet)
        for decision, now in recorded["decisions"]:
            sign = "^" if decision == "swap" else "s"
            axes.plot([now], [0.97], sign, color=look.ink, markersize=5, clip_on=False)
        axes.plot(
            [],
            [],
            "^",
            color=look.ink,
            markersize=5,
            linestyle="",
            label="the champion changed",
        )
        axes.plot(
            [],
            [],
            "s",
            color=look.ink,
            markersize=5,
            linestyle="",
            label="tests began anew",
        )
        axes.set_ylim(0.1, 0.98)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.set_xlabel("events")
        axes.set_ylabel("reward")
        axes.legend(loc="lower left", ncols=2)
    return picture


def _figures(
    *tables: str,
    title: str,
    note: str,
    columns: tuple[str, ...] = (),
    unit: str = "",
    logarithmic: bool = False,
    dark: bool,
) -> Picture:
    """Draw the medians of CSV files as dots, with their ranges; each column has a colour."""
    found: dict[str, dict[str, list[float]]] = {}
    for table in tables:
        with (BENCHMARKS / f"{table}.csv").open(encoding="utf-8", newline="") as file:
            for each in csv.DictReader(file):
                wanted = each["unit"] == (unit or each["unit"])
                if wanted and each["column"] in (columns or [each["column"]]):
                    numbers = [float(each[name]) for name in ("median", "low", "high")]
                    found.setdefault(each["column"], {})[each["row"]] = numbers
    rows = list(dict.fromkeys(row for of in found.values() for row in of))[::-1]
    picture = Picture(9, 1.5 + 0.24 * len(rows), title=title, note=note, dark=dark)
    with picture.drawing() as look:
        axes = picture.figure.subplots()
        for color, (name, of) in zip(look.series, found.items(), strict=False):
            heights = [rows.index(row) for row in of]
            middle, low, high = zip(*of.values(), strict=True)
            axes.hlines(heights, low, high, color=color, linewidth=1.5, alpha=0.6)
            axes.plot(
                middle,
                heights,
                "o",
                color=color,
                markersize=4.5,
                label=name.replace("`", ""),
            )
        axes.set_yticks(
            range(len(rows)),
            ["\n".join(wrap(row.replace("`", ""), 44)) for row in rows],
            size=7.5,
        )
        if logarithmic:
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter("{x:g}")
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=6)
    return picture


def _cluster(*, dark: bool) -> Picture:
    """Draw how long jobs of a cluster take under each policy, from few jobs to many."""
    recorded = msgspec.json.decode((DATA / "cluster.json").read_bytes())
    note = "simulated: mean completion time / that of fair sharing, with 95 % intervals; less is faster"
    picture = Picture(
        9, 4, title="What a policy gains over fair sharing", note=note, dark=dark
    )
    with picture.drawing() as look:
        axes = picture.figure.subplots()
        axes.axhline(1, color=look.quiet, linewidth=1, linestyle=(0, (2, 2)))
        for at, name in enumerate(("learned", "marginal-gain", "srtf", "fifo")):
            rates, ratios, low, high = zip(*recorded[name], strict=True)
            axes.fill_between(
                rates, low, high, color=look.series[at], alpha=0.15, linewidth=0
            )
            axes.plot(
                rates,
                ratios,
                color=look.series[at],
                marker="o",
                markersize=4,
                label=name,
            )
        axes.set_xscale("log")
        axes.set_xticks(rates, [f"{rate:g}" for rate in rates])
        axes.minorticks_off()
        axes.set_xlabel("jobs that arrive in a slot")
        axes.set_ylabel("time / fair")
        axes.legend(loc="upper left", ncols=2)
    return picture


_ROWS = {
    "features": 2.340,
    "waves": 2.135,
    "crosses": 1.930,
    "layer": 1.725,
    "baseline": 1.520,
    "ridge": 1.315,
    "means": 1.110,
    "trees": 0.905,
}
"""The extra members in the picture of the ensemble, and how high each is drawn."""


def _ensemble(*, dark: bool) -> Picture:
    """Draw how members, weights and a test make the prediction of an event."""
    note = "blue: the champion, the fallback; green: the ensemble; dashed: learning, once the cost is known"
    picture = Picture(9, 5.0, title="How an event is predicted", note=note, dark=dark)
    with picture.drawing() as look:
        axes = picture.figure.subplots()
        axes.set_axis_off()
        axes.set_xlim(-0.03, 9.03)
        axes.set_ylim(0.05, 4.4)
        green, blue = look.series[2], look.champion
        box, arrow = partial(_box, axes, look), partial(_arrow, axes)
        box((1.4, 0.86), (2.3, 3.5), edge=look.line)
        for y, text in (
            (4.2, "members:"),
            (3.95, "live configs, from the search"),
            (2.64, "extra members"),
        ):
            axes.text(1.52, y, text, size=7.5, color=look.quiet, va="center")
        box(
            (1.52, 3.33),
            (2.06, 0.46),
            "0: the champion",
            edge=blue,
            fill=blue,
            ink=look.paper,
        )
        box((1.52, 2.86), (2.06, 0.36), "1, 2, 3: challengers")
        for name, y in _ROWS.items():
            box((1.52, y), (2.06, 0.18), name)
        box((0, 1.75), (0.9, 0.9), "event:\ncontext,\nactions")
        arrow((0.9, 2.2), (1.4, 2.2), color=look.ink)
        arrow((3.7, 2.2), (4.47, 2.2), color=green)
        axes.text(
            4.08,
            2.28,
            "each scores\neach action",
            size=7.5,
            color=look.quiet,
            ha="center",
            va="bottom",
        )
        box(
            (4.47, 1.75),
            (1.23, 0.9),
            "ensemble:\nweighted sum\nof scores",
            edge=green,
            fill=green,
            ink=look.paper,
        )
        arrow((5.7, 2.2), (6.0, 2.2), color=green)
        box((6.0, 1.7), (1.5, 1.0), "test: is it better\nthan the\nchampion?")
        arrow((3.58, 3.44), (6.75, 3.44), (6.75, 2.7), color=blue)
        arrow((3.58, 3.68), (6.0, 3.68), color=blue)
        box(
            (6.0, 3.53),
            (3.0, 0.48),
            "can leave: a Vowpal Wabbit model,\n--predict_with champion",
            edge=blue,
        )
        arrow((7.5, 2.45), (8.15, 2.45), color=blue)
        axes.text(7.8, 2.52, "not\nproved", size=7.5, color=blue, ha="center", va="bottom")
        arrow((7.5, 1.95), (8.15, 1.95), color=green)
        axes.text(7.8, 1.86, "proved", size=7.5, color=green, ha="center", va="top")
        box((8.15, 1.75), (0.85, 0.9), "prediction\nof each\naction", edge=look.ink)
        box((7.5, 0.2), (1.5, 0.5), "cost of the\nlogged action")
        dashed = partial(arrow, color=look.quiet, dashed=True)
        dashed((7.5, 0.45), (2.55, 0.45), (2.55, 0.86))
        dashed((5.08, 0.45), (5.08, 1.75))
        dashed((6.75, 0.45), (6.75, 1.7))
    return picture


def _box(
    axes: Any,
    look: Look,
    at: tuple[float, float],
    size: tuple[float, float],
    text: str = "",
    **colours: str,
) -> None:
    """Draw a box with a text in its middle; `colours` are of its edge, its area (fill) and its text (ink)."""
    edge, fill = colours.get("edge", look.quiet), colours.get("fill", look.paper)
    style = "round,pad=0,rounding_size=0.07"
    axes.add_patch(
        FancyBboxPatch(
            at, *size, boxstyle=style, facecolor=fill, edgecolor=edge, linewidth=1.2
        )
    )
    axes.text(
        at[0] + size[0] / 2, at[1] + size[1] / 2, text, ha="center", va="center", size=8.5, linespacing=1.35,
        color=colours.get("ink", look.ink),
    )  # fmt: skip


def _arrow(
    axes: Any, *points: tuple[float, float], color: str, dashed: bool = False
) -> None:
    """Draw an arrow along points."""
    line = {"color": color, "linewidth": 1.4, "linestyle": (0, (3, 2)) if dashed else "-"}
    axes.plot(*zip(*points, strict=True), **line)
    head = {
        "arrowstyle": "-|>",
        "color": color,
        "linewidth": 0,
        "shrinkA": 0,
        "shrinkB": 0,
        "mutation_scale": 14,
    }
    axes.annotate("", xy=points[-1], xytext=points[-2], arrowprops=head)


_BOXES = {
    "log": (0, 1, "log, frame,\ndicts"),
    "block": (1, 1, "block:\nevents in columns"),
    "live": (2, 1, "live configs and\nother members learn"),
    "ensemble": (3, 1, "the ensemble\npredicts"),
    "explorer": (4, 1, "explorer: scores\nto probabilities"),
    "oracle": (1, 0, "oracle proposes\nchallengers"),
    "test": (2, 0, "tests, valid\nat any time"),
    "journal": (3, 0, "journal: every\ndecision, and why"),
}
_ARROWS = (
    *(("log", "block"), ("block", "live"), ("live", "ensemble"), ("ensemble", "explorer")),
    *(("live", "test"), ("test", "journal"), ("oracle", "live"), ("test", "ensemble")),
)


_ABI_BOXES = {
    "call": (0, 1, "Python calls\na kernel"),
    "frame": (1.2, 1, "frame: arguments\nas 64-bit words"),
    "program": (2.5, 1, "program: machine code\nof an entry kernel"),
    "result": (3.8, 1, "words of the result,\nor an error"),
    "arrays": (0, 0, "arrays\nof NumPy"),
    "sealed": (1.2, 0, "sealed records:\nwords never change"),
    "option": (2.5, 0, "program of an option,\nby call_at(address)"),
}
_ABI_ARROWS = (
    *(("call", "frame"), ("frame", "program"), ("program", "result")),
    *(("frame", "sealed"), ("sealed", "arrays"), ("program", "option")),
)

_STUDY_BOXES = {
    "searcher": (0, 1, "searcher proposes\nconfigs"),
    "scheduler": (0, 0, "scheduler: begin,\nresume, stop"),
    "study": (1.35, 0.5, "study asks both,\nand keeps a log"),
    "store": (2.7, 0.5, "store: log, leases,\ncheckpoints"),
    "worker": (4, 1, "worker runs\none job"),
    "another": (4, 0, "worker, on\nanother machine"),
}
_STUDY_ARROWS = (
    *(("searcher", "study"), ("scheduler", "study"), ("study", "store")),
    *(("store", "worker"), ("store", "another")),
)


def _rungs(*, dark: bool) -> Picture:
    """Draw the slots of two brackets: occupied, pending, free; and the promotions of the first."""
    note = "filled: occupied by a trial with a value; dashed: pending, its job runs; empty: free"
    picture = Picture(
        9, 3.4, title="Slots, rungs and promotions of two brackets", note=note, dark=dark
    )
    with picture.drawing() as look:
        axes = picture.figure.subplots()
        axes.set_axis_off()
        axes.set_xlim(0, 36)
        axes.set_ylim(-0.4, 7.6)
        for x, level in ((0.3, 1), (11.8, 3), (16.8, 9), (19.8, 27)):
            axes.text(x, 7.1, f"resource {level}", size=8.5, color=look.quiet)
        slot = partial(_slots, axes, look)
        slot((0.3, 4), 27, 9, occupied=27, best=9)
        slot((11.8, 4), 9, 3, occupied=7, pending=2)
        slot((16.8, 4), 3, 1)
        slot((19.8, 4), 1, 1)
        slot((11.8, 0.3), 12, 4, occupied=2, pending=4)
        slot((16.8, 0.3), 4, 2)
        slot((19.8, 0.3), 2, 1)
        _arrow(axes, (9.6, 5.3), (11.5, 5.3), color=look.series[2])
        texts = (
            (
                5.2,
                "bracket 1: the first rung is complete, its\nbest third is promoted; two jobs run",
            ),
            (
                1.5,
                "bracket 2: free workers take its slots,\nand wait for no rung of bracket 1",
            ),
        )
        for y, text in texts:
            axes.text(22.6, y, text, size=8.5, color=look.ink, va="center", linespacing=1.5)
    return picture


def _slots(
    axes: Any,
    look: Look,
    corner: tuple[float, float],
    size: int,
    columns: int,
    *,
    occupied: int = 0,
    pending: int = 0,
    best: int = 0,
) -> None:
    """Draw the slots of a rung: first the `best` of the occupied ones, then pending and free ones."""
    for number in range(size):
        row, column = divmod(number, columns)
        fill = look.quiet if number < occupied else look.paper
        fill = look.series[2] if number < best else fill
        dashed = occupied <= number < occupied + pending
        axes.add_patch(
            FancyBboxPatch(
                (corner[0] + column, corner[1] + 2 - row),
                0.72,
                0.72,
                boxstyle="round,pad=0,rounding_size=0.12",
                facecolor=fill,
                edgecolor=look.series[2] if dashed else look.quiet,
                linewidth=1.2,
                linestyle=(0, (2, 1.5)) if dashed else "-",
            )
        )


def _flow(
    boxes_at: dict[str, tuple[float, float, str]],
    arrows: tuple[tuple[str, str], ...],
    middle: str,
    *,
    title: str,
    dark: bool,
) -> Picture:
    """Draw boxes with texts at places, one of them in colour, and arrows between them."""
    picture = Picture(9, 2.6, title=title, dark=dark)
    with picture.drawing() as look:
        axes = picture.figure.subplots()
        axes.set_axis_off()
        axes.set_xlim(-0.4, 4.45)
        axes.set_ylim(-0.35, 1.35)
        boxes = {}
        for name, (x, y, text) in boxes_at.items():
            fill = look.series[2] if name == middle else look.paper
            boxes[name] = axes.text(
                x, y, text, ha="center", va="center", size=9, linespacing=1.5,
                color=look.paper if name == middle else look.ink,
                bbox={"boxstyle": "round,pad=0.7", "facecolor": fill, "edgecolor": look.quiet},
            )  # fmt: skip
        for start, end in arrows:
            axes.annotate(
                "", xy=boxes_at[end][:2], xytext=boxes_at[start][:2],
                arrowprops={
                    "arrowstyle": "-|>", "color": look.quiet, "linewidth": 1.1, "shrinkA": 3, "shrinkB": 3,
                    "patchA": boxes[start].get_bbox_patch(), "patchB": boxes[end].get_bbox_patch(),
                },
            )  # fmt: skip
    return picture


_NODES = ("new server", "coordinator", "servers", "workers")
_STEPS = (
    ((1, 0), "starts it, with an id"),
    ((0, 1), "registers: INC_SERVER"),
    ((1, 1), "best fit: which blocks move"),
    ((1, 2), "clock"),
    ((1, 3), "clock"),
    ((2, 1), "version"),
    ((3, 1), "version"),
    ((2, 0), "blocks, as they are at the clock"),
    ((0, 1), "all blocks are here"),
    ((1, 3), "next base, with the map of all servers"),
)
"""By step of a change: sender and receiver, by position in `_NODES`, and the message."""
_CLOCK_AFTER = 7
"""Number of steps before the clock."""


def _servers(*, dark: bool) -> Picture:
    """Draw the messages by which a server joins."""
    picture = Picture(9, 4.4, title="A merge server joins a running job", dark=dark)
    with picture.drawing() as look:
        axes = picture.figure.subplots()
        axes.set_axis_off()
        axes.set_xlim(-0.5, 3.5)
        axes.set_ylim(-len(_STEPS) - 0.4, 0.5)
        for x, name in enumerate(_NODES):
            axes.plot(
                [x, x], [-0.3, -len(_STEPS) - 0.2], color=look.quiet, linewidth=1, zorder=0
            )
            _box(axes, look, (x - 0.3, -0.3), (0.6, 0.6), name)
        clock = -_CLOCK_AFTER - 0.45
        axes.plot([-0.45, 3.45], [clock, clock], color=look.champion, linestyle=(0, (3, 2)))
        axes.text(
            3.47,
            clock + 0.12,
            "clock",
            color=look.champion,
            size=9,
            ha="right",
            va="bottom",
        )
        axes.plot(
            [3, 3], [clock, -len(_STEPS)], color=look.champion, linewidth=5, alpha=0.4
        )
        axes.text(3.05, clock - 0.9, "pause", color=look.champion, size=9, va="center")
        for number, ((sender, receiver), text) in enumerate(_STEPS, 1):
            is_sent = sender != receiver
            if is_sent:
                _arrow(axes, (sender, -number), (receiver, -number), color=look.quiet)
            axes.text(
                (sender + receiver) / 2, -number + 0.1 * is_sent, f"{number}. {text}",
                ha="center", va="bottom" if is_sent else "center", size=8.5, color=look.ink,
                bbox={"facecolor": look.paper, "edgecolor": "none", "pad": 1.0},
            )  # fmt: skip
    return picture


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
