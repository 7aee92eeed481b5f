"""Workers: trainables, the processes that run them, and the controller that connects them to a study."""
