"""The HTTP/1.1 protocol of the service: connections, their limits, and the parser."""
