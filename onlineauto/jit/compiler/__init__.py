"""The compiler: all modules that import Numba. They are imported only when a kernel must be compiled."""
