from __future__ import annotations

import gzip
import hashlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from datasets.chunks import BLOCK, Chunk
from datasets.draws import Draws
from datasets.generate import STREAMS, main, stream, text, write

BANDITS = ("narrow", "wide", "planted", "null", "heavy")
ACTIONS = {"narrow": 8, "wide": 50, "planted": 8, "null": 8, "heavy": 8}
SHARED = {"narrow": "ab", "wide": "abcd", "planted": "abcdefgh", "null": "abcdefgh", "heavy": "ab"}
OWN = {"narrow": "Zc", "wide": "Z", "planted": "Z", "null": "Z", "heavy": "Zc"}

# sha256 of the first 3,000 events with seed 1 (wide: 300). A change here changes everybody's streams.
PINNED = {
    "narrow": "2af32a3d4d4bfcf9a304628e4fb2523a4d3f2f367d5213fe18723ecd29467bd5",
    "wide": "ce4e50020c3a70ed9d2a4d804728e7ed6fe0efd789e0231a5adb69e74eb8724d",
    "planted": "61aea6640670770c42b7275804ba70dad82c82ffff094fede68a211c70c6cbbd",
    "null": "ba9f4f5115c048af39bbc301c0d10159b4504069a0130d379659b01b9abf03f3",
    "heavy": "dffda78d0bfed0e630477547a2c7be2fb358b70f1f8eb70be46d01d24030bd35",
    "regression": "3fbca93fc8e453f305bb447a9ba1304cfa18c911dcebacb9097132da9a23c320",
    "classification": "d73785e1ceef07812a8246e9a3fbbaa64e125970ff1b16b530f2fc64332a546b",
}


def length(kind: str) -> int:
    return 300 if kind == "wide" else 3000


def gathered(kind: str, *, events: int, seed: int = 1) -> list[Chunk]:
    return list(stream(kind, events=events, seed=seed))


@pytest.mark.parametrize("kind", STREAMS)
def test_bytes_are_pinned(kind: str) -> None:
    assert hashlib.sha256(text(kind, events=length(kind))).hexdigest() == PINNED[kind]


@pytest.mark.parametrize("kind", STREAMS)
def test_first_events_do_not_depend_on_the_total(kind: str) -> None:
    whole = text(kind, events=BLOCK + 300)
    for events in (0, 1, 299, BLOCK - 1, BLOCK, BLOCK + 1):
        part = text(kind, events=events)
        assert whole.startswith(part)
        separator = b"\n\n" if kind in BANDITS else b"\n"
        assert part.count(separator) == events


@pytest.mark.parametrize("kind", STREAMS)
def test_a_block_can_be_made_without_those_before_it(kind: str) -> None:
    chunks = gathered(kind, events=2 * BLOCK)
    assert STREAMS[kind](1).block(1, BLOCK).text == chunks[1].text


@pytest.mark.parametrize("kind", STREAMS)
def test_seeds_differ_and_chunks_are_bounded(kind: str) -> None:
    assert text(kind, events=50, seed=1) != text(kind, events=50, seed=2)
    assert [len(chunk.truth) for chunk in stream(kind, events=BLOCK + 5)] == [BLOCK, 5]


