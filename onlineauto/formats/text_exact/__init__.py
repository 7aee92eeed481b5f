"""VW text as VW 9.11.9 reads it."""
