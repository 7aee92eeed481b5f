"""Make ``llm-routes.npz``: four language models, their scores and their costs in dollars, for 3,559 prompts.

    git clone https://github.com/ParetoBandit/ParetoBandit
    python -m datasets.llm_routes ParetoBandit

The file has ``reward`` float32[prompts, 4], the score of each model's answer by a judge, ``cost``
float32[prompts, 4], the dollars of the answer, ``models``, their names, ``words`` int8[prompts, 64], sums of
the hashed words of a prompt, ``length`` int32[prompts], its characters, and ``test`` bool[prompts]: False for
the 1,766 prompts of the validation split, which come first, and True for the 1,793 of the test split. The
prompts themselves are not in it.
"""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from datasets.weak_sets import hashed, words

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["COMMIT", "FILE", "LlmRoutes", "load", "main"]

COMMIT: Final = "72ccbefe5cb858c95e00368e2b68de3c2b28a2ee"
"""The commit of the repository from which the file was made."""
FILE: Final = Path(__file__).with_name("llm-routes.npz")


class LlmRoutes(NamedTuple):
    """The members of the file."""

    models: list[str]
    reward: NDArray[np.float32]
    cost: NDArray[np.float32]
    words: NDArray[np.int8]
    length: NDArray[np.int32]
    test: NDArray[np.bool_]


def load() -> LlmRoutes:
    """Return the data set."""
    with np.load(FILE) as stored:
        members = {name: stored[name] for name in LlmRoutes._fields}
    return LlmRoutes(**members | {"models": members["models"].tolist()})


def build(folder: Path) -> bytes:
    """Return the content of the file, from a clone of the repository."""
    rows: list[dict[str, Any]] = []
    test: list[bool] = []
    for split in ("val", "test"):
        text = (folder / "data_collection" / "rewards" / f"{split}_k4.jsonl").read_text("utf-8")
        rows += [json.loads(line) for line in text.splitlines()]
        test += [split == "test"] * (len(rows) - len(test))
    models = sorted(rows[0]["arms"], key=lambda model: sum(row["arms"][model]["cost"] for row in rows))
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        models=np.array([model.split("/")[-1] for model in models]),
        reward=np.array([[row["arms"][model]["reward"] for model in models] for row in rows], np.float32),
        cost=np.array([[row["arms"][model]["cost"] for model in models] for row in rows], np.float32),
        words=np.array([hashed(words(row["prompt"])) for row in rows], np.int8),
        length=np.array([len(row["prompt"]) for row in rows], np.int32),
        test=np.array(test),
    )
    return buffer.getvalue()


def main(arguments: list[str]) -> None:
    """Write the file from the clone in a folder."""
    FILE.write_bytes(build(Path(arguments[0])))


if __name__ == "__main__":
    main(sys.argv[1:])
