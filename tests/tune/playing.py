"""Play a sequence of calls of a scheduler, and compare each answer with what a data file says.

A case begins with ``== NAME``. Its first line is a scheduler with arguments: those of a `Setting`, a
``limit`` of the number of trials, and those of the scheduler. Each further line is a call for some trials::

    ask 4 5 3 to 3 from 1              the next three jobs, which resume these trials at resource 1
    ask 2 to 9 from 0@2                a job that begins with a checkpoint of another trial
    ask nothing                        there is no job
    report 0-2 at 1: 2 1 5 -> CONTINUE CONTINUE STOP
    end 3 at 3: 0.5 -> TERMINATED 2 3 6, PAUSED 4
    fail 0-6 -> nothing                no other trial changes
    restore                            the scheduler continues from its state
    done                               the scheduler will have no other job

A single loss, or answer, is that of all calls of its line. A state without trials is that of the trial
itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from onlineauto.tune import SCHEDULERS, SEARCHERS, Float, Scheduler, Searcher, Setting, Space, Suggestion

SPACE = Space({"x": Float(0, 1), "y": Float(0, 1)})
FOLDER = Path(__file__).with_name("sequences")


def read_cases(name: str) -> dict[str, list[str]]:
    """Return the lines of each case of a data file."""
    cases: dict[str, list[str]] = {}
    for line in (FOLDER / name).read_text("utf-8").splitlines():
        if line.startswith("== "):
            cases[line[3:]] = lines = []
        elif line and not line.startswith("#"):
            lines.append(line)
    return cases


def numbers(words: str) -> list[int]:
    """Return the numbers of words such as ``0-3 7``; a range may fall.

    >>> numbers("0-3 7 5-4")
    [0, 1, 2, 3, 7, 5, 4]
    """
    found: list[int] = []
    for word in words.split():
        first, _, last = word.partition("-")
        begin, end = int(first), int(last or first)
        found += range(begin, end + 1) if end >= begin else range(begin, end - 1, -1)
    return found


def begun(scheduler: Scheduler, *, limit: int | None = None, space: Space = SPACE, **ladder: int) -> Searcher:
    """Begin a scheduler, and return a searcher of random configs."""
    searcher = SEARCHERS["random"]()
    searcher.begin(space, seed=0)
    searcher.limit = limit
    scheduler.begin(Setting(space=space, **ladder))
    return searcher


def next_jobs(scheduler: Scheduler, searcher: Searcher, count: int = 1) -> list[Suggestion]:
    """Return the next jobs, up to a number."""
    return [job for _ in range(count) if (job := scheduler.suggest(searcher)) is not None]


def falling(trial: int, level: int) -> float:
    """Return a loss whose order changes with the level."""
    return float((trial * 11 + 5) % 29) - (trial % 4) * level


def run_queue(
    scheduler: Scheduler,
    searcher: Searcher,
    count: int,
    loss: Callable[[int, int], float],
    *,
    workers: int = 1,
    fails: bool = False,
) -> list[Suggestion]:
    """Run jobs in the order in which they began; return them. With `fails`, trials 3, 13, 23, … fail."""
    jobs: list[Suggestion] = []
    ended = 0
    while ended < count:
        jobs += next_jobs(scheduler, searcher, ended + workers - len(jobs))
        job = jobs[ended]
        ended += 1
        if fails and job.trial % 10 == 3:
            scheduler.on_error(job.trial)
        else:
            scheduler.on_result(job.trial, job.resource, loss(job.trial, job.resource))
    return jobs[:count]


def play(lines: list[str]) -> None:
    """Make the calls of a case and compare the answers."""
    name, *words = lines[0].split()
    options: dict[str, Any] = {}
    for key, _, text in (word.partition("=") for word in words):
        options[key] = json.loads(text) if text.replace(".", "").isdecimal() else text
    limit = options.pop("limit", None)
    ladder = {key: options.pop(key) for key in ("min_resource", "max_resource", "eta") if key in options}
    scheduler = SCHEDULERS[name](**options)
    searcher = begun(scheduler, limit=limit, **ladder)
    for line in lines[1:]:
        call, _, words_of_call = line.partition(" ")
        if call == "restore":
            state = json.loads(json.dumps(scheduler.state_dict()))
            scheduler = SCHEDULERS[name](**options)
            begun(scheduler, **ladder)
            scheduler.load_state_dict(state)
        elif call == "done":
            assert scheduler.is_done
        elif call == "ask":
            expected = _jobs(words_of_call)
            jobs = [scheduler.suggest(searcher) for _ in expected]
            assert [job and (job.trial, job.resource, job.resume_from) for job in jobs] == expected, line
        else:
            _call(scheduler, call, words_of_call, line)


def _jobs(words: str) -> list[tuple[int, int, tuple[int, int] | None] | None]:
    """Return the jobs of an ``ask``."""
    if words == "nothing":
        return [None]
    trials, _, rest = words.partition(" to ")
    resource, _, origin = rest.partition(" from ")
    donor, _, step = origin.rpartition("@")
    return [
        (trial, int(resource), (int(donor or trial), int(step)) if origin else None)
        for trial in numbers(trials)
    ]


def _call(scheduler: Scheduler, call: str, words: str, line: str) -> None:
    """Make the calls of a ``report``, an ``end`` or a ``fail``."""
    words, _, answer = words.partition(" -> ")
    place, _, loss_words = words.partition(": ")
    trials, _, steps = place.partition(" at ")
    pairs = [(trial, step) for trial in numbers(trials) for step in numbers(steps or "0")]
    losses = {
        "falling": [falling(*pair) for pair in pairs],
        "-trial": [-float(trial) for trial, _ in pairs],
    }.get(loss_words) or _spread([float(word) for word in (loss_words or "0").split()], len(pairs))
    if call == "report":
        found = [scheduler.on_report(*pair, loss) for pair, loss in zip(pairs, losses, strict=True)]
        assert found == _spread(answer.split(), len(pairs)), line
        return
    changes = [
        scheduler.on_error(trial) if call == "fail" else scheduler.on_result(trial, step, loss)
        for (trial, step), loss in zip(pairs, losses, strict=True)
    ]
    if answer == "nothing":
        assert not any(changes), line
    elif answer.isalpha():
        assert changes == [{trial: answer} for trial, _ in pairs], line
    elif answer:
        groups = (group.partition(" ") for group in answer.split(", "))
        assert changes == [{trial: state for state, _, group in groups for trial in numbers(group)}], line


def _spread(values: list[Any], count: int) -> list[Any]:
    """Return a value for each call."""
    return values * count if len(values) == 1 else values
