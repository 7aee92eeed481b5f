"""One loop that reads, predicts, learns and accounts."""
