"""Renewal: where there are more features than inputs, the most used ones replace the least used ones.

Once the capacity for inputs is exhausted, the uses of inputs and of features without an input are counted:
of the latter, in a table of few entries, each of which counts the feature that is the majority of those
that share it. A renewal follows when half of all events, at least 512 and at most 16,384, have been counted:
a waiting feature replaces the word that was used least, if that was used less than half as often. The weights
of a replaced input begin from scratch, and so do all counts.

Source: Boyer and Moore, *MJRTY: a fast majority vote algorithm*, 1991.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.records.ensemble import MOST_FEATURES, InputKind, Known
from onlineauto.features.hash_constants import GOLDEN
from onlineauto.features.table_kernels import remove, slot_of_key
from onlineauto.jit import inline_kernel, kernel

if TYPE_CHECKING:
    from onlineauto.engine.records.ensemble import Inputs

FIRST, LATER = 512, 16_384
"""Minimum and maximum number of counted events from one renewal to the next."""
FEW = 8
"""Uses that count too little for a feature to become an input."""
_GOLDEN, _SHIFT = np.uint64(GOLDEN), np.uint64(40)


@inline_kernel
def is_counted(inputs: Inputs) -> bool:
    """Return whether uses are counted: the capacity for inputs is exhausted."""
    return bool(inputs.tally[Known.FEATURES] == MOST_FEATURES)


@inline_kernel
def count_use(inputs: Inputs, feature: np.uint64) -> None:
    """Count the use of a feature of a learnt event."""
    key, renewal = feature + np.uint64(1), inputs.renewal
    slot = slot_of_key(inputs.feature, key)
    if inputs.feature[slot] != 0:
        renewal.uses[inputs.input[slot]] += 1
        return
    at = int((key * _GOLDEN) >> _SHIFT) & (len(renewal.waiting) - 1)
    if renewal.votes[at] == 0:
        renewal.waiting[at] = key
    renewal.votes[at] += 1 if renewal.waiting[at] == key else -1


@kernel
def _least_used(inputs: Inputs) -> int:
    """Return the word that was used least; 0 if there is none."""
    uses, least = inputs.renewal.uses, 0
    for at in range(1, inputs.tally[Known.FEATURES]):
        if inputs.number[at] == InputKind.WORD and (least == 0 or uses[at] < uses[least]):
            least = at
    return least


@kernel
def _most_wanted(inputs: Inputs) -> int:
    """Return the entry of the waiting feature that was used most."""
    votes, most = inputs.renewal.votes, 0
    for entry in range(len(votes)):
        if votes[entry] > votes[most]:
            most = entry
    return most


@kernel
def _replace_feature(inputs: Inputs, key: np.uint64, at: int) -> None:
    """Make a feature that of an input, in place of the one that it was."""
    for slot in range(len(inputs.feature)):
        if inputs.feature[slot] != 0 and inputs.input[slot] == at:
            remove(inputs.feature, inputs.input, slot)
            break
    slot = slot_of_key(inputs.feature, key)
    inputs.feature[slot], inputs.input[slot] = key, at


@kernel
def renew_inputs(inputs: Inputs) -> bool:
    """Replace inputs after a learnt event, if a renewal is due; return whether any was replaced."""
    renewal, total = inputs.renewal, inputs.seen[len(inputs.seen) - 1]
    if not is_counted(inputs):
        return False
    renewal.uses[0] += 1
    if renewal.uses[0] < min(max(total // 2, FIRST), LATER):
        return False
    renewed = False
    while True:
        most, at = _most_wanted(inputs), _least_used(inputs)
        if at == 0 or renewal.votes[most] <= 2 * renewal.uses[at] + FEW:
            break
        _replace_feature(inputs, renewal.waiting[most], at)
        renewal.uses[at], renewal.votes[most] = renewal.votes[most], 0
        inputs.names[at], inputs.amount[at] = -1, 0.0
        renewal.at[at] = total
        renewed = True
    renewal.uses[:] = 0
    renewal.votes[:] = 0
    return renewed


@inline_kernel
def is_renewed(inputs: Inputs, at: int) -> bool:
    """Return whether an input was replaced after the last learnt event."""
    return bool(0 < inputs.renewal.at[at] == inputs.seen[len(inputs.seen) - 1])
