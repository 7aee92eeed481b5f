"""A hyperparameter from outside the package is searched as those of the package are.

Adding options is for good, so the test has a process of its own.
"""

from __future__ import annotations

from tests.processes import python

CODE = """
import numpy as np
from onlineauto import OptionError, Workspace
from onlineauto.workspace.options import REGISTRY
from tests.options.own_hyperparameter import CautionOptions

REGISTRY.add(CautionOptions)
assert "l2, cb_type, caution." in REGISTRY.meaning(REGISTRY["search"])
try:
    Workspace(cb_explore_adf=True, vw_exact=True, caution=0.25)
except OptionError as error:
    assert str(error).startswith("--caution is not reproduced by --vw_exact"), error
else:
    raise AssertionError("exact mode takes it")

EVENT = b"shared |u a\\n0:-1:0.5 |b y\\n|b z\\n\\n"
given = dict(cb_explore_adf=True, bit_precision=8, learning_rate=0.125)
whole, part = Workspace(**given), Workspace(**given, caution=0.25)
for each in (whole, part):
    each.fit(EVENT)
assert abs(part.weights).sum() > 0
assert (whole.weights != part.weights).any()

searching = Workspace(**given, automl=3, search="caution", lease=1000)
searching.fit(100 * EVENT)
rates = searching.learner.model.settings["rate"][:3].tolist()
print(sorted(rates))
for slot, rate in enumerate(rates):
    again = Workspace(**given, caution=rate, quadratic="ub")  # with which the search begins
    again.fit(100 * EVENT)
    lane = slot * searching.searching.live_configs.arrays.slot_step
    found, expected = (sorted(w[w != 0]) for w in (searching.weights[:, 0, lane], again.weights[:, 0, 0]))
    assert len(found) == 4, (slot, found, expected)
    assert np.allclose(found, expected, rtol=1e-5), (slot, rate, found, expected)
"""


def test_the_hyperparameter_changes_what_a_live_config_learns() -> None:
    assert python("-c", CODE).stdout == "[0.25, 1.0, 4.0]\n"
