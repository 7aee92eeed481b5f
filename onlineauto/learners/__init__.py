"""Update rules that learn from one event at a time, and the targets that they learn."""
