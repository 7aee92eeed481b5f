"""Direct answers: ranks and rewards that come whole are answered without a task, once the log has them."""
