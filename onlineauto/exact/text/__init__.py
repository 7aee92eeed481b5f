"""VW text as Vowpal Wabbit 9.11.9 reads it, oddities and warnings included."""
