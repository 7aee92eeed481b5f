"""Pictures of searches, runs, champions, policies and studies, in one look, light or dark.

Each function returns a `Picture`, which a notebook shows and `Picture.save` writes as SVG, PNG or PDF. They
need matplotlib, the extra ``plot``, which is imported when the first picture is drawn.
"""

from onlineauto.pictures.crossings import crossings
from onlineauto.pictures.picture import Picture, check_picture
from onlineauto.pictures.race import race
from onlineauto.pictures.rewards import rewards
from onlineauto.pictures.studies import study_picture
from onlineauto.pictures.values import values

__all__ = [
    "Picture",
    "check_picture",
    "crossings",
    "race",
    "rewards",
    "study_picture",
    "values",
]