@pytest.mark.parametrize("kind", BANDITS)
def test_bandit_text_agrees_with_the_truth(kind: str) -> None:
    events = length(kind)
    chunks = gathered(kind, events=events)
    truth = np.concatenate([chunk.truth for chunk in chunks])
    assert truth.shape == (events, ACTIONS[kind])
    assert truth.min() >= 0
    assert truth.max() <= 1
    logged = [pair for chunk in chunks for pair in pairs(chunk)]
    written = b"".join(chunk.text for chunk in chunks).decode().removesuffix("\n\n").split("\n\n")
    assert len(written) == events
    noise = []
    for event, (action, probability), means in zip(written, logged, truth, strict=True):
        shared, *lines = event.split("\n")
        assert shared.startswith("shared |")
        assert "".join(part[0] for part in shared.split("|")[1:]) == SHARED[kind]
        assert len(lines) == ACTIONS[kind]
        labels = {number: line.split(" ")[0] for number, line in enumerate(lines) if not line.startswith("|")}
        assert list(labels) == [action]
        for number, line in enumerate(lines):
            assert line[line.index("|") :].split(" ")[:2] == ["|Z", str(number)]
            assert "".join(part[0] for part in line.split("|")[1:]) == OWN[kind]
        index, cost, chance = labels[action].split(":")
        assert index == "0"
        assert -1 <= float(cost) <= 0
        assert float(chance) == probability
        noise.append(-float(cost) - means[action])
    assert abs(np.mean(noise)) < 4 * np.std(noise) / np.sqrt(
        events
    )  # the truth is the mean of what is observed


def pairs(chunk: Chunk) -> list[tuple[int, float]]:
    assert chunk.actions is not None
    assert chunk.probabilities is not None
    return list(zip(chunk.actions.tolist(), chunk.probabilities.tolist(), strict=True))


@pytest.mark.parametrize("kind", BANDITS)
def test_actions_are_logged_with_the_stated_probabilities(kind: str) -> None:
    logged = np.array([pair for chunk in stream(kind, events=8 * BLOCK) for pair in pairs(chunk)])
    actions, probabilities = logged.T
    counts = np.bincount(actions.astype(int), minlength=ACTIONS[kind])
    expected = len(logged) / ACTIONS[kind]
    assert np.all(np.abs(counts - expected) < 5 * np.sqrt(expected))
    if kind == "heavy":
        assert probabilities.min() == 0.001
        # E[1/p] over what was logged is the number of actions, if the probabilities are true
        weights = 1 / probabilities
        assert abs(weights.mean() - 8) < 5 * weights.std() / np.sqrt(len(weights))
        for small in (0.002, 0.02, 0.1):
            share = np.mean(probabilities == small)
            assert abs(share - 7 * small / 8) < 5 * np.sqrt(7 * small / 8 / len(logged))
    else:
        assert set(probabilities) == {1 / ACTIONS[kind]}


def test_planted_interactions_pay_and_the_null_has_none() -> None:
    planted = np.concatenate([chunk.truth for chunk in stream("planted", events=2 * BLOCK)])
    assert planted.max(axis=1).mean() > planted.mean(axis=0).max() + 0.1
    null = text("null", events=2 * BLOCK).decode()
    assert set(next(stream("null", events=5)).truth.ravel()) == {0.5}
    wins = null.count("0:-1:")
    assert wins + null.count("0:0:") == 2 * BLOCK
    assert abs(wins - BLOCK) < 5 * np.sqrt(BLOCK / 2)


def test_planted_truth_is_a_sum_of_its_three_tables() -> None:
    chunk = next(stream("planted", events=BLOCK))
    lines = [line for line in chunk.text.decode().split("\n") if line.startswith("shared")]
    context = np.array([[part.split(" ")[1] for part in line.split("|")[1:]] for line in lines]).astype(int)
    columns = [context[:, 0] * 6 + context[:, 1], 36 + context[:, 2] * 6 + context[:, 3], 72 + context[:, 4]]
    design = np.zeros((BLOCK, 78))
    for column in columns:
        design[np.arange(BLOCK), column] = 1
    fitted, *_ = np.linalg.lstsq(design, chunk.truth, rcond=None)
    np.testing.assert_allclose(design @ fitted, chunk.truth, atol=1e-9)


