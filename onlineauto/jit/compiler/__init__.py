"""The compiler: everything that imports Numba. It is imported when something must be compiled, not before."""
