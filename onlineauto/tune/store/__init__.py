"""Where studies are kept: the protocol of all stores, and the one in memory."""
