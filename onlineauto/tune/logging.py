"""The level of this package's messages, by the names of Optuna's ``logging``."""

from __future__ import annotations

import logging
from logging import CRITICAL, DEBUG, ERROR, INFO, WARNING

__all__ = ["CRITICAL", "DEBUG", "ERROR", "INFO", "WARNING", "get_logger", "set_verbosity"]


def get_logger(name: str) -> logging.Logger:
    """Return a logger; the name ``optuna`` means that of this package."""
    return logging.getLogger("onlineauto" if name == "optuna" else name)


def set_verbosity(verbosity: int) -> None:
    """Set the level from which messages are logged, such as ``WARNING``."""
    get_logger("optuna").setLevel(verbosity)
