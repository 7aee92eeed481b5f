"""The former module of `onlineauto.state.stored`."""

from onlineauto.state.stored import MOST, Stored

__all__ = ["MOST", "Stored"]
