"""Read and write Vowpal Wabbit's model files."""
