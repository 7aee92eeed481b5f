"""Oddities of Vowpal Wabbit's readers that the shared readers can follow, each by a name of its own."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["NO_QUIRKS", "ReadingQuirks"]


class ReadingQuirks(NamedTuple):
    """What VW 9.11.9 reads otherwise than we do; native mode has none of these.

    They are followed so that what is well-formed gives VW's events, bit for bit.
    """

    any_number: bool = False
    """Labels, weights and values may be infinite or NaN, and weights negative. We report them."""
    bare_separators: bool = False
    """A line loses one carriage return, and only an empty line ends an event. We ignore blanks there too."""
    lone_shared: bool = False
    """A shared line without actions is an event. We report it."""
    any_outcome: bool = False
    """A CCB slot may be logged with any action, cost and probability, and twice. We report what cannot be."""
    early_labels: bool = False
    """Labels of JSON count where they stand: before the end of the context, for the line that is open there.

    We take a label from anywhere in an event, and one inside of an action for that action's.
    """
    narrow_json: bool = False
    """Some well-formed JSON is not read.

    Null for an action or a slot; strings and truth values in arrays; ``_slots`` before ``_multi``;
    ``_outcomes`` before the context; ``_labelIndex`` in a slot; a blank before the first brace of a log, or
    before the colon of a member that is skipped.
    """
    nul_ends_string: bool = False
    """A string ends with the first NUL that an escape stands for."""
    empty_namespace: bool = False
    """A namespace with an empty name is one of its own. To us it is the default namespace."""
    lost_namespaces: bool = False
    """Features of a namespace whose name begins with a byte above 127 are lost: VW has a negative index."""


NO_QUIRKS = ReadingQuirks()
"""Native mode."""
