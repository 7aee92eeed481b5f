"""The log of the service: checksummed lines of dsjson in segments; one flush of the disk for many lines."""
