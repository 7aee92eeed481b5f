"""One crew: processes, actors of Ray and threads, which are started, awaited, replaced and stopped here.

Trials, partitions and compile jobs are work for them. This package knows nothing of that work.
"""
