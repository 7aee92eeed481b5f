"""``Events``: a stream that all trials of a process read, parsed once."""

from __future__ import annotations

import logging
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import numpy as np

from onlineauto.engine.search.search_engine import of_actions
from onlineauto.engine.stream.source import kind_of, read_blocks, rules_of
from onlineauto.errors import InputError
from onlineauto.features.block import UNLABELLED
from onlineauto.formats.blocks.file import write_blocks
from onlineauto.formats.lines.diagnostics import Diagnostics

if TYPE_CHECKING:
    import os

    from onlineauto.engine.stream.source import Sources
    from onlineauto.features.block import Block
    from onlineauto.options import Configuration

_LOG: Final = logging.getLogger("onlineauto")
_SAMPLED = 64
"""Number of events of each block in which the namespaces of actions are looked up."""
_DIGESTED = ("hash", "value", "label", "weight", "cost_action", "cost", "probability")
"""Columns of a block that identify a stream."""


class Events:
    """The events of a stream in blocks, which any number of runs may read."""

    def __init__(self, source: Sources, configuration: Configuration, *, most: int | None = None) -> None:
        self.blocks: list[Block] = []
        self._configuration = configuration
        self._n_events = 0
        diagnostics = Diagnostics()
        for block in read_blocks(source, configuration, diagnostics):
            part = block if most is None else block.head(min(len(block), most - self._n_events))
            self.blocks.append(part)
            self._n_events += len(part)
            if self._n_events == most:
                break
        if lacking := self._reason_of_equal_losses():
            problems = f": {diagnostics.summary()}" if diagnostics.total else ""
            raise InputError(f"{lacking}, so there is nothing to compare trials by{problems}")
        if diagnostics.total:
            _LOG.warning("%s", diagnostics.summary())

    def _reason_of_equal_losses(self) -> str:
        """Return the reason why all trials would have the same loss; "" if they may differ."""
        if not self._n_events:
            return "the stream has no events"
        bandit = kind_of(self._configuration) != "simple"
        columns = [block.cost if bandit else block.label for block in self.blocks]
        known = np.concatenate([column[column != UNLABELLED] for column in columns])
        if not len(known):
            return f"no event of the stream has a {'logged cost or reward' if bandit else 'label'}"
        return "every logged cost or reward of the stream is 0" if bandit and not known.any() else ""

    def __len__(self) -> int:
        """Return the number of events."""
        return self._n_events

    @property
    def digest(self) -> str:
        """A digest of all features, labels and costs, independent of the division into blocks."""
        hash_ = blake2b(digest_size=8)
        for column in _DIGESTED:
            for block in self.blocks:
                hash_.update(getattr(block, column).tobytes())
        return hash_.hexdigest()

    @property
    def namespaces(self) -> list[bytes]:
        """The names of all namespaces, in ascending order."""
        return sorted({name for block in self.blocks for name in block.namespaces.names})

    @property
    def of_actions(self) -> frozenset[bytes]:
        """The namespaces of actions, none if events are single lines."""
        if not kind_of(self._configuration).endswith("adf"):
            return frozenset()
        sample = ((block, event) for block in self.blocks for event in range(min(len(block), _SAMPLED)))
        return frozenset().union(*(of_actions(block, event) for block, event in sample))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the events to a file of blocks, which other processes read without parsing."""
        write_blocks(path, self.blocks, rules=rules_of(self._configuration))
