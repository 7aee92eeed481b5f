"""Searchers: the public conformance suite, and the purpose of each searcher."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from math import erfc, inf

import numpy as np
import pytest

from onlineauto.errors import OptionError
from onlineauto.testing import check_searcher
from onlineauto.tune import SEARCHERS, Categorical, Float, Int, Searcher, Space, Study
from onlineauto.tune.searchers.auto import AutoSearcher
from onlineauto.tune.searchers.cmaes import CmaesSearcher
from onlineauto.tune.searchers.gp import Kernel, Process, improvement, learn, posterior
from onlineauto.tune.searchers.grid import GridSearcher
from onlineauto.tune.searchers.quasi import QuasiSearcher
from onlineauto.tune.searchers.tpe import Parzen, TpeSearcher, widths
from onlineauto.tune.spaces import Config

pytestmark = pytest.mark.lane("quick")


@pytest.mark.parametrize(
    "make",
    [
        *(value for name, value in SEARCHERS.items() if name != "gp"),
        pytest.param(SEARCHERS["gp"], marks=pytest.mark.ci),
        partial(QuasiSearcher, "halton"),
        partial(GridSearcher, 2),
    ],
)
def test_conformance(make: Callable[[], Searcher]) -> None:
    check_searcher(make)


class Forgetful(Searcher):
    """Depends on its last config, which is not in its state."""

    name = "forgetful"
    _last = 0.0

    def propose(self, number: int, rng: np.random.Generator) -> Config | None:  # noqa: ARG002
        self._last += 0.5 * float(rng.random())
        return self.space.decode([self._last % 1] * self.space.width)


def test_the_suite_finds_an_incomplete_state() -> None:
    with pytest.raises(AssertionError, match="other configs"):
        check_searcher(Forgetful)


def asked(searcher: Searcher, space: Space, count: int) -> list[Config]:
    searcher.begin(space, seed=0)
    configs = [searcher.ask() for _ in range(count)]
    return [config for config in configs if config is not None]


def test_a_grid_has_every_combination_once() -> None:
    space = Space(
        {
            "x": Float(0, 1),
            "n": Int(1, 2),
            "word": Categorical(["a", "b"]),
            "y": Float(0, 1, when={"word": "b"}),
        }
    )
    configs = asked(GridSearcher(3), space, 100)
    assert len(configs) == 3 * 2 * (1 + 3)
    assert len({tuple(config.items()) for config in configs}) == len(configs)
    assert configs[0] == {"x": 0.0, "n": 1, "word": "a"}
    assert configs[1] == {"x": 0.0, "n": 1, "word": "b", "y": 0.0}


@pytest.mark.parametrize("sequence", ["sobol", "halton"])
def test_quasi_random_configs_are_more_even_than_random_ones(sequence: str) -> None:
    space = Space({f"x{number}": Float(0, 1) for number in range(4)})
    codes = np.array([space.encode(config) for config in asked(QuasiSearcher(sequence), space, 256)])
    random = np.array([space.encode(config) for config in asked(SEARCHERS["random"](), space, 256)])

    def uneven(points: np.ndarray) -> float:
        counts = np.histogramdd(points, bins=2, range=[(0, 1)] * 4)[0]
        return float(abs(counts - 16).max())

    assert uneven(codes) < uneven(random) / 2


def test_tpe_finds_what_random_configs_do_not() -> None:
    space = Space(
        {f"x{number}": Float(0, 1) for number in range(4)}
        | {"word": Categorical(["a", "b", "c"]), "n": Int(0, 20)}
    )

    def loss(config: Config) -> float:
        off = sum((float(str(config[f"x{number}"])) - 0.3) ** 2 for number in range(4))
        return off + (config["word"] != "b") + abs(int(str(config["n"])) - 7) / 20

    best = {}
    for name in ("random", "tpe"):
        losses = []
        for seed in range(3):
            searcher = SEARCHERS[name]()
            searcher.begin(space, seed=seed)
            tried = []
            for _ in range(150):
                config = searcher.ask()
                assert config is not None
                tried.append(loss(config))
                searcher.on_result(config, 1, tried[-1])
            losses.append(min(tried))
        best[name] = np.mean(losses)
    assert best["tpe"] < best["random"] / 3


def _least_after(name: str, trials: int, loss: Callable[[np.ndarray], float], workers: int = 1) -> float:
    """Return the least loss of a searcher on four numbers, each worker ending its trial in turn."""
    searcher, space = SEARCHERS[name](), Space({f"x{number}": Float(0, 1) for number in range(4)})
    searcher.begin(space, seed=1)
    running = [searcher.ask() for _ in range(workers)]
    least = inf
    for _ in range(trials):
        config = running.pop(0)
        assert config is not None
        value = loss(np.array(list(config.values())))
        least = min(least, value)
        searcher.on_result(config, 1, value)
        running.append(searcher.ask())
    return least


def _slanted(x: np.ndarray) -> float:
    """Return a bowl that is narrower along one diagonal."""
    off = x - [0.2, 0.7, 0.4, 0.6]
    return float((off**2).sum() + off.sum() ** 2)


@pytest.mark.parametrize(
    ("name", "trials", "workers"), [("gp", 30, 1), ("gp", 30, 3), ("cmaes", 300, 1), ("cmaes", 300, 4)]
)
def test_models_find_what_random_configs_do_not(name: str, trials: int, workers: int) -> None:
    pytest.importorskip("numpy" if name == "gp" else "cmaes")
    assert _least_after(name, trials, _slanted, workers) < _least_after("random", trials, _slanted) / 5


def test_cmaes_learns_a_generation_of_the_trials_that_ended() -> None:
    searcher = CmaesSearcher(population=4)
    searcher.begin(Space({"x": Float(0, 1), "y": Float(0, 1)}), seed=0)
    configs = [searcher.ask() for _ in range(6)]
    for at in (5, 0, 3):
        searcher.on_result(configs[at] or {}, 1, float(at))
    searcher.on_result(configs[5] or {}, 3, -1.0)  # a second loss of a trial is none of another trial
    assert searcher.state_dict()["generations"] == []
    searcher.on_result(configs[1] or {}, 1, 0.5)
    order = [searcher.space.encode(configs[at] or {}).tolist() for at in (0, 1, 3, 5)]
    assert sorted(searcher.state_dict()["generations"][0]) == sorted(order)
    assert searcher.state_dict()["waiting"] == []


def test_the_logarithm_of_the_expected_improvement() -> None:
    mean, deviation = np.linspace(-3, 9, 13), np.full(13, 0.7)
    z = (1.0 - mean) / deviation
    pdf, cdf = (
        np.exp(-z * z / 2) / np.sqrt(2 * np.pi),
        np.array([0.5 * erfc(-each / np.sqrt(2)) for each in z]),
    )
    expected = deviation * (z * cdf + pdf)
    found = improvement(mean, deviation, 1.0)
    assert np.exp(found) == pytest.approx(expected, rel=1e-6, abs=1e-12)
    assert (np.diff(improvement(np.linspace(1, 100, 50), np.ones(50), 0.0)) < 0).all()


def test_hyperparameters_have_the_gradient_of_their_probability() -> None:
    rng = np.random.default_rng(0)
    inputs = rng.random((25, 3))
    values = np.sin(5 * inputs[:, 0]) + inputs[:, 1] ** 2 + 0.1 * rng.standard_normal(25)
    loss = posterior(inputs, values)
    found = learn(inputs, values)
    assert loss(found)[0] < loss(np.log([1, 0.5, 0.5, 0.5, 1e-3]))[0] - 5
    for point in (found, np.log([2, 0.3, 1, 3, 0.1])):
        steps = 1e-5 * np.eye(5)
        slopes = [(loss(point + step)[0] - loss(point - step)[0]) / 2e-5 for step in steps]
        assert slopes == pytest.approx(loss(point)[1].tolist(), rel=1e-4, abs=1e-4)


def test_a_process_predicts_like_that_of_scikit_learn() -> None:
    peers = pytest.importorskip("sklearn.gaussian_process")
    kernels = peers.kernels
    rng = np.random.default_rng(1)
    inputs, values, others = rng.random((20, 2)), rng.standard_normal(20), rng.random((30, 2))
    kernel = 1.5 * kernels.Matern([0.2, 0.7], nu=2.5) + kernels.WhiteKernel(0.05)
    peer = peers.GaussianProcessRegressor(kernel, alpha=1e-8, optimizer=None).fit(inputs, values)
    process = Process(Kernel(1.5, np.array([0.2, 0.7]), 0.05), inputs, values)
    mean, deviation = process.predict(others)
    expected, with_noise = peer.predict(others, return_std=True)
    assert mean == pytest.approx(expected)
    assert deviation == pytest.approx(np.sqrt(with_noise**2 - 0.05))


def test_tpe_compares_at_the_highest_resource_of_25_trials() -> None:
    searcher = TpeSearcher()
    searcher.begin(Space({"x": Float(0, 1)}), seed=0)
    for number in range(60):
        config = searcher.ask()
        assert config is not None
        searcher.on_result(config, 1, -float(number))
        if number < 30:
            searcher.on_result(config, 3, float(number))
        if number == 29:
            searcher.on_result(config, 9, 100.0)
    good, others = searcher._split()
    assert good.tolist() == [0, 1, 2, 3, 4, 5]
    assert sorted([*good, *others]) == list(range(60))


def test_a_trial_that_is_running_or_failed_counts_as_bad() -> None:
    searcher = TpeSearcher(startup=1)
    searcher.begin(Space({"x": Float(0, 1)}), seed=0)
    configs = [searcher.ask() for _ in range(12)]
    for config in configs[:10]:
        assert config is not None
        searcher.on_result(config, 1, inf)
    good, _ = searcher._split()
    assert good.tolist() == [0]


def test_a_density_sums_to_one() -> None:
    rng = np.random.default_rng(0)
    exist = rng.random((40, 3)) < 0.8
    density = Parzen(rng.random((40, 2)), rng.integers(3, size=(40, 1)), [3], exist, np.full(2, 0.05), 0.2)
    middle = (np.arange(200) + 0.5) / 200
    grid = np.stack(np.meshgrid(middle, middle), axis=-1).reshape(-1, 2)
    mass = 0.0
    for word in range(3):
        words, all_exist = np.full((len(grid), 1), word), np.ones((len(grid), 3), dtype=bool)
        mass += float(np.exp(density.log_density(grid, words, all_exist)).mean())
    assert mass == pytest.approx(1, abs=1e-3)


def test_a_kernel_is_as_wide_as_the_distance_to_its_farther_neighbour() -> None:
    codes = np.array([[0.1, 0.5], [0.15, 0.5], [0.55, 0.5], [0.6, 0.5]])
    exist = np.array([[True, True], [True, False], [True, False], [True, False]])
    found = widths(codes, exist, np.array([0.06, 0.06]), 0.2)
    assert found[:, 0].tolist() == pytest.approx([0.06, 0.2, 0.2, 0.06])
    assert found[0, 1] == 0.2  # it has no neighbour
    exist[1, 0] = False
    assert widths(codes, exist, np.array([0.01, 0.01]), 0.9)[[0, 2, 3], 0].tolist() == pytest.approx(
        [0.45, 0.45, 0.05]
    )


def test_tpe_repeats_no_config_of_whole_numbers() -> None:
    searcher = TpeSearcher()
    searcher.begin(Space({"m": Int(0, 49), "n": Int(0, 49)}), seed=0)
    tried = []
    for _ in range(150):
        config = searcher.ask()
        assert config is not None
        tried.append((config["m"], config["n"]))
        searcher.on_result(config, 1, abs(int(str(config["m"])) - 20) + abs(int(str(config["n"])) - 30))
    assert len(set(tried[10:])) == 140
    assert (20, 30) in tried


def test_draws_follow_the_density() -> None:
    rng = np.random.default_rng(0)
    density = Parzen(
        rng.random((3, 1)),
        rng.integers(2, size=(3, 1)),
        [2],
        np.ones((3, 2), dtype=bool),
        np.array([0.05]),
        0.2,
    )
    numbers, words = density.draw(20000, rng)
    for word in range(2):
        drawn = np.histogram(numbers[words[:, 0] == word], bins=20, range=(0, 1))[0] / 1000
        fine = ((np.arange(2000) + 0.5) / 2000)[:, None]
        logs = density.log_density(fine, np.full((2000, 1), word), np.ones((2000, 2), dtype=bool))
        expected = np.exp(logs).reshape(20, -1).mean(1)
        assert np.abs(drawn - expected).max() < 0.15 * max(1, expected.max())


@pytest.mark.parametrize(
    "make",
    [
        lambda: GridSearcher(0),
        lambda: QuasiSearcher("faure"),
        lambda: TpeSearcher(good=1.0),
        lambda: TpeSearcher(0),
    ],
)
def test_options_out_of_range_are_rejected(make: Callable[[], Searcher]) -> None:
    with pytest.raises(OptionError, match=r"valid are|at least one"):
        make()


def _chosen(space: Space, results: list[tuple[int, list[float]]], lowest: int = 0) -> str:
    """Return the name of the searcher that `AutoSearcher` chooses after some results."""
    searcher = AutoSearcher(most=20)
    searcher.begin(space, seed=0)
    searcher.lowest = lowest
    for resource, losses in results:
        config = searcher.ask()
        assert config is not None
        if len(losses) > 1:
            searcher.on_losses(config, resource, losses)
        else:
            searcher.on_result(config, resource, losses[0])
    copy = AutoSearcher(most=20)
    copy.begin(space, seed=0)
    copy.load_state_dict(json.loads(json.dumps(searcher.state_dict())))
    copy.lowest = lowest
    assert copy.ask() == searcher.ask()
    return searcher.chosen.name


def test_auto_chooses_a_gaussian_process_for_few_trials_of_numbers() -> None:
    numbers = Space({"x": Float(0, 1), "n": Int(1, 9)})
    few = [(1, [0.1 * at]) for at in range(12)]
    assert _chosen(numbers, few) == "gp"
    assert _chosen(numbers, few[:4] * 5) == "tpe"  # more than `most` trials
    assert _chosen(numbers, [*few, (3, [0.1])]) == "tpe"
    assert _chosen(numbers, few, lowest=1) == "tpe"
    assert _chosen(numbers, [(1, [0.1, 0.2])]) == "tpe"
    assert _chosen(Space({"x": Float(0, 1), "word": Categorical(["a", "b"])}), few) == "tpe"
    assert _chosen(Space({"x": Float(0, 1, prior=0.3)}), few) == "tpe"
    conditional = Space({"n": Int(1, 2), "x": Float(0, 1, when={"n": [1]})})
    assert _chosen(conditional, few) == "tpe"


def test_a_study_logs_which_searcher_auto_chooses(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="onlineauto"):
        Study({"x": Float(0, 1)}, "fifo", max_trials=2).run(lambda config: config["x"])
        Study({"x": Float(0, 1)}, max_resource=3, max_trials=2).run(lambda config: config["x"])
    messages = [message for message in caplog.messages if "auto" in message]
    assert messages == [
        "searcher 'auto' chooses gp until trial 200, then tpe, for this space",
        "searcher 'auto' chooses tpe for this space",
    ]
