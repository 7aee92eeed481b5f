"""Prices of scores, calibrated to processor time; ``python -m bench.speed.prices`` writes this file."""

CHAMPION = 128
"""The champion's price: this constant plus the number of weights that it touches for an event."""

PRICES: dict[str, tuple[float, float]] = {
    "features": (0.11, 1024),
    "waves": (0.07, 0),
    "crosses one by one": (0.52, 11),
    "crosses in pairs": (0.25, 64),
    "crosses in triples": (0.41, 64),
    "layer": (0.063, 0),
    "baseline": (0.43, 64),
    "ridge": (0.18, 181),
    "means": (0.88, 45),
    "trees": (0.17, 1024),
    "vectors": (0.011, 2896),
    "linear": (0.063, 724),
}
"""A score's price: its factor times the sum of its constant and the work that its member counts."""
