"""The explorers of the package, one file each: options, what depends on them, and the kernel."""
