"""``no_events_error``: the likely reason why a run read nothing, in a line, with the flag that would help."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from onlineauto.formats.options import FORMATS, format_of

if TYPE_CHECKING:
    from onlineauto.formats.lines.diagnostics import Diagnostics
    from onlineauto.options import Configuration

_JSON: Final = tuple(FORMATS)
_TEXT: Final = ("text",)
_REGRESSION: Final = ("simple",)
_ADF: Final = ("cb_adf", "cb_explore_adf", "ccb_explore_adf")
_ONE_LINE: Final = ("cb", "cb_explore")
_BANDITS: Final = (*_ADF, *_ONE_LINE)
_ALL: Final = (*_REGRESSION, *_BANDITS)
_LOG: Final = r'\{.*("_label_cost":.*"_label_[Pp]robability"|"EventId"|"c" ?:)'
_SERVICE: Final = "this looks like the log of a decision service: add --dsjson"


class _Hint(NamedTuple):
    """A likely mistake."""

    sign: str  # A regular expression, searched in the message about the input.
    formats: tuple[str, ...]  # The formats and kinds of learning in which the mistake is possible.
    kinds: tuple[str, ...]
    text: str  # The advice.


_HINTS: Final = (
    _Hint(_LOG, _TEXT, _REGRESSION, _SERVICE + " --cb_explore_adf"),
    _Hint(_LOG, _TEXT, _BANDITS, _SERVICE),
    _Hint(r"'\{", _TEXT, _ALL, "this looks like JSON: add --json"),
    _Hint(
        r"no JSON object: '[^'\[\"]*\|", _JSON, _ALL, "this looks like VW's text: leave out the flag of JSON"
    ),
    _Hint(
        r"'_multi' in|_label_cost|_labelIndex", _JSON, _REGRESSION,
        "these are events of a contextual bandit: add --cb_explore_adf",
    ),
    _Hint(
        r"'ccb", _TEXT, ("simple", "cb_adf", "cb_explore_adf"),
        "these events have slots: use --ccb_explore_adf",
    ),
    _Hint(
        r"'shared", _TEXT, _REGRESSION,
        "'shared' lines are of a contextual bandit: add --cb_explore_adf",
    ),
    _Hint(
        r"'shared", _TEXT, ("ccb_explore_adf", *_ONE_LINE),
        "these events have a line for each action: use --cb_explore_adf",
    ),
    _Hint(
        r"label '\d+:[^']*:", _TEXT, _REGRESSION,
        "labels of action:cost:probability are of a contextual bandit: add --cb_explore_adf, or "
        "--cb_explore K if each event is one line",
    ),
    _Hint(
        r"has no cost|no action before", _TEXT, _BANDITS,
        "labels without action:cost:probability are of regression: leave out the flag of the bandit",
    ),
    _Hint(
        r"on a second line of the event|^second label", _TEXT, _ADF,
        "an event has one label, of the action that was chosen, and an empty line ends it: leave out the "
        "other labels or add the empty lines; if each event is one line, use --cb_explore K",
    ),
    _Hint(
        r"no '\|' in '[^'{|]*[,;\t]", _TEXT, _ALL,
        "this looks like a table: read it in Python, with onlineauto.interop.from_frame",
    ),
    _Hint(r"control byte|\\x[0-9a-f]{2}", (*_TEXT, *_JSON), _ALL, "this is not text"),
)  # fmt: skip
"""The hints in the order of the search."""


def no_events_error(
    problems: Diagnostics, configuration: Configuration, *, kind: str, unlabelled: bool
) -> str:
    """Return the error of a run that had problems with its input and learnt nothing.

    Examples
    --------
    >>> from onlineauto.workspace.options import REGISTRY
    >>> from onlineauto import Workspace
    >>> options, bad = REGISTRY.parse(""), Workspace()
    >>> _ = list(bad.stream(b"shared |a x"))
    >>> print(no_events_error(bad.diagnostics, options, kind="simple", unlabelled=False))
    no event could be read; 'shared' lines are of a contextual bandit: add --cb_explore_adf
    """
    problem = "nothing could be learnt: no label could be read" if unlabelled else "no event could be read"
    lines = format_of(configuration).name
    for hint in _HINTS:
        if lines in hint.formats and kind in hint.kinds:
            for diagnostic in problems.kept:
                if re.search(hint.sign, diagnostic.message):
                    return f"{problem}; {hint.text}"
    return f"{problem}; see the problems above"
