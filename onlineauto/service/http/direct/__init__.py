"""Direct answers: a rank or reward that arrives whole is answered without a task, once the log has it."""
