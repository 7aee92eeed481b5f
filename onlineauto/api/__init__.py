"""AutoML and its kin: models with a Python API for learning, predicting and saving."""
