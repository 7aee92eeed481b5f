"""Small real data sets for first steps and examples, in Vowpal Wabbit's text format.

A wheel has the sets of `INSTALLED`. A checkout and the source distribution have all sets of the folder
``datasets``, whose README lists them with their sources and licences.

>>> from onlineauto import datasets
>>> datasets.path("cb-surveys-u").name
'cb-surveys-u.txt.gz'
>>> datasets.true_rewards("cb-penbased-u").shape
(10992, 10)
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from onlineauto.errors import InputError

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

__all__ = ["INSTALLED", "names", "path", "true_rewards"]

INSTALLED = ("cb-diamonds-u", "cb-penbased-u", "cb-surveys-e", "cb-surveys-u", "reg-diamonds")
"""Names of the sets that the wheel has."""

_CHECKOUT = Path(__file__).parents[1]
_FOLDERS = (
    Path(__file__).parent / "_datasets",
    *([_CHECKOUT / "datasets"] if (_CHECKOUT / "pyproject.toml").is_file() else []),
)


def names() -> list[str]:
    """Return the names of the sets that are here: logs of bandits, ``cb-*``, and regressions, ``reg-*``."""
    files = (file for folder in _FOLDERS for file in folder.glob("*.txt.gz"))
    return sorted({file.name.removesuffix(".txt.gz") for file in files})


def path(name: str) -> Path:
    """Return the file of a set: VW text, packed with gzip, which every reader of the package takes as it is.

    Raises
    ------
    InputError
        If no set of this name is here.
    """
    return _file(name, ".txt.gz")


def true_rewards(name: str) -> NDArray[float64]:
    """Return the true reward of every action of a log ``cb-*``.

    Returns
    -------
    rewards
        float64[n_events, n_actions], in the order of the log. The logged costs are negative rewards.

    Raises
    ------
    InputError
        If the set is not here, or is not a log of a bandit.
    """
    if not name.startswith("cb-"):
        raise InputError(f"{name} is not a log of a bandit, so it has no true rewards")
    import numpy as np

    with np.load(_file(name, ".npz")) as arrays:
        rewards: NDArray[float64] = arrays["R"]
    return rewards


def _file(name: str, suffix: str) -> Path:
    for folder in _FOLDERS:
        file = folder / f"{name}{suffix}"
        if file.is_file():
            return file
    raise InputError(f"there is no data set {name}{suffix}; {', '.join(names()) or 'none'} are here")
