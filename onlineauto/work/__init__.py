"""One crew: processes, actors of Ray and threads, which are started, awaited, replaced and stopped here."""
