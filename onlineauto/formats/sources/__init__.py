"""Where bytes come from: files, pipes, compressed streams."""
