"""The log of the service: checksummed lines of dsjson in segments, many lines to one flush of the disk."""
