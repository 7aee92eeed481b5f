"""Records: the state and the arrays that reading kernels fill."""
