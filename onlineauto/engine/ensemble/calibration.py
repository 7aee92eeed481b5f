"""Prices of scores, calibrated to processor time; ``python -m bench.speed.prices`` writes this file."""

CHAMPION = 91
"""The champion's price: this constant plus the number of weights that it touches for an event."""

PRICES: dict[str, tuple[float, float]] = {
    "features": (0.11, 724),
    "waves": (0.068, 0),
    "crosses one by one": (0.67, 0),
    "crosses in pairs": (0.28, 23),
    "crosses in triples": (0.4, 23),
    "layer": (0.058, 0),
    "baseline": (0.58, 23),
    "ridge": (0.19, 181),
    "means": (0.57, 91),
    "trees": (0.24, 512),
    "vectors": (0.013, 2896),
    "linear": (0.063, 362),
}
"""A score's price: its factor times the sum of its constant and the work that its member counts."""
