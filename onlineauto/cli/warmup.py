"""The verb ``warmup``: compile all kernels now, so that the first run does not have to."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from subprocess import CalledProcessError
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from onlineauto.api.classifier import AutoMLClassifier
from onlineauto.cli.terminal import show_compiling
from onlineauto.cli.verb import Verb, VerbOptions
from onlineauto.engine.ensemble.registry import MEMBERS
from onlineauto.engine.search.drift import Drift, make_drift
from onlineauto.engine.stream.source import open_lines
from onlineauto.errors import CompilerError
from onlineauto.estimators.paired import ChampionTest
from onlineauto.evaluation.evaluation import Evaluation
from onlineauto.explorers import EXPLORERS
from onlineauto.explorers.exploration import kernel_of, pmf_address
from onlineauto.explorers.ranking_kernels import ROWS
from onlineauto.formats.blocks.file import SHAPES, problem_of
from onlineauto.formats.datasets.event_table import EventTable, InMemory
from onlineauto.formats.datasets.features import ColumnFeatures, Encoder
from onlineauto.formats.mappings.name_hashes import NameHashes
from onlineauto.formats.options import FORMATS
from onlineauto.interop.dicts import from_dicts
from onlineauto.interop.vw.fields import checksum_of
from onlineauto.jit import cache_directory, watch_compiling
from onlineauto.jit.compiler.build import build_library
from onlineauto.jit.levels import compiles_for
from onlineauto.options import Registry, option
from onlineauto.workspace.options import REGISTRY
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    from onlineauto.options import Configuration

_EVENT = b"shared |a x\n0:-1:0.5 |b y\n|b z\n\n"
_MANY_FEATURES = b"|a " + b" ".join(b"%d" % i for i in range(1100)) + b"\n\n"
_MANY_NAMES = b" ".join(b"|n%d x" % i for i in range(600)) + b"\n\n"
"""Events that exceed the initial size of the buffers."""
_SLOTS = b"ccb shared |a x\nccb action |b y\nccb action |b z\nccb slot 0:-1:0.5 |\nccb slot |\n\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmupOptions(VerbOptions):
    """Options of the verb ``warmup``."""

    cpu: str | None = option(
        None,
        "Compile for another processor than this one: x86-64-v3 runs on most of the last ten years, "
        "x86-64-v2 on all of the last fifteen.",
        metavar="NAME",
    )
    library: str | None = option(
        None,
        "Compile ahead of time, into shared objects that need no compiler; ONLINEAUTO_KERNELS names the "
        "folder to a process that is to use them.",
        metavar="FOLDER",
    )


def run(configuration: Configuration) -> int:
    """Compile all kernels that are not on disk yet, and print their folder."""
    options = configuration[WarmupOptions]
    if options.library is not None:
        try:
            build_library(Path(options.library), [sys.executable, "-m", "onlineauto", "warmup"])
        except CalledProcessError as error:
            raise CompilerError(f"the library is not built: {error.cmd[0]} has failed, see above") from None
        print(f"the library of kernels is in {options.library}")
        return 0
    if options.cpu is not None:
        os.environ |= compiles_for(options.cpu)
    compiled: set[str] = set()
    begin = time.perf_counter()
    with watch_compiling(lambda program, *_: compiled.add(program)), show_compiling():
        warm_up()
    seconds = time.perf_counter() - begin
    if not compiled:
        print(f"the kernels are compiled already, in {cache_directory()}")
    else:
        print(f"compiled the kernels in {seconds:.0f} s, into {cache_directory()}")
    return 0


def warm_up() -> None:
    """Run a small example of everything that needs separate kernels, which compiles them."""
    ensemble = Workspace(cb_explore_adf=True, live_configs=2, lease=1, hash_bits=8, members=",".join(MEMBERS))
    ensemble.fit(8 * _EVENT)
    Workspace(live_configs=2, hash_bits=8, members="linear").fit(b"1 |a x\n")
    following = Workspace(cb_explore_adf=True, live_configs=2, hash_bits=8)
    following.use_threads(2)
    following.fit(128 * _EVENT)
    Workspace(cb_explore_adf=True, live_configs=2, lease=1, hash_bits=8, vw_exact=True).fit(8 * _EVENT)
    sampling = Workspace(cb_explore_adf=True, cb_sample=True).fit(_EVENT)
    at = sampling.learner.task.exploration
    for explorer in EXPLORERS.values():
        pmf_address(explorer, at)
        kernel: Any = kernel_of(type(explorer))
        kernel.address(at, np.zeros(1, np.int32), np.zeros(1, np.float32), np.zeros((ROWS, 1), np.float32))
    for options in ({"bag": 2}, {"regcb": True}):
        Workspace(cb_explore_adf=True, hash_bits=8, **options).fit(_EVENT)
    Workspace(ccb_explore_adf=True, hash_bits=8).fit(_SLOTS)
    Workspace(cb_adf=True, quadratic="aa", hash_seed=1).fit(_MANY_FEATURES + _MANY_NAMES)
    AutoMLClassifier(hash_bits=8).learn({"a": 1}, 1)
    drift = Drift(make_drift())
    drift.alarms(np.ones(100))
    drift.restart()
    for name, text_format in FORMATS.items():
        for _ in open_lines(text_format.example, REGISTRY.from_keywords(**{name: True})):
            pass
    _use_blocks()
    _use_columns()
    _test_and_evaluate()


def _use_blocks() -> None:
    """Learn events from Python values, check them like a file of blocks, hash a field of VW's files."""
    drawing = Workspace(cb_explore_adf=True, cb_sample=True, hash_bits=8, hash_seed=1, ngram="2")
    event = {"actions": [{"a": {"x": 1}}]}
    single = Workspace(cb_explore_adf=True, live_configs=2, lease=1, hash_bits=8)
    for _ in range(3):  # the third event finds what the first two have created, and stops for a decision
        single.learn(event | {"chosen": 0, "cost": -1.0, "probability": 1.0})
    drawing.learn(event)
    drawing.learn("|a x\n|b y\n")
    for block in from_dicts([event], hash_seed=1):
        drawing.learn_block(block)
        problem_of(block, shape=SHAPES["cb_adf"], as_vw=False)
    checksum_of([b"x"])


def _use_columns() -> None:
    """Build a block from columns of texts and of numbers, like from a dataset."""
    encoder = Encoder(NameHashes(), hash_all=False)
    number = encoder.names.namespace("a")
    namespace = encoder.namespace("context", "a")
    hashes = encoder.hashes(b"x=", np.zeros(1, np.uint8), np.array([0, 1]), number)
    texts = ColumnFeatures(namespace, hashes, code=np.zeros(1, np.int32))
    numbers = ColumnFeatures(namespace, hashes, value=np.ones(1, np.float32))
    EventTable.of_rows([texts, numbers], 0, 1, InMemory()).block(0, 1, encoder)


def _test_and_evaluate() -> None:
    """Compare two policies event by event, and evaluate one on a log."""
    test = ChampionTest()
    test.update(1, 0, logged=1, p=0.5, reward=1.0)
    test.update(1, 0, logged=1, p=0.5, reward=1.0, predicted=(1.0, 0.0))
    test.update_difference(0.5)
    test.update_difference(0.5, bound=1.0)
    _ = test.better, test.worse, test.champion
    Evaluation({"policy": Workspace(cb_explore_adf=True, hash_bits=8)}).run(_EVENT)


VERB: Final = Verb(
    Registry((WarmupOptions,)), run, "Usage: onlineauto warmup [options]", "Compile the kernels now."
)
