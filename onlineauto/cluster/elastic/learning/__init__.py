"""The model of a workspace in blocks: workers pull, learn and push cells, and servers combine them."""
