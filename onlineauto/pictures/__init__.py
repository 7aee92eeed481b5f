"""Pictures of searches, runs, champions, policies and studies, in one style, light or dark.

Each function returns a `Picture`, which a notebook displays and `Picture.save` writes as SVG, PNG or PDF.
Drawing needs matplotlib, the extra ``plot``, which is imported with the first picture.
"""

from onlineauto.pictures.picture import Picture, check_picture, crossings, effects, parts
from onlineauto.pictures.race import race
from onlineauto.pictures.runs import rewards
from onlineauto.pictures.studies import front_picture, study_picture
from onlineauto.pictures.values import values

__all__ = [
    "Picture",
    "check_picture",
    "crossings",
    "effects",
    "front_picture",
    "parts",
    "race",
    "rewards",
    "study_picture",
    "values",
]
