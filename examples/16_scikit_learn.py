"""Predict the cut of diamonds in scikit-learn: a pipeline, cross-validation, and rows that arrive in parts.

Needs the extra `sklearn`. `partial_fit` learns rows in their order, as a stream: rows that are sorted by
class, as in many tables, have to be shuffled first.

Next: 17 has a script of FLAML.
"""

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from onlineauto.sklearn import AutoMLClassifier
from stones import stones

rows = [stone for stone, _ in stones(2000)]
X = np.array([[value for value in stone.values() if isinstance(value, float)] for stone in rows])
y = np.array([stone["cut"] for stone in rows])
for name, model in (("most frequent", DummyClassifier()), ("onlineauto", AutoMLClassifier(seed=1))):
    scores = cross_val_score(make_pipeline(StandardScaler(), model), X, y, cv=3)
    print(f"{name:13} right labels {scores.mean():.2f} ± {scores.std():.2f}")

stream = AutoMLClassifier(seed=1)
for start in range(0, 1500, 500):
    part = slice(start, start + 500)
    stream.partial_fit(X[part], y[part], classes=sorted(set(y)))
    print(f"after {start + 500:5,} rows: right labels of the last 500 {stream.score(X[1500:], y[1500:]):.2f}")
