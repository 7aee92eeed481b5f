"""Predict prices in river's way: its pipelines, its metrics, and each price predicted before it is learnt.

Needs the extra `river`.

Next: 16 predicts classes with scikit-learn.
"""

from river import compose, linear_model, metrics, preprocessing
from river.evaluate import progressive_val_score

from onlineauto.river import AutoMLRegressor
from stones import stones

numbers = compose.SelectType(float) | preprocessing.StandardScaler()
words = compose.SelectType(str) | preprocessing.OneHotEncoder()
peer = (numbers + words) | linear_model.LinearRegression()
for name, model in (("linear regression", peer), ("onlineauto", AutoMLRegressor(seed=1))):
    score = progressive_val_score(stones(4000), model, metrics.MAE())  # type: ignore[no-untyped-call]
    print(f"{name:18} {score}")
