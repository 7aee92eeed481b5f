"""Compare with river's models on river's stream, in river's pipelines and with its metrics.

Needs the extra `river`. The stream is part of river: 1,001 polls, each predicted before it is learnt.
"""

from river import datasets, linear_model, metrics, preprocessing
from river.evaluate import progressive_val_score

from onlineauto.river import AutoMLRegressor

peer = preprocessing.StandardScaler() | linear_model.LinearRegression()
ours = AutoMLRegressor(seed=1)
for name, model in (("linear regression", peer), ("onlineauto", ours)):
    score = progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())  # type: ignore[no-untyped-call]
    print(f"{name:18} {score}")
