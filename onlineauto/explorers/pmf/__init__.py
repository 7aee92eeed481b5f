"""What kernels of explorers are made of: the least probability, ranges of costs, and two whole ones."""
