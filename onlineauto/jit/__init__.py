"""The one door to Numba."""

from onlineauto.jit.kernel import kernel

__all__ = ["kernel"]
