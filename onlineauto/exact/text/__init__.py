"""VW text as Vowpal Wabbit 9.11.9 reads it, with its oddities and warnings."""
