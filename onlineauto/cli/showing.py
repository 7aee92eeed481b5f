"""``Showing``: names of features in a run, for ``--audit`` and ``--invert_hash``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.automl.decisions import Swap
from onlineauto.automl.options import AutomlOptions
from onlineauto.engine.options.registry import ModelOptions, OutputOptions
from onlineauto.engine.report.predictions import STDOUT, open_sink
from onlineauto.engine.search.journal import decision_of
from onlineauto.engine.stream.source import read_blocks
from onlineauto.interop.named_blocks import line_names, named_blocks
from onlineauto.workspace.inspection.audit import Audit, learnt_example
from onlineauto.workspace.inspection.inverse_hash import InverseHash
from onlineauto.workspace.inspection.named_examples import NamedExamples, Nameless

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import ExitStack

    from onlineauto.engine.event.outcomes import Outcomes
    from onlineauto.engine.search.journal import Entry
    from onlineauto.engine.stream.source import Sources
    from onlineauto.features.block import Block
    from onlineauto.formats.lines.diagnostics import Diagnostics
    from onlineauto.options import Configuration
    from onlineauto.workspace.model_file import State
    from onlineauto.workspace.run import Run


_MOST_LISTED = 10_000
"""Maximum number of crossed features of an interaction that an audit lists individually."""


class Showing:
    """Reads events with names, if an option requires names, and audits events before they are learnt."""

    def __init__(self, run: Run, files: ExitStack) -> None:
        self._workspace = workspace = run.workspace
        configuration = workspace.configuration
        self._known: dict[int, str] = dict(run.stored.get("names", ()))
        run.sinks.append(self)
        self._searches = configuration[AutomlOptions].automl is not None
        self._audit: Audit | None = None
        if configuration[OutputOptions].audit:
            self._audit = Audit(workspace)
            self._sink = files.enter_context(open_sink(STDOUT[0]))
        self._inverse: InverseHash | None = None
        if configuration[ModelOptions].invert_hash is not None:
            self._inverse = InverseHash(workspace)
            if not workspace.semantics.reports_as_vw:  # VW names only features of this run
                self._inverse.names.update(self._known)
        self._first = True
        if self._audit is not None or self._inverse is not None:
            run.read = self._read
            self._names = line_names(configuration)
            names_all = self._inverse is not None or workspace.semantics.reports_as_vw
            self._examples = NamedExamples(workspace, self._names, most=None if names_all else _MOST_LISTED)
            self._nameless = NamedExamples(workspace, Nameless())

    @property
    def names(self) -> Mapping[int, str]:
        """Names of the weights that events have used; see `InverseHash`."""
        return self._known if self._inverse is None else self._inverse.names

    def take(self, block: Block, outcomes: Outcomes) -> None:
        """Do nothing, because events are audited before they are learnt."""

    def state(self) -> State:
        """Return the names for a model file."""
        return names_to_state(self.names)

    def names_of(self, live: Sequence[int], lanes: int) -> dict[int, str]:
        """Return the names of the weights of some live configs, numbered for a table with `lanes` lanes."""
        learner = self._workspace.learner
        before = learner.shape.lanes
        lane = {learner.shape.lane(0, each): index for index, each in enumerate(live)}
        return {
            number // before * lanes + lane[number % before]: name
            for number, name in self.names.items()
            if number % before in lane
        }

    def _read(self, source: Sources, configuration: Configuration, problems: Diagnostics) -> Iterator[Block]:
        first, self._first = self._first, False
        single = named_blocks(source, configuration, problems, names=self._names)
        for block in read_blocks(single, configuration, problems):
            if self._audit is not None:
                examples = (
                    self._examples if first or not self._workspace.semantics.reports_as_vw else self._nameless
                )
                text = self._audit.text(block, examples.examples_of(block))
                self._sink.write(text.encode("utf-8", "surrogateescape"))
                self._sink.flush()
            if self._inverse is None or not first:
                yield block
            elif self._searches:
                yield from self._learn_in_search(block, self._inverse)
            else:
                self._inverse.note(self._inverse.names_of_weights(self._examples.examples_of(block)))
                yield block

    def _learn_in_search(self, block: Block, inverse: InverseHash) -> Iterator[Block]:
        """Yield an event for the search to learn, and record the names of the weights that it used.

        Names are recorded after the event, since it may add interactions. If it changes the champion, they
        are recorded just before the change, which comes last.
        """
        workspace = self._workspace
        as_vw = workspace.semantics.reports_as_vw
        learns = learnt_example(workspace.learner.task, block) is not None or not as_vw
        switches = workspace.searching.n_switches

        def note() -> None:
            inverse.note(inverse.names_of_weights(self._examples.examples_of(block), challengers=learns))

        def record_entry(entry: Entry) -> None:
            if isinstance(decision_of(entry), Swap):
                note()

        with workspace.observe(record_entry):
            yield block
        if workspace.searching.n_switches == switches or not as_vw:
            note()


def names_to_state(names: Mapping[int, str]) -> State:
    """Return names in the form of a model file: pairs of a weight's number and its name."""
    pairs = sorted(
        (number, name.encode("utf-8", "backslashreplace").decode()) for number, name in names.items()
    )
    return {"names": pairs} if pairs else {}
