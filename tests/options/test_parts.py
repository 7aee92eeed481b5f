"""Parts of users: ``register``, ``--import`` and entry points, for all seven kinds."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onlineauto import AutoML, OptionError
from onlineauto.automl.config import Config
from onlineauto.automl.oracles import ORACLES, register
from onlineauto.automl.oracles.neighbours import OneDiff
from onlineauto.automl.oracles.oracle import Oracle
from onlineauto.automl.priorities import PRIORITIES, NoPriority
from onlineauto.cli.main import main
from onlineauto.cluster import POLICIES, Fair
from onlineauto.engine.ensemble.registry import MEMBERS
from onlineauto.explorers import EXPLORERS
from onlineauto.options import Parts
from onlineauto.tune import SCHEDULERS, SEARCHERS, Float, Searcher, Study, Suggestion
from onlineauto.tune.schedulers.fifo import FifoScheduler
from onlineauto.tune.searchers.random import RandomSearcher
from onlineauto.work.imports import IMPORTED
from onlineauto.workspace.options import REGISTRY
from tests.processes import python

KINDS: tuple[Parts[Any], ...] = (*(EXPLORERS, MEMBERS, ORACLES, PRIORITIES, SCHEDULERS, SEARCHERS, POLICIES),)
MODULE = """
from onlineauto.automl.oracles import register as register_oracle
from onlineauto.automl.oracles.neighbours import OneDiff
from onlineauto.automl.priorities import NoPriority, register as register_priority
from onlineauto.cluster.policies import Fair, register as register_policy
from onlineauto.tune.schedulers import register as register_scheduler
from onlineauto.tune.schedulers.fifo import FifoScheduler
from onlineauto.tune.searchers import register as register_searcher
from onlineauto.tune.searchers.random import RandomSearcher
class Oracle(OneDiff): name = "own_oracle"
class Priority(NoPriority): name = "own_priority"
class Scheduler(FifoScheduler): name = "own_scheduler"
class Searcher(RandomSearcher): name = "own_searcher"
class Policy(Fair): name = "own_policy"
def loss(config): return config["x"] ** 2
"""
REGISTRATION = """
register_oracle(Oracle())
register_priority(Priority())
register_scheduler(Scheduler)
register_searcher(Searcher)
register_policy(Policy)
"""
EVENTS = "".join(
    f"shared |u {'ab'[i % 2]}\n0:{float((i % 2) != (i % 3) % 2)}:0.5 |t x\n|t y\n\n" for i in range(60)
)
FILES = [
    "--oracle_type",
    "own_oracle",
    "--priority_type",
    "own_priority",
    "--cb_explore_adf",
    "--automl",
    "2",
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder, the working directory, with a module of own parts, which are forgotten afterwards."""
    before = [{*kind} for kind in KINDS]
    (tmp_path / "own_parts.py").write_text(MODULE + REGISTRATION)
    (tmp_path / "space.toml").write_text('x = {type = "float", low = -1, high = 1}\n')
    (tmp_path / "events.txt").write_text(EVENTS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    sys.modules.pop("own_parts", None)
    IMPORTED.clear()
    for kind, names in zip(KINDS, before, strict=True):
        for name in {*kind} - names:
            kind.unregister(name)
    monkeypatch.undo()
    for kind in KINDS:
        kind._entry_points = None


def forgotten() -> None:
    """Forget the parts of the module of the fixture, like a new process."""
    sys.modules.pop("own_parts", None)
    for kind in KINDS:
        for name in [name for name in kind if name.startswith("own_")]:
            kind.unregister(name)


class Unfinished(FifoScheduler):
    """A scheduler without a method."""

    name = "unfinished"

    @abstractmethod
    def suggest(self, searcher: Searcher) -> Suggestion | None: ...


class Demanding(RandomSearcher):
    """A searcher that cannot be constructed by its name."""

    name = "demanding"

    def __init__(self, size: int) -> None:
        self.options = {"size": size}


class Nameless(Oracle):
    """An oracle without a name."""

    def propose(self, *_: Any, **__: Any) -> Sequence[Config]:
        return []


class Reserved(Fair):
    """A policy with the name of one that a `Cluster` makes."""

    name = "learned"


@pytest.mark.parametrize(
    ("kind", "part", "message"),
    [
        (SCHEDULERS, Unfinished, "the scheduler Unfinished has no suggest, which every Scheduler defines"),
        (SCHEDULERS, FifoScheduler(), "register the class FifoScheduler, not a FifoScheduler"),
        (SCHEDULERS, FifoScheduler, "there is a scheduler fifo already"),
        (SEARCHERS, Demanding, "the searcher Demanding cannot be constructed by its name: .*'size'"),
        (SEARCHERS, FifoScheduler, "FifoScheduler is no Searcher: a searcher is a subclass of Searcher"),
        (ORACLES, Nameless(), "the oracle Nameless has no name"),
        (ORACLES, Nameless, r"register an object, Nameless\(\), not the class"),
        (PRIORITIES, NoPriority(), "there is a priority none already"),
        (POLICIES, Reserved, "there is a policy learned already"),
        (EXPLORERS, 3, "int is no Explorer: an explorer is a subclass of Explorer"),
        (MEMBERS, "waves", "str is no EnsembleLearner"),
    ],
)
def test_an_invalid_part_is_rejected_with_what_is_missing(kind: Parts[Any], part: Any, message: str) -> None:
    before = {*kind}
    with pytest.raises(OptionError, match=message):
        kind.register(part)
    assert {*kind} == before


def test_every_kind_registers_by_one_class() -> None:
    assert all(isinstance(kind, Parts) for kind in KINDS)
    assert len({kind.group for kind in KINDS}) == 7
    with pytest.raises(OptionError, match="no oracle one_diff was registered"):
        ORACLES.unregister("one_diff")


def test_a_model_has_a_registered_oracle_and_loads_only_with_it(folder: Path) -> None:
    class Mine(OneDiff):
        name = "own_mine"

    assert register(oracle := Mine()) is oracle
    bandit = AutoML(oracle_type="own_mine", live_configs=2, seed=3)
    other = AutoML(oracle_type="one_diff", live_configs=2, seed=3)
    for model in (bandit, other):
        model.fit(EVENTS.encode())
        model.save(folder / f"{model is bandit}.model")
    actions = [{"t": "x"}, {"t": "y"}]
    np.testing.assert_array_equal(bandit.predict({"u": "a"}, actions), other.predict({"u": "a"}, actions))
    with pytest.raises(OptionError, match="with --vw_exact: Vowpal Wabbit does not have it"):
        REGISTRY.parse("--cb_explore_adf --automl 2 --vw_exact --oracle_type own_mine")
    AutoML.load(folder / "True.model")
    ORACLES.unregister("own_mine")
    with pytest.raises(Exception, match=r"--oracle_type cannot be own_mine; .* or your own \(--import, or"):
        AutoML.load(folder / "True.model")


def test_import_makes_parts_known_to_every_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = ["--scheduler", "own_scheduler", "--searcher", "own_searcher"]
    store = f"sqlite:///{folder / 's.db'}"
    new = ["tune", "--trainable", "own_parts:loss", "--space", "space.toml", "--max_trials", "3"]
    assert main([*new, *own, "--study", store, "--max_resource", "1"]) == 2
    assert "--scheduler cannot be own_scheduler" in capsys.readouterr().err
    assert main([*new, *own, "--study", store, "--max_resource", "1", "--import", "own_parts.py"]) == 0
    assert capsys.readouterr().out.startswith("best of 3 trials")
    assert main(["learn", "events.txt", *FILES, "--quiet", "-f", "m"]) == 0
    assert main(["simulate", "--policies", "own_policy,fair", "--traces", "2", "--jobs", "2"]) == 0
    assert "own_policy" in capsys.readouterr().out

    forgotten()
    assert main(["worker", "--study", store]) == 2
    error = capsys.readouterr().err
    assert "a custom scheduler 'own_scheduler' of own_parts.py: it needs --import own_parts.py" in error
    assert main(["studies", store]) == 0
    assert "it needs --import own_parts.py" in capsys.readouterr().out
    assert main(["inspect", "m"]) == 1
    assert "--oracle_type cannot be own_oracle" in capsys.readouterr().err

    assert main(["worker", "--import=own_parts", "--study", store]) == 0  # the module, by its name
    assert main(["--import", "own_parts.py", "inspect", "m"]) == 0
    assert "own_oracle" in capsys.readouterr().out


def test_a_study_of_registered_parts_is_continued_from_another_module(folder: Path) -> None:
    store = f"sqlite:///{folder / 's.db'}"
    for module in ("own_parts", "__main__"):
        kinds = [
            type("Mine", (base,), {"name": "own_mine", "__module__": module, "__qualname__": "Mine"})
            for base in (FifoScheduler, RandomSearcher)
        ]
        SCHEDULERS.register(kinds[0])
        SEARCHERS.register(kinds[1])
        study = Study({"x": Float(0, 1)}, "own_mine", "own_mine", max_trials=2, storage=store)
        study.run(lambda config: config["x"], jobs=1)
        forgotten()
    assert len(study.trials) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--import", "nothing.py"], "--import nothing.py: there is no such file"),
        (["--import", "nothing.at_all"], "--import nothing.at_all: there is no module 'nothing' here"),
        (["--import", "json.py"], "--import json.py: there is another module 'json': rename the file"),
        (["--import", ".x"], "--import '.x': give a module, or a file that ends in .py"),
        (["--import"], "--import takes a module, or a file that ends in .py"),
    ],
)
def test_errors_of_import(
    folder: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "json.py").write_text("")
    assert main(["check", "events.txt", *words]) == 2
    assert message in capsys.readouterr().err


