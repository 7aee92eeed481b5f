"""Oddities of Vowpal Wabbit's readers that the shared readers can reproduce, each with a named switch."""

from __future__ import annotations

from typing import NamedTuple


class ReadingQuirks(NamedTuple):
    """Switches for differences of VW 9.11.9 from native mode, which has them all off.

    Exact mode turns them on, so that well-formed input gives VW's events bit for bit.
    """

    any_number: bool = False
    """Labels, weights and values may be infinite or NaN, and weights negative. Native mode reports them."""
    bare_separators: bool = False
    """VW removes one carriage return from a line, and only an empty line ends an event. In native mode a line
    of blanks ends an event, too."""
    lone_shared: bool = False
    """A shared line without actions is an event. Native mode reports it."""
    any_outcome: bool = False
    """A CCB slot may be logged with any action, cost and probability, and twice. Native mode reports invalid
    logs."""
    early_labels: bool = False
    """A JSON label must precede the end of the context and belongs to the line that is open at its position.
    Native mode accepts a label anywhere in an event; a label inside an action belongs to that action.
    """
    narrow_json: bool = False
    """Some well-formed JSON is not read.

    This is null for an action or a slot; strings and truth values in arrays; ``_slots`` before ``_multi``;
    ``_outcomes`` before the context; ``_labelIndex`` in a slot; and a blank before the first brace of a log,
    or before the colon of a skipped member. A null in an array of numbers has no index, so that the following
    numbers get lower indices. In native mode null is a missing number with an index.
    """
    nul_ends_string: bool = False
    """A string ends at the first NUL that is written as an escape."""
    empty_namespace: bool = False
    """A namespace with an empty name is separate. In native mode it is the default namespace."""
    lost_namespaces: bool = False
    """Features of a namespace whose name begins with a byte above 127 are lost: VW's index is negative."""


NO_QUIRKS = ReadingQuirks()
"""The switches of native mode, all off."""
