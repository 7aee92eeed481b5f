"""Oddities of Vowpal Wabbit's readers that the shared readers can follow, each switched by its own name."""

from __future__ import annotations

from typing import NamedTuple


class ReadingQuirks(NamedTuple):
    """Switches for what VW 9.11.9 reads differently; native mode has none of them on.

    Exact mode turns them on, so that well-formed input gives VW's events bit for bit.
    """

    any_number: bool = False
    """Labels, weights and values may be infinite or NaN, and weights negative. We report them."""
    bare_separators: bool = False
    """A line loses one carriage return, and only an empty line ends an event. We ignore blanks there too."""
    lone_shared: bool = False
    """A shared line without actions is an event. We report it."""
    any_outcome: bool = False
    """A CCB slot may be logged with any action, cost and probability, and twice. We report what is
    impossible."""
    early_labels: bool = False
    """A JSON label counts where it stands: before the end of the context, for the line that is open there.
    We accept a label anywhere in an event, and one inside an action belongs to that action.
    """
    narrow_json: bool = False
    """Some well-formed JSON is not read.

    This is null for an action or a slot; strings and truth values in arrays; ``_slots`` before ``_multi``;
    ``_outcomes`` before the context; ``_labelIndex`` in a slot; and a blank before the first brace of a log,
    or before the colon of a member that is skipped. A null in an array of numbers has no index: the numbers
    behind it move up. For us it is a missing number.
    """
    nul_ends_string: bool = False
    """A string ends at the first NUL that was written as an escape."""
    empty_namespace: bool = False
    """A namespace with an empty name is separate. For us it is the default namespace."""
    lost_namespaces: bool = False
    """Features of a namespace whose name begins with a byte above 127 are lost: VW's index is negative."""


NO_QUIRKS = ReadingQuirks()
"""The switches of native mode: all off."""
