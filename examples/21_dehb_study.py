"""Tune a training with DEHB: two processes share a study in SQLite, and trials continue from checkpoints.

Needs the extra `tune`. With a fixed folder in place of a temporary one, an interrupted study continues, and
other workers join it by `onlineauto worker --study sqlite:///study.db`.

Next: 22 lets a study and streams share a machine.
"""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from onlineauto.tune import SCHEDULERS, Float, Int, Study, Trainable


class Training(Trainable):
    """A made-up training whose loss falls with each epoch, to a floor that the config decides."""

    def setup(self, config: Mapping[str, Any]) -> None:
        self.floor: float = abs(config["rate"] - 0.1) + abs(config["depth"] - 5) / 10
        self.epoch = 0

    def step(self) -> float:
        self.epoch += 1
        return self.floor + 1 / self.epoch

    def save(self) -> int:
        return self.epoch

    def load(self, saved: int) -> None:
        self.epoch = saved


def main(folder: Path) -> None:
    study = Study(
        {"rate": Float(1e-4, 1, log=True), "depth": Int(1, 12)},
        SCHEDULERS["dehb"](),
        min_resource=1,
        max_resource=27,
        eta=3,
        seed=1,
        name="training",
        storage=f"sqlite:///{folder / 'study.db'}",
    )
    best = study.run(Training, workers=2, rounds=1)
    assert best is not None
    epochs = sum(trial.resource for trial in study.trials)
    print(f"{len(study.trials)} trials of {epochs} epochs; 27 each would have been {27 * len(study.trials)}")
    print(f"best depth {best.config['depth']} with a loss of {best.value:.2f} after {best.resource} epochs")


if __name__ == "__main__":  # worker processes import this file
    with TemporaryDirectory() as temporary:
        main(Path(temporary))
