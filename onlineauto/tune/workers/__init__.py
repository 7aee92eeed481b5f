"""Workers: trainables, the processes that run them, and the controller that brings both to a study."""