def test_workers_of_a_command_use_what_it_imports(folder: Path) -> None:
    words = ["-m", "onlineauto", "learn", str(folder / "events.txt"), *FILES, "--workers", "2", "--quiet"]
    done = python(*words, "--import", str(folder / "own_parts.py"))
    assert not done.stderr.replace("compiling kernels", "").startswith("onlineauto: error")


def test_entry_points_are_imported_when_their_name_is_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "own_parts.py").write_text(f"{MODULE}\nORACLE = Oracle()\n")
    about = folder / "own-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[onlineauto.oracles]\nown_oracle = own_parts:ORACLE\n"
        "[onlineauto.schedulers]\nown_scheduler = own_parts:Scheduler\nown_gone = own_parts:Gone\n"
        "[onlineauto.searchers]\nown_other = own_parts:Searcher\n"
    )
    monkeypatch.syspath_prepend(folder)
    for kind in KINDS:
        kind._entry_points = None
    assert "own_scheduler" in SCHEDULERS.listed
    assert "own_parts" not in sys.modules
    assert main(["learn", "events.txt", *FILES[:2], *FILES[4:], "--quiet"]) == 0
    study = Study({"x": Float(0, 1)}, "own_scheduler", max_trials=2)
    assert study.run(lambda config: config["x"]) is not None
    with pytest.raises(OptionError, match="the scheduler own_gone, own_parts:Gone, cannot be imported"):
        Study({"x": Float(0, 1)}, "own_gone")
    with pytest.raises(OptionError, match=r"own_other of onlineauto\.searchers has another name"):
        Study({"x": Float(0, 1)}, searcher="own_other")
    capsys.readouterr()
    assert main(["tune", "--help"]) == 0
    assert "own_gone" in capsys.readouterr().out
