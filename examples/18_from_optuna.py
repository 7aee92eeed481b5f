"""Bring a script from Optuna: the line that was changed has the original beside it."""

from typing import Any

from onlineauto import tune as optuna  # was: import optuna


def network(trial: Any) -> list[int]:
    layers = trial.suggest_int("layers", 1, 3)
    return [trial.suggest_int(f"units{each}", 4, 128, log=True) for each in range(layers)]


def objective(trial: Any) -> float:
    model = trial.suggest_categorical("model", ["linear", "network"])
    rate = trial.suggest_float("rate", 1e-4, 1, log=True)
    target = 0.3
    if model == "network":
        units = network(trial)
        target = 0.1 + sum(abs(each - 32) for each in units) / 500
    loss = 1.0
    for epoch in range(20):
        loss += min(2 * rate, 0.5) * (target - loss)
        trial.report(loss, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return loss


def watch(study: Any, trial: Any) -> None:
    if trial.value is not None and study.best_value < 0.101:
        study.stop()


study = optuna.create_study(
    direction="minimize",
    sampler=optuna.samplers.TPESampler(seed=0),
)
study.enqueue_trial({"model": "linear", "rate": 0.1})
study.optimize(objective, n_trials=100, callbacks=[watch])

frame = study.trials_dataframe()
print("trials:", len(study.trials), "pruned:", (frame.state == "PRUNED").any())
print("best value:", round(study.best_value, 2), "of trial", study.best_trial.number)
print("best model:", study.best_params["model"])