def read_lines(kind: str, events: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    chunks = gathered(kind, events=events)
    labels, rows = [], []
    for line in b"".join(chunk.text for chunk in chunks).decode().splitlines():
        label, *spaces = line.split(" |")
        assert "".join(space[0] for space in spaces) == "abcdefgh"
        features = [feature.split(":") for space in spaces for feature in space.split(" ")[1:]]
        assert [name for name, _ in features] == [str(number) for number in range(16)]
        labels.append(float(label))
        rows.append([float(value) for _, value in features])
    return np.array(labels), np.array(rows), np.concatenate([chunk.truth for chunk in chunks])


def test_regression_truth_is_linear_plus_the_planted_products() -> None:
    labels, x, truth = read_lines("regression", 2000)
    pairs = [x[:, i] * x[:, j] for a in (0, 4, 8) for i in (a, a + 1) for j in (a + 2, a + 3)]
    design = np.column_stack([x, *pairs])
    fitted, *_ = np.linalg.lstsq(design, truth, rcond=None)
    np.testing.assert_allclose(design @ fitted, truth, atol=0.01)
    assert np.abs(fitted[16:]).mean() > 0.1
    noise = labels - truth
    assert abs(noise.mean()) < 0.05
    assert 0.45 < noise.std() < 0.55
    assert np.abs(x.mean(axis=0)).max() < 0.12
    assert np.abs(x.std(axis=0) - 1).max() < 0.1


def test_classification_labels_follow_their_probabilities() -> None:
    labels, _, truth = read_lines("classification", 4000)
    assert set(labels) == {-1.0, 1.0}
    assert truth.min() == 0.05
    assert truth.max() == 0.95
    for low, high in ((0.0, 0.2), (0.2, 0.5), (0.5, 0.8), (0.8, 1.0)):
        inside = (truth >= low) & (truth < high)
        share = (labels[inside] == 1).mean()
        assert abs(share - truth[inside].mean()) < 4 * 0.5 / np.sqrt(inside.sum())


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="no stream is called 'broad': choose one of narrow, wide"):
        stream("broad", events=1)
    with pytest.raises(ValueError, match="events=-1 is out of range"):
        stream("narrow", events=-1)
    with pytest.raises(ValueError, match="seed -1 is out of range"):
        stream("narrow", events=1, seed=-1)


def test_draws_are_uniform_and_bell_shaped() -> None:
    draws = Draws(3, stream=1, block=0)
    counts = np.bincount(draws.integers(10, (50_000,)), minlength=10)
    assert np.abs(counts - 5000).max() < 5 * np.sqrt(5000)
    bells = draws.bells(1000, (50_000,))
    assert abs(bells.mean()) < 25
    assert abs(bells.std() - 1000) < 20
    assert 3000 < np.abs(bells).max() <= 3465
    wide = draws.around_zero(3, (10_000,))
    assert (wide.min(), wide.max()) == (-3, 3)
    assert set(Draws(3, stream=1).words(4)).isdisjoint(Draws(3, stream=1, block=0).words(4))


def test_command_line_writes_files(tmp_path: Path) -> None:
    plain, packed, again = tmp_path / "a.txt", tmp_path / "a.txt.gz", tmp_path / "b.txt.gz"
    for path in (plain, packed):
        assert main(["narrow", "--events", "70", "--seed", "4", "-o", str(path)]) == 0
    write(again, kind="narrow", events=70, seed=4)
    assert plain.read_bytes() == text("narrow", events=70, seed=4) == gzip.decompress(packed.read_bytes())
    assert packed.read_bytes() == again.read_bytes()


def test_command_line_writes_standard_output(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["null", "--events", "3"]) == 0
    assert capfdbinary.readouterr().out == text("null", events=3)


@pytest.mark.parametrize(
    "bad", [["broad"], ["narrow", "--events", "-1"], ["narrow", "-o", "no/such/folder/x"]]
)
def test_command_line_refuses(bad: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refusal:
        main(bad)
    assert refusal.value.code == 2
    assert "error:" in capsys.readouterr().err


def test_a_reader_that_stops_early_is_no_error() -> None:
    command = [sys.executable, "-m", "datasets.generate", "planted", "--events", "50000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(6) == b"shared"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0
