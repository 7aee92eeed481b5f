"""VW's own test suite on onlineauto: ``python -m tests.parity.vwtest PATH_TO_VW_CHECKOUT``.

Runs those tests of ``test/core.vwtest.json`` that use only what onlineauto has, compares with the references
of the checkout by VW's own rule and, where they differ, with the installed `vowpalwabbit` package. It prints
why each other test is not run.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from tests.parity.exact import command_line, without_diagnostics
from tests.parity.vw import VwRunner
from tests.parity.vwtest_plan import EPSILON, NotCovered, Plan, difference, plan

_NOT_OURS = ("using no cache", "creating cache_file", "using cache_file", "can't open")
_LOGGED = ("[info]", "[warning]", "[error]", "[critical]")
_REFUSED = 2
"""Exit code."""
_VERSIONS = ("Version ", "Checksum: ")
_OF_MODELS = re.compile(
    r"(?:^|\s)(?:-f|-i|-a|--(?:final_regressor|initial_regressor|audit|readable_model|invert_hash|predict_only_model|"
    r"save_resume|preserve_performance_counters|hexfloat_weights))(?:\s|=|$)"
)

STATUSES = ("pass", "like VW", "fail", "not covered")
"""The references come from a build with other square roots; where ours differ, the package decides."""


class Runner(Protocol):
    """Runs a command line in a directory; gives exit code, standard output, standard error."""

    def __call__(self, argv: Sequence[str], *, directory: Path) -> tuple[int, str, str]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of one test; `status` is one of `STATUSES`."""

    id: int
    status: str
    reason: str
    command: str


def _comparable(text: str) -> str:
    """Text without the lines on caches, which we do not write, what VW logs, and its version."""
    left_out = (*_NOT_OURS, *_LOGGED, *_VERSIONS)
    return "\n".join(line for line in text.splitlines() if not line.startswith(left_out))


def _link(root: Path, directory: Path) -> None:
    """Make the checkout's data visible in an empty directory."""
    for source in root.iterdir():
        if source.is_dir():
            (directory / source.name).symlink_to(source)


def _outputs(printed: tuple[int, str, str], *, chosen: Plan, directory: Path) -> dict[str, str]:
    """Text of each output that is compared, `printed` being exit code, standard output and standard error."""
    texts = {"stdout": printed[1], "stderr": printed[2]}
    for output in chosen.compared:
        if output not in texts:
            written = directory / output
            texts[output] = written.read_text("utf-8", "replace") if written.is_file() else "(not written)"
    return {output: _comparable(texts[output]) for output in chosen.compared}


def _problems(outputs: dict[str, str], *, chosen: Plan, root: Path, epsilon: float) -> Iterable[str]:
    """Everything in which the outputs of a run differ from their references."""
    for output, reference in chosen.compared.items():
        path = root / reference
        if not path.is_file():
            yield f"reference {reference} is missing"
        elif found := difference(outputs[output], _comparable(path.read_text("utf-8")), epsilon=epsilon):
            yield f"{output}: {found}"


def _run(chosen: Plan, *, root: Path, runner: Runner) -> tuple[int, dict[str, str]]:
    """Exit code and outputs of one command line in a separate directory."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        _link(root, directory)
        for each in (*chosen.first, chosen):
            for written in each.written:
                (directory / written).parent.mkdir(parents=True, exist_ok=True)
            printed = runner(each.argv, directory=directory)
        return printed[0], _outputs(printed, chosen=chosen, directory=directory)


def _judged(chosen: Plan, *, root: Path, vw: VwRunner, epsilon: float) -> tuple[str, str]:
    """Status of a test that is run, and the reason for it."""
    code, outputs = _run(chosen, root=root, runner=_ours)
    if code != 0:
        return "fail", f"exit code {code}: {outputs.get('stderr', '').strip().splitlines()[-1:]}"
    problems = "; ".join(_problems(outputs, chosen=chosen, root=root, epsilon=epsilon))
    if not problems:
        return "pass", f"without {' '.join(chosen.stripped)}" if chosen.stripped else ""
    if outputs == _run(chosen, root=root, runner=vw.command_line)[1]:
        return "like VW", f"the reference is another build's: {problems}"
    return "fail", problems


def _ours(argv: Sequence[str], *, directory: Path) -> tuple[int, str, str]:
    code, out, err = command_line(["learn", *argv, "--vw_exact"], directory=directory)
    if code == _REFUSED:
        raise NotCovered(f"refused: {err.strip().splitlines()[-1]}")
    return code, out, without_diagnostics(err)


def run_test(
    test: Mapping[str, Any],
    *,
    root: Path,
    vw: VwRunner,
    others: Mapping[int, Mapping[str, Any]],
    epsilon: float = EPSILON,
) -> Outcome:
    """Run one entry of ``core.vwtest.json``, all of which are `others`; `root` is the checkout's ``test``."""
    command = test.get("vw_command", test.get("bash_command", ""))
    try:
        chosen = plan(test, root=root, others=others)
        status, reason = _judged(chosen, root=root, vw=vw, epsilon=epsilon)
    except NotCovered as refusal:
        status, reason = "not covered", str(refusal)
    except Exception:
        status, reason = "fail", traceback.format_exc(limit=-1).strip()
    return Outcome(id=test["id"], status=status, reason=reason, command=command)


def _report(outcomes: list[Outcome]) -> str:
    lines = [f"{each.id:4} {each.status}{': ' if each.reason else ''}{each.reason}" for each in outcomes]
    lines += ["", "not covered, by reason:"]
    reasons = Counter(each.reason for each in outcomes if each.status == "not covered")
    lines += [f"{number:5} {reason}" for reason, number in reasons.most_common()]
    statuses = Counter(each.status for each in outcomes)
    lines += ["", ", ".join(f"{statuses[status]} {status}" for status in STATUSES)]
    models = Counter(each.status for each in outcomes if _OF_MODELS.search(each.command))
    told = ", ".join(f"{models[status]} {status}" for status in STATUSES)
    lines.append(f"of these, with models, their texts, or audits: {told}")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; 0 if no test fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.parity.vwtest", description="Run VW's own tests.")
    parser.add_argument("checkout", type=Path, help="directory of a checkout of VowpalWabbit/vowpal_wabbit")
    parser.add_argument("--ids", type=int, nargs="+", help="run these tests only")
    parser.add_argument("--json", type=Path, help="also write the outcomes to this file")
    parser.add_argument("--epsilon", type=float, default=EPSILON, help="tolerance (default: %(default)s)")
    options = parser.parse_args(arguments)
    root = (options.checkout / "test").resolve()
    tests = json.loads((root / "core.vwtest.json").read_text())
    chosen = [test for test in tests if options.ids is None or test["id"] in options.ids]
    with VwRunner() as vw:
        others = {test["id"]: test for test in tests}
        outcomes = [
            run_test(test, root=root, vw=vw, others=others, epsilon=options.epsilon) for test in chosen
        ]
    sys.stdout.write(_report(outcomes))
    if options.json:
        options.json.write_text(json.dumps([asdict(outcome) for outcome in outcomes], indent=1) + "\n")
    return int(any(outcome.status == "fail" for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
