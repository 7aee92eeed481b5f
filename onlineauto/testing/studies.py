"""The conformance suites of studies: schedulers, searchers and stores."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from math import inf, isnan, nan
from random import Random
from typing import TYPE_CHECKING, Any

from onlineauto.tune.schedulers import Decision, Setting, State
from onlineauto.tune.searchers import SEARCHERS
from onlineauto.tune.spaces import Categorical, Float, Int, Space
from onlineauto.tune.store import Claim, LeaseLost, StudySnapshot
from onlineauto.tune.trial import may_become

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from onlineauto.tune.schedulers import Scheduler, Suggestion
    from onlineauto.tune.searchers import Searcher
    from onlineauto.tune.store import Record, Store

_SPACE = Space(
    {
        "rate": Float(1e-3, 1, log=True),
        "depth": Int(1, 9),
        "loss": Categorical(["squared", "logistic", "hinge"]),
        "margin": Float(0, 1, when={"loss": "hinge"}),
    }
)
_STEPS = 250

_SPACES = (
    Space({"x": Float(-1, 1)}),
    Space({"one": Categorical(["only"]), "n": Int(3, 3)}),
    Space(
        {
            "rate": Float(1e-6, 1e3, log=True),
            "n": Int(1, 1000, log=True),
            "yes": Categorical([False, True]),
            "loss": Categorical(["a", "b", "c", None]),
            "margin": Float(0, 1, when={"loss": ["a", "b"], "yes": True}),
            "steps": Int(0, 3, when={"margin": [0.0]}),
        }
    ),
)
_CONFIGS = 60

_STUDY = {"kind": "study", "settings": {"space": {"x": [1, 2.5, None, True, "é"]}}}
_LONG = 3600.0


def check_store(make: Callable[[], Store], *, pass_time: Callable[[float], None], threads: int = 4) -> None:
    """Check a store against the requirements of a study.

    The log keeps its records unchanged and in order; a study begins once. A claim passes all records written
    before to its function, and is written atomically. No two claims get the same job. An owner whose lease
    has expired cannot write. Snapshots never go back.

    Parameters
    ----------
    make : callable
        Returns a store without records.
    pass_time : callable
        Advances the time by a number of seconds for the leases of the latest store.
    threads : int
        Number of threads that claim at the same time.

    Raises
    ------
    AssertionError
        If a requirement is violated; the message names the requirement.

    Examples
    --------
    >>> from onlineauto.tune.store import MemoryStore
    >>> now = [0.0]
    >>> def pass_time(seconds):
    ...     now[0] += seconds
    >>> check_store(lambda: MemoryStore(lambda: now[0]), pass_time=pass_time)
    """
    _check_log(make())
    _check_claims(make())
    _check_leases(make(), pass_time)
    _check_threads(make(), threads)
    _check_snapshots(make())


def _job_record(trial: int, attempt: int = 0, owner: str = "a") -> Record:
    config = {"x": 0.1, "word": "é"}
    return {
        "kind": "asked",
        "trial": trial,
        "attempt": attempt,
        "owner": owner,
        "config": config,
        "resource": 3,
        "resume_from": [0, 1],
    }


def _value_record(trial: int, value: float, attempt: int = 0) -> Record:
    return {"kind": "told", "trial": trial, "attempt": attempt, "resource": 3, "value": value}


def _claim(store: Store, trial: int, attempt: int = 0, owner: str = "a", lease: float = _LONG) -> Claim:
    store.claim(owner, lease, after=0, decide=lambda _: _job_record(trial, attempt, owner))
    return Claim(trial, attempt, owner)


def _check_log(store: Store) -> None:
    assert list(store.load()) == [], "a new store has records"
    assert store.begin(_STUDY) == _STUDY, "begin does not return the record that it wrote"
    other = {"kind": "study", "settings": {}}
    assert store.begin(other) == _STUDY, "begin does not return record 1 of a study that exists"
    version = store.append({"kind": "enqueued", "config": {"x": -inf}})
    assert version == 2, f"the second record has version {version}"
    assert list(store.load())[1]["config"]["x"] == -inf, "an infinite number is changed"
    store.append({"kind": "enqueued", "config": {"x": nan}})
    assert isnan(next(iter(store.load(2)))["config"]["x"]), "NaN is changed"


def _check_claims(store: Store) -> None:
    store.begin(_STUDY)
    seen: list[int] = []

    def decide(new: Sequence[Record]) -> Record | None:
        seen.append(len(new))
        return _job_record(0)

    after = store.claim("a", _LONG, after=0, decide=decide)
    assert seen == [1], "decide is called with all records after a version, once"
    assert list(after) == [_STUDY, _job_record(0)], f"claim returns {after}"
    assert list(store.load()) == list(after), "a claim is not in the log"
    assert not store.claim("a", _LONG, after=2, decide=lambda _: None), "a record without a job"
    idle = {"kind": "idle"}
    assert list(store.claim("a", _LONG, after=2, decide=lambda _: idle)) == [idle], "idle is not written"
    claim = Claim(0, 0, "a")
    reported = {"kind": "reported", "trial": 0, "attempt": 0, "step": 1, "value": 0.1}
    assert store.commit(claim, reported) == 4, "commit does not return the version"
    store.append({"kind": "named", "trainable": "a:b"})
    again = store.commit(claim, reported)
    of_itself = again > 0 and list(store.load(again - 1)) == [reported]
    assert again == 0 or of_itself, "a step that is reported again has the version of another record"
    version = len(store.load())
    assert store.commit(claim, _value_record(0, inf)) == version + 1, "commit does not return the version"
    committed = [record for record in store.load(3) if record["kind"] != "named"]
    assert committed[:1] + committed[-1:] == [reported, _value_record(0, inf)], (
        "what was committed is changed"
    )
    _check_lost(store, lambda: store.commit(claim, _value_record(0, 2.0)), "recorded twice")

    def fails(new: Sequence[Record]) -> Record | None:
        raise KeyError(len(new))

    before = list(store.load())
    try:
        store.claim("a", _LONG, after=0, decide=fails)
    except KeyError:
        pass
    else:
        raise AssertionError("an error of decide is lost")
    assert list(store.load()) == before, "a claim is written though decide raised"


def _check_leases(store: Store, pass_time: Callable[[float], None]) -> None:
    store.begin(_STUDY)
    short, renewed, failing = (_claim(store, trial, lease=2.0) for trial in range(3))
    pass_time(1.2)
    assert list(store.heartbeat([renewed, short], 100.0)) == [], "a valid lease is reported as lost"
    store.heartbeat([short], 2.0)
    store.fail(failing, {"kind": "failed", "trial": 2, "attempt": 0, "why": "é", "final": True})
    pass_time(3.0)
    expired = {"kind": "expired", "trial": 0, "attempt": 0}
    records: list[Record] = []
    store.claim("b", _LONG, after=0, decide=records.extend)
    assert records[-1] == expired, "an expired lease is not recorded before decide is called"
    assert [record["kind"] for record in records].count("expired") == 1, "more than one lease expired"
    assert list(store.heartbeat([short, renewed], 100.0)) == [short], "heartbeat does not return lost claims"
    _check_lost(
        store, lambda: store.commit(short, _value_record(0, 1.0)), "recorded after the lease was lost"
    )
    _check_lost(store, lambda: store.fail(short, _value_record(0, 1.0)), "failed after the lease was lost")
    again = _claim(store, 0, attempt=1, owner="b")
    _check_lost(
        store, lambda: store.commit(short, _value_record(0, 1.0)), "recorded while another worker has the job"
    )
    _check_lost(
        store, lambda: store.commit(Claim(0, 1, "a"), _value_record(0, 1.0, 1)), "recorded by another owner"
    )
    store.commit(again, _value_record(0, 1.0, 1))


def _check_lost(store: Store, write: Callable[[], Any], action: str) -> None:
    before = list(store.load())
    try:
        write()
    except LeaseLost:
        pass
    else:
        raise AssertionError(f"no LeaseLost: {action}")
    assert list(store.load()) == before, f"something was written: {action}"


def _check_threads(store: Store, threads: int) -> None:
    """Let several threads number jobs by the records in the log; a repeated number is a double claim."""
    store.begin(_STUDY)
    each = 10

    def claim(owner: str) -> None:
        for _ in range(each):
            store.claim(owner, _LONG, after=0, decide=lambda new: _job_record(len(new), owner=owner))

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(claim, [f"owner {number}" for number in range(threads)]))
    trials = [record["trial"] for record in store.load(1)]
    assert trials == list(range(1, threads * each + 1)), f"claims are lost or double: {trials}"


def _check_snapshots(store: Store) -> None:
    assert store.snapshot() is None, "a new store has a snapshot"
    store.begin(_STUDY)
    newer = StudySnapshot(7, {"a": [1.5, None, inf]})
    store.save(newer)
    store.save(StudySnapshot(3, {}))
    assert store.snapshot() == newer, "the newest snapshot is not kept as it is"


def check_searcher(make: Callable[[], Searcher]) -> None:
    """Check a searcher against the requirements of a study, in several spaces.

    Configs are in the space. An enqueued config comes first. The same calls give the same configs, also after
    the state was written as JSON and loaded into a new object. A searcher that repeats the proposals of
    another one then has the same state. The limit on trials is not exceeded. After the last config there are
    no more.

    Parameters
    ----------
    make : callable
        Returns a new searcher without a study, registered or not.

    Raises
    ------
    AssertionError
        If a requirement is violated; the message names the requirement and the space.

    Examples
    --------
    >>> from onlineauto.tune import SEARCHERS
    >>> check_searcher(SEARCHERS["random"])
    """
    for space, seed in product(_SPACES, (0, 2**63)):
        where = f"{make().name}, seed {seed}, space {space.described()}"
        _check(make, space, seed, where)


def _check(make: Callable[[], Searcher], space: Space, seed: int, where: str) -> None:
    def make_searcher() -> Searcher:
        searcher = make()
        searcher.begin(space, seed=seed)
        searcher.limit = _CONFIGS
        return searcher

    random = Random(seed)
    first, second, repeating = make_searcher(), make_searcher(), make_searcher()
    enqueued = space.decode([0.25] * space.width)
    for each in (first, second, repeating):
        each.enqueue(enqueued)
    ended = False
    for number in range(_CONFIGS + 2):
        config = first.ask()
        assert config == second.ask(), f"the same calls give other configs: {where}"
        with repeating.repeating(config):
            assert repeating.ask() == config, f"does not repeat a config: {where}"
        assert first.state_dict() == repeating.state_dict(), f"repeating leads to another state: {where}"
        assert number > 0 or config == enqueued, f"the config that was enqueued does not come first: {where}"
        assert config is None or not ended, f"proposes a config after it had no more: {where}"
        if config is None:
            ended = True
            continue
        assert space.check(config) == config, f"the names of a config are not in order: {config}; {where}"
        kind, loss = random.random(), random.choice([random.random(), 0.5, inf, -inf])
        for each in (first, second, repeating):
            if kind < 0.2:
                each.on_error(config)
            elif kind < 0.9:
                each.on_result(config, 1, loss)
                each.on_result(config, 3, loss / 2)
        if random.random() < 0.2:
            first = _restored_copy(make_searcher(), first, where)
    assert ended, f"there are more configs than the limit of {_CONFIGS}: {where}"


def _restored_copy(fresh: Searcher, old: Searcher, where: str) -> Searcher:
    written = json.dumps(old.state_dict())
    fresh.load_state_dict(json.loads(written))
    assert json.dumps(fresh.state_dict()) == written, f"the state is another one after loading: {where}"
    return fresh


def check_scheduler(make: Callable[[], Scheduler]) -> None:
    """Check a scheduler against the requirements of a study, in many simulated studies.

    Jobs end in any order, some with an error or an infinite loss, with one worker and with many. Trials are
    numbered 0, 1, 2, …; their configs are in the space, and their resources in the ladder. Only a paused
    trial is resumed, from a resource that it or another trial has reached. States follow the allowed
    transitions. The same calls give the same answers, also after the state was written as JSON and loaded
    into a new object. With a limit on trials, a study ends; `is_done` is true then, and not before.

    Parameters
    ----------
    make : callable
        Returns a new scheduler without a study, registered or not.

    Raises
    ------
    AssertionError
        If a requirement is violated; the message names the requirement and the study.

    Examples
    --------
    >>> from onlineauto.tune import SCHEDULERS
    >>> check_scheduler(SCHEDULERS["fifo"])
    """
    for seed, workers, limit, errors in product((0, 1), (1, 4, 30), (None, 1, 40), (0.0, 0.2, 1.0)):
        setting = Setting(space=_SPACE, max_resource=27, seed=seed)
        where = f"{make().name}, seed {seed}, {workers} workers, limit {limit}, {errors:.0%} errors"
        _Simulated(make, setting, limit, where).run(workers, errors)


class _Simulated:
    """A study that compares its scheduler with a copy, and replaces it by one with a loaded state."""

    def __init__(
        self, make: Callable[[], Scheduler], setting: Setting, limit: int | None, where: str
    ) -> None:
        self._make, self._setting, self._limit, self._where = make, setting, limit, where
        self._pairs = [self._begin(), self._begin()]
        self._random = Random(setting.seed)
        self._states: dict[int, State] = {}
        self._reached: dict[int, int] = {}
        self._jobs: dict[int, Suggestion] = {}

    def _begin(self) -> tuple[Scheduler, Any]:
        scheduler, searcher = self._make(), SEARCHERS["random"]()
        scheduler.begin(self._setting)
        searcher.begin(self._setting.space, seed=self._setting.seed)
        searcher.limit = self._limit
        return scheduler, searcher

    def run(self, workers: int, errors: float) -> None:
        """Request a job for each free worker, and end random jobs, until the study ends or for a while."""
        for _ in range(_STEPS):
            while len(self._jobs) < workers and self._suggest():
                pass
            if not self._jobs:
                break
            self._end(self._random.choice(sorted(self._jobs)), failed=self._random.random() < errors)
            if self._random.random() < 0.1:
                self._exchange()
        done = self._pairs[0][0].is_done
        self._require(not done or not self._jobs, "is_done is true while jobs run")
        ended = self._limit is None or self._jobs or not self._idle()
        self._require(bool(ended) or done, "there is no job any more, and is_done is false")

    def _idle(self) -> bool:
        return not self._suggest()

    def _suggest(self) -> bool:
        compares = self._random.random() < 0.1  # rarely, because writing a state is slow
        before = self._state_texts() if compares else []
        refusals = self._pairs[0][1].refusals
        job, again = (scheduler.suggest(searcher) for scheduler, searcher in self._pairs)
        self._require(job == again, f"the same calls give {job} and {again}")
        if job is None:
            same = not compares or self._pairs[0][1].refusals > refusals or before == self._state_texts()
            self._require(
                same,
                "suggest returns None and changes the state without a rejection by the searcher",
            )
            return False
        self._check(job)
        self._states[job.trial] = State.RUNNING
        self._jobs[job.trial] = job
        return True

    def _state_texts(self) -> list[str]:
        return [json.dumps(scheduler.state_dict()) for scheduler, _ in self._pairs]

    def _check(self, job: Suggestion) -> None:
        self._setting.space.check(job.config)
        low, high = 1, self._setting.max_resource
        self._require(low <= job.resource <= high, f"the resource is not from {low} to {high}: {job}")
        if job.trial not in self._states:
            self._require(job.trial == len(self._states), f"new trials are not numbered in order: {job}")
        else:
            state = self._states[job.trial]
            self._require(state is State.PAUSED, f"a trial is resumed that is {state}: {job}")
            self._require(job.resume_from is not None, f"a trial is resumed from nothing: {job}")
        if job.resume_from is not None:
            trial, resource = job.resume_from
            self._require(trial in self._states, f"resumes from an unknown trial: {job}")
            self._require(
                resource <= self._reached.get(trial, 0), f"resumes from what was not reached: {job}"
            )
            self._require(resource < job.resource, f"resumes from all there is to do: {job}")
        self._require(self._limit is None or job.trial < self._limit, f"more trials than there may be: {job}")

    def _end(self, trial: int, *, failed: bool) -> None:
        """Report some steps, and end a job."""
        job = self._jobs.pop(trial)
        resource = job.resume_from.resource if job.resume_from else 0
        losses = [self._random.choice([self._random.random(), 1.0, inf]) for _ in range(job.resource)]
        while resource < job.resource:
            resource += 1
            self._reached[trial] = max(self._reached.get(trial, 0), resource)
            answers = [pair[0].on_report(trial, resource, losses[resource - 1]) for pair in self._pairs]
            self._require(answers[0] is answers[1], "the same reports give other decisions")
            if answers[0] is Decision.STOP:
                break
        if failed:
            changes = [scheduler.on_error(trial) for scheduler, _ in self._pairs]
            self._states[trial] = State.ERRORED
        else:
            changes = [
                scheduler.on_result(trial, resource, losses[resource - 1]) for scheduler, _ in self._pairs
            ]
            self._require(trial in changes[0], f"on_result does not say what becomes of trial {trial}")
        self._require(changes[0] == changes[1], "the same results give other states")
        for changed, state in changes[0].items():
            before = self._states[changed]
            legal = before is state or may_become(before, state)
            self._require(legal, f"trial {changed} is {before}, which cannot become {state}")
            self._states[changed] = state

    def _exchange(self) -> None:
        """Load the states of the two schedulers, through JSON, into new ones."""
        scheduler, searcher = self._pairs[0]
        written = json.dumps(scheduler.state_dict()), json.dumps(searcher.state_dict())
        fresh = self._begin()
        for part, text in zip(fresh, written, strict=True):
            part.load_state_dict(json.loads(text))
        self._require(
            json.dumps(fresh[0].state_dict()) == written[0], "the state is another one after loading"
        )
        self._pairs[0] = fresh

    def _require(self, condition: bool, message: str) -> None:
        if not condition:
            raise AssertionError(f"{message}; {self._where}")
