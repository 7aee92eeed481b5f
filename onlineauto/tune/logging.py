"""The level of this package's messages, by the names of Optuna's ``logging``."""

from __future__ import annotations

import logging
from logging import CRITICAL, DEBUG, ERROR, FATAL, INFO, WARN, WARNING

__all__ = ["CRITICAL", "DEBUG", "ERROR", "FATAL", "INFO", "WARN", "WARNING"]
__all__ += ["get_logger", "get_verbosity", "set_verbosity"]


def get_verbosity() -> int:
    """Return the level from which messages are logged."""
    return logging.getLogger("onlineauto").getEffectiveLevel()


def set_verbosity(verbosity: int) -> None:
    """Set the level from which messages are logged, such as ``WARNING``."""
    logging.getLogger("onlineauto").setLevel(verbosity)


def get_logger(name: str) -> logging.Logger:
    """Return a logger; the name ``optuna`` means that of this package."""
    return logging.getLogger("onlineauto" if name == "optuna" else name)
