"""The records that kernels take, by who owns them: task, search, ensemble, loop."""
