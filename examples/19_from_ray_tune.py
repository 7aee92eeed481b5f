"""Bring a script from Ray Tune: the two lines that were changed have the original beside them."""

from typing import Any

from onlineauto.tune import tuner as tune  # was: from ray import tune
from onlineauto.tune.tuner import ASHAScheduler  # was: from ray.tune.schedulers import ASHAScheduler


def train(config: dict[str, Any]) -> None:
    loss = 1.0
    for _ in range(config["epochs"]):
        target = abs(config["depth"] - 5) / 10 + (config["loss"] == "hinge") / 5
        loss += config["rate"] * (target - loss)
        tune.report({"loss": loss, "accuracy": 1 - loss})


def main() -> None:
    tuner = tune.Tuner(
        train,
        param_space={
            "rate": tune.loguniform(1e-4, 1),
            "depth": tune.randint(1, 13),
            "loss": tune.choice(["squared", "logistic", "hinge"]),
            "epochs": 27,
        },
        tune_config=tune.TuneConfig(
            metric="loss",
            mode="min",
            num_samples=40,
            scheduler=ASHAScheduler(max_t=27, grace_period=1, reduction_factor=3),
        ),
        run_config=tune.RunConfig(name="rates"),
    )
    results = tuner.fit()
    best = results.get_best_result()
    print("trials:", len(results), "errors:", len(results.errors))
    print("best depth:", best.config["depth"], "after", best.metrics["training_iteration"], "epochs")
    print("best accuracy:", round(best.metrics["accuracy"], 2))
    frame = results.get_dataframe()
    print("mean loss by depth:", frame.groupby("config/depth").loss.mean().idxmin())


if __name__ == "__main__":
    main()
