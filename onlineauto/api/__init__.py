"""AutoML and its kin: models that are made, fed and asked in the words of Python programs."""
