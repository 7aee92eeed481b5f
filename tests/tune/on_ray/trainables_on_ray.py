"""Trainables that record the node on which they run."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from onlineauto.tune.workers.trainable import Config, Trainable


class Placed(Trainable):
    """Writes a line for each step to the file that its config names: rate, node, step, bundles."""

    def setup(self, config: Config) -> None:
        import ray

        self.config, self.total = config, 0
        self.node = ray.get_runtime_context().get_node_id()
        group = ray.util.get_current_placement_group()
        self.bundles = 0 if group is None else len(group.bundle_specs)

    def step(self) -> float:
        self.total += 1
        time.sleep(self.config.get("seconds", 0))
        with Path(self.config["notes"]).open("a") as file:
            file.write(f"{self.config['rate']} {self.node} {self.total} {self.bundles}\n")
        return float(self.config["rate"] * self.total)

    def save(self) -> Any:
        return {"total": self.total}

    def load(self, saved: Any) -> None:
        self.total = saved["total"]


def noted(notes: Path) -> list[tuple[float, str, int, int]]:
    """Return the recorded lines: rate, node, step, bundles."""
    lines = notes.read_text().splitlines() if notes.exists() else []
    return [
        (float(rate), node, int(step), int(bundles)) for rate, node, step, bundles in map(str.split, lines)
    ]


def nothing(config: Config) -> float:
    return float(config["rate"])
