"""Learn one stream in partitions: rounds of parallel learning from a common base, merged after each."""
