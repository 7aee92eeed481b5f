"""Parts of the kernels of explorers: the least probability, ranges of costs, and two whole kernels."""
