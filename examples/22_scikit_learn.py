"""Use a classifier in scikit-learn: a pipeline, cross-validation, and rows that arrive in parts.

Needs the extra `sklearn`. `partial_fit` learns rows in their order, as a stream: rows that are sorted by
class, as in many tables, have to be shuffled first.
"""

from sklearn.datasets import load_wine
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import shuffle

from onlineauto.sklearn import AutoMLClassifier

X, y = load_wine(return_X_y=True)
model = make_pipeline(StandardScaler(), AutoMLClassifier(seed=1))
scores = cross_val_score(model, X, y, cv=5)
print(f"right labels {scores.mean():.2f} ± {scores.std():.2f}")

X, y = shuffle(X, y, random_state=1)
stream = AutoMLClassifier(seed=1)
for start in range(0, 120, 40):
    rows = slice(start, start + 40)
    stream.partial_fit(X[rows], y[rows], classes=[0, 1, 2])
    print(f"after {start + 40} rows: right labels of the last 58 rows {stream.score(X[120:], y[120:]):.2f}")
