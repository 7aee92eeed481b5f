"""The join of decisions and rewards, by the order of the log."""
