"""The elastic protocol, without input and output: the owners of blocks, and changes of the layout."""
