"""`AutoMLClassifier` with its defaults beside CapyMOA's streaming classifiers, on real and generated streams.

    python -m bench.regression.moa --capymoa PYTHON [--events N] [--seeds N] [--streams NAME ...]
        [--learners NAME ...]

PYTHON is the interpreter of an environment with ``pip install capymoa``, which needs Java. Each event is
predicted and then learnt. All learners read the same ARFF file: the events of committed logs and of river's
sets in their own order, and of MOA's generators. CapyMOA's learners have their defaults (100 trees in a
forest), and are told all classes at first. Printed are the share of right labels, Cohen's kappa, and µs to
predict and learn an event by wall clock and processor; CapyMOA's times include reading the file.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from operator import eq
from pathlib import Path
from typing import Any

from bench import kit
from bench.peer_process import ask
from bench.quality.logs import load
from bench.regression.learners import CLASSIFICATIONS, Stream
from bench.regression.table_worker import table
from onlineauto import AutoMLClassifier

WORKER = Path(__file__).with_name("moa_worker.py")


def _log(name: str) -> Stream:
    """Return the events of a committed log, with the best action as the label."""
    log = load(f"{name}-u")
    shared = (event.split(b"\n", 1)[0].decode().removeprefix("shared ") for event in log.events)
    lines = (re.sub(" na(?= |$)", "", line) for line in shared)
    rows, labels = table([f"{n} {line}" for n, line in zip(log.rewards.argmax(axis=1), lines, strict=True)])
    return [(row, f"class{label:.0f}") for row, label in zip(rows, labels, strict=True)]


LOGS = ("surveys-n", "flights", "weather", "storms", "letter-n", "satimage")
SETS = {name.removesuffix("-n"): partial(_log, name) for name in LOGS} | CLASSIFICATIONS
_RBF = {"number_of_classes": 5, "number_of_drifting_centroids": 50}
_PLANE = {"number_of_drifting_attributes": 10, "magnitude_of_change": 1e-3}
GENERATED: dict[str, list[tuple[str, dict[str, float]]]] = {
    "random tree": [("RandomTreeGenerator", {})],
    "RBF": [("RandomRBFGenerator", {"number_of_classes": 5})],
    "RBF, moderate drift": [("RandomRBFGeneratorDrift", _RBF | {"magnitude_of_change": 1e-4})],
    "RBF, fast drift": [("RandomRBFGeneratorDrift", _RBF | {"magnitude_of_change": 1e-3})],
    "hyperplane, drift": [("HyperPlaneClassification", _PLANE)],
    "SEA, 3 drifts": [("SEA", {"function": n}) for n in (1, 2, 3, 4)],
    "Agrawal, 3 drifts": [("AgrawalGenerator", {"classification_function": n}) for n in (1, 3, 5, 7)],
    "LED, 3 drifts": [("LEDGeneratorDrift", {"number_of_attributes_with_drift": n}) for n in (1, 3, 5, 7)],
}
"""MOA's generators, one for each part of the stream."""
STREAMS = (*SETS, *GENERATED)
PEERS = {
    "CapyMOA ARF": "AdaptiveRandomForestClassifier",
    "CapyMOA SRP": "StreamingRandomPatches",
    "CapyMOA HAT": "HoeffdingAdaptiveTree",
    "naive Bayes": "NaiveBayes",
    "majority": "MajorityClass",
    "no change": "NoChange",
}
SEEDED = ("onlineauto", "CapyMOA ARF", "CapyMOA SRP")
LEARNERS = ("onlineauto", *PEERS)


def write_arff(stream: Stream, path: Path) -> None:
    """Write a stream; a column of words is nominal, and a feature that an event lacks is missing."""
    rows = [{**row, "class": str(label)} for row, label in stream]
    rows = [{n: re.sub(r"[^\w.+-]", "_", str(value)) for n, value in row.items()} for row in rows]
    names = dict.fromkeys(name for row, _ in stream for name in row)
    lines = ["@relation stream"]
    for number, name in enumerate((*names, "class")):
        words = sorted({row[name] for row in rows if name in row})
        nominal = name == "class" or any(isinstance(row.get(name), str) for row, _ in stream)
        lines.append(f"@attribute x{number} " + (f"{{{','.join(words)}}}" if nominal else "numeric"))
    lines += ["@data", *(",".join(row.get(name, "?") for name in (*names, "class")) for row in rows)]
    path.write_text("\n".join(lines) + "\n", "utf-8")


def read_arff(path: Path) -> Stream:
    """Read a stream; the label is the last column."""
    head, _, body = path.read_text("utf-8").partition("@data")
    found = [line.split() for line in head.splitlines() if line.startswith("@attribute")]
    names, kinds = [words[1] for words in found], [words[2] for words in found]
    stream: Stream = []
    for *words, label in (line.split(",") for line in body.split()):
        cells = zip(names, kinds, words, strict=False)
        row = {n: float(word) if kind == "numeric" else word for n, kind, word in cells if word != "?"}
        stream.append((row, label))
    return stream


def run_ours(stream: Stream, seed: int) -> dict[str, float]:
    """Predict and learn each event."""
    model, predictions = AutoMLClassifier(seed=seed), []
    wall, cpu = time.perf_counter(), time.process_time()
    for features, label in stream:
        predictions.append(model.predict(features) if model.labels else None)
        model.learn(features, label)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    labels = [label for _, label in stream]
    right = sum(map(eq, predictions, labels)) / len(stream)
    counts, predicted = Counter(labels), Counter(predictions)
    chance = sum(counts[label] * predicted[label] for label in counts) / len(stream) ** 2
    return {"right": right, "kappa": (right - chance) / (1 - chance), "wall": wall, "cpu": cpu}


def runs_of(given: Namespace) -> Iterator[dict[str, Any]]:
    """Run all learners on each stream."""
    with tempfile.TemporaryDirectory() as folder:
        for name in given.streams:
            path = Path(folder) / "stream.arff"
            if name in SETS:
                write_arff(SETS[name]()[: given.events], path)
            else:
                ask(given.capymoa, WORKER, file=str(path), parts=GENERATED[name], events=given.events)
            stream = read_arff(path)
            for seed in range(1, given.seeds + 1):
                learners = [each for each in given.learners if seed == 1 or each in SEEDED]
                peers = [PEERS[each] for each in reversed(learners) if each in PEERS]
                found = ask(given.capymoa, WORKER, file=str(path), learners=peers, seed=seed)
                for learner in learners:
                    run = found[PEERS[learner]] if learner in PEERS else run_ours(stream, seed)
                    times = {f"{clock} µs": 1e6 * run.pop(clock) / len(stream) for clock in ("wall", "cpu")}
                    yield {"stream": name, "learner": learner, "seed": seed, **run, **times}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each run."""
    given = kit.parser(
        __doc__,
        capymoa=kit.Option(sys.executable, "the interpreter of an environment with CapyMOA"),
        events=kit.Option(10_000, "the first events of each stream"),
        seeds=kit.Option(1, "seeds of the learners that have one"),
        streams=kit.Option([*STREAMS], choices=STREAMS),
        learners=kit.Option([*LEARNERS], choices=LEARNERS),
        json=str,
    ).parse_args(arguments)
    kit.write_json(given.json, {"runs": kit.printed(runs_of(given))})


if __name__ == "__main__":
    main()
