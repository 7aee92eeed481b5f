"""Run onlineauto's exact mode in this process, with results in the same form as those of VW."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from onlineauto.options import Configuration
from onlineauto.workspace.workspace import Workspace
from tests.parity.result import Result, Weights
from tests.parity.vw import printed_lines

_DIAGNOSTIC = re.compile(r"(\S+:\d+:\d+|onlineauto): ")
"""The beginning of a message on the input, which VW words differently and logs to standard output."""


def command_line(argv: Sequence[str], *, directory: Path) -> tuple[int, str, str]:
    """Run ``onlineauto`` in `directory`; its exit code, standard output and standard error."""
    from onlineauto.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(directory), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(list(argv)) or 0
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else int(left.code is not None)
    return code, out.getvalue(), err.getvalue()


def without_diagnostics(stderr: str) -> str:
    """Standard error without the diagnostics of the input: what Vowpal Wabbit's has too."""
    return "".join(line for line in stderr.splitlines(keepends=True) if not _DIAGNOSTIC.match(line))


def saved_weights(weights: NDArray[np.float32], configuration: Configuration) -> Weights:
    """Cells that VW would save, with the fields that it would save."""
    named = {name for name in ("sgd", "adaptive", "normalized", "invariant") if configuration.get(name)}
    fields = [0]
    if not configuration.get("testonly"):
        fields += [1] if "adaptive" in named or not named else []
        fields += [2] if "normalized" in named or not named else []
    flat = weights.transpose(0, 2, 1).reshape(-1, weights.shape[1])[:, fields]
    index = np.flatnonzero((flat != 0).any(axis=1))
    return Weights(index=index.astype(np.int64), values=np.ascontiguousarray(flat[index]))


def run(flags: Sequence[str], *, file: Path) -> Result:
    """Run onlineauto with `flags` and ``--vw_exact`` on `file`; see `VwRunner.run`."""
    return run_and_keep(flags, file=file)[0]


def run_and_keep(flags: Sequence[str], *, file: Path) -> tuple[Result, Workspace]:
    """Run as `run` does, and give the workspace too."""
    directory = file.parent
    predictions = directory / "predictions.txt"
    predictions.unlink(missing_ok=True)
    argv = [*flags, "--vw_exact", "-d", file.name, "-p", predictions.name]
    with _recorded() as made:
        code, out, err = command_line(argv, directory=directory)
    (workspace,) = made
    text = predictions.read_text("utf-8", "backslashreplace") if predictions.exists() else ""
    result = Result(
        predictions=tuple(text.split("\n")[:-1]),
        weights=saved_weights(workspace.weights, workspace.configuration),
        state=_state(workspace),
        stderr=printed_lines(without_diagnostics(err)),
        stdout=out,
        code=code,
    )
    return result, workspace


@contextlib.contextmanager
def _recorded() -> Iterator[list[Workspace]]:
    """Collect the workspaces that the command line makes."""
    from onlineauto.workspace.workspace import Workspace

    made: list[Workspace] = []

    def make(*, configuration: Configuration) -> Workspace:
        made.append(Workspace(configuration=configuration))
        return made[-1]

    with mock.patch("onlineauto.cli.outputs.Workspace", make):
        yield made


def _state(workspace: Workspace) -> dict[str, str]:
    """Scalars of the model as a readable model prints them."""
    from tests.learners.model_view import lanes_of, shared_of

    model, lanes, shared = workspace.learner.model, lanes_of(workspace), shared_of(workspace)
    state = {
        "t": shared.t,
        "min_label": shared.min_label,
        "max_label": shared.max_label,
        "l1_state": lanes.gravity[0],
        "l2_state": lanes.contraction[0],
        "norm normalizer": lanes.norm[0],
        "total_weight": lanes.weight[0],
    }
    if workspace.kind != "simple":
        state |= {"action_sum": model.sums[0, 0], "event_sum": model.sums[0, 1]}
    return {name: f"{value:.6g}" for name, value in state.items()}
