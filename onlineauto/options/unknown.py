"""Make the error about an unknown flag, with the nearest known flag or a hint about Vowpal Wabbit's flag."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

from onlineauto.errors import OptionError
from onlineauto.options.vw_names import NAMES, SHORT_NAMES

if TYPE_CHECKING:
    from collections.abc import Collection

_TEXT: Final = "this version reads Vowpal Wabbit's text format and its JSON"
_SERVICE: Final = "`onlineauto serve` decides and learns over HTTP"
_CLASSES: Final = "AutoMLClassifier learns classes, in Python"
_HINTS: Final = {
    **dict.fromkeys(("daemon", "foreground", "num_children", "pid_file", "port", "port_file"), _SERVICE),
    **dict.fromkeys(("oaa", "ect", "log_multi", "multilabel_oaa", "oaa_subsample", "plt"), _CLASSES),
    "csv": _TEXT,
    "csv_trace": "leave it out; --journal has the decisions of --automl",
    "opt_func": "leave it out; bounds are found by bisection, as they are in Vowpal Wabbit without it",
}


_NEAR: Final = 0.75
"""Minimum similarity, from 0 to 1, of a known flag that the message suggests."""


def unknown_option(flag: str, *, known: Collection[str]) -> OptionError:
    """Return the error for a flag that is not in `known`.

    Examples
    --------
    >>> print(unknown_option("--epsilom", known=["--epsilon", "--passes"]))
    unknown option --epsilom; did you mean --epsilon?
    """
    name = flag.removeprefix("--") if flag.startswith("--") else SHORT_NAMES.get(flag[1:], flag[1:])
    if name in NAMES:
        hint = f": {_HINTS[name]}" if name in _HINTS else ""
        return OptionError(f"{flag} is an option of Vowpal Wabbit that onlineauto does not have{hint}")
    near = difflib.get_close_matches("--" + name.replace("-", "_"), known, n=1, cutoff=_NEAR)
    if near:
        return OptionError(f"unknown option {flag}; did you mean {near[0]}?")
    return OptionError(f"unknown option {flag}; `onlineauto --help` lists them all")
