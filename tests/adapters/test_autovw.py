"""AutoVW: the script of FLAML's documentation, with one import changed."""

import random
from typing import Any

import pytest

from onlineauto.autovw import AutoVW
from onlineauto.errors import OptionError

pytestmark = pytest.mark.lane("sampled")


class Domain:
    """Stands for a domain of FLAML, as ``loguniform(lower=2e-10, upper=1.0)`` returns one."""


def lines(n: int) -> list[str]:
    """Make lines in which two namespaces act together, written as the script writes them."""
    draw, made = random.Random(1), []
    for _ in range(n):
        a, b, c = (draw.randrange(4) for _ in range(3))
        made.append(f"{(a * 7 + b * 3) % 5 + 0.1 * c} |a 0_{a}:1.000000|b 1_{b}:1.000000|c 2:{c:.6f} 3:nan")
    return made


def online_learning_loop(iter_num: int, vw_examples: list[str], vw_alg: Any) -> list[float]:
    """Predict and learn, as the script does."""
    loss_list = []
    for i in range(iter_num):
        vw_x = vw_examples[i]
        y_true = float(vw_examples[i].split("|")[0])
        y_pred = vw_alg.predict(vw_x)
        vw_alg.learn(vw_x)
        loss_list.append((y_pred - y_true) ** 2)
    return loss_list


def test_the_script() -> None:
    examples = lines(4000)
    autovw_ni = AutoVW(max_live_model_num=5, search_space={"interactions": AutoVW.AUTOMATIC, "quiet": ""})
    losses = online_learning_loop(4000, examples, autovw_ni)
    assert sum(losses[3000:]) < 0.2 * sum(losses[:1000])
    assert ("a", "b") in {
        tuple(map(bytes.decode, each)) for each in autovw_ni.workspace.searching.interactions(0)
    }
    autovw_nilr = AutoVW(
        max_live_model_num=5,
        search_space={"interactions": AutoVW.AUTOMATIC, "learning_rate": Domain(), "quiet": ""},
        init_config={"interactions": set(), "learning_rate": 0.5},
        random_seed=1,
    )
    assert sum(online_learning_loop(100, examples, autovw_nilr)) < 1000
    assert autovw_nilr.workspace.configuration.get("search") == "interactions,learning_rate"


def test_fixed_values() -> None:
    auto = AutoVW(5, {"interactions": ["ab", "ac"], "loss_function": "logistic", "link": "logistic"})
    options = auto.workspace.configuration
    assert (options.get("automl"), options.get("interactions")) == (None, ("ab", "ac"))
    auto.learn("1 |a x|b y")
    assert 0.5 < auto.predict("|a x|b y") < 1


def test_fixed_values_of_the_script() -> None:
    """Its last section names an algorithm of boosting without boosting."""
    auto = AutoVW(5, {"alg": "supervised", "loss_function": "classic", "quiet": "", "interactions": "_auto"})
    assert auto.workspace.configuration.get("loss_function") == "classic"
    with pytest.raises(OptionError, match="--boosting"):
        AutoVW(5, {"alg": "BBM", "boosting": 5})


def test_leases() -> None:
    auto = AutoVW(2, {"interactions": "_auto"}, min_resource_lease=50, metric="mse")
    assert auto.workspace.configuration.get("default_lease") == 50


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"search_space": {"bit_precision": Domain()}}, "cannot be searched"),
        ({"search_space": {}, "metric": "auc"}, "metric cannot be"),
        ({"search_space": {}, "model_selection_mode": "max"}, "takes 'min'"),
    ],
)
def test_refusals(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        AutoVW(5, **arguments)


def test_domains_of_flaml() -> None:
    tune: Any = pytest.importorskip("flaml.tune")
    auto = AutoVW(5, {"interactions": AutoVW.AUTOMATIC, "learning_rate": tune.loguniform(2e-10, 1.0)})
    assert auto.workspace.configuration.get("search") == "interactions,learning_rate"
