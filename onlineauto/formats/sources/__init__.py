"""Sources of bytes: files, pipes, compressed streams."""
