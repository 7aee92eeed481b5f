"""The tests of a tree that grows: rows in groups, and what the cuts of columns gain in them.

Rows are sorted by group, so that the sums of a group are in the cache while its rows are added up. A group is
a node of the tree or, for costs, the part of a node that has the same output.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.jit import kernel, short_loop
from onlineauto.learners.tree_records import PENALTY, Grown

if TYPE_CHECKING:
    from onlineauto.learners.tree_records import Fit, Trees

_FEW = 8
"""Columns of one cut are added up row by row if a row is above the cut of at most one in so many of them."""


@kernel
def list_present(fit: Fit, columns: int, n: int) -> None:
    """List the columns of one cut whose values are above it, of each row, if these are few."""
    single, total = 0, 0
    for c in range(columns):
        single += 1 if fit.columns.n_cuts[c] == 1 else 0
    for r in range(n):
        listed = 0
        for c in range(columns):
            if fit.columns.n_cuts[c] == 1 and fit.columns.bins[c, r] == 1:
                fit.columns.present[r, listed] = c
                listed += 1
        fit.columns.n_present[r] = listed
        total += listed
    fit.prepared[1] = 1 if total < n * single // _FEW else 0


@kernel
def sort_rows(trees: Trees, fit: Fit, n: int, n_sums: int) -> int:
    """Sort the rows by the groups whose gradients add up: one, or one an output; return their number."""
    by_output, begin, order = len(trees.cost) > 0, fit.rows.begin, fit.rows.order
    model, first, n_rows = 1 - trees.tally[Grown.MODEL], trees.tally[Grown.BEGIN] - n, len(trees.length)
    k = trees.outputs[model] if by_output else 1
    begin[: k + 1] = 0
    for r in range(n):
        code = trees.code[(first + r) % n_rows] if by_output else 0
        fit.rows.node[r] = code  # until the rows are sorted
        begin[code + 1] += 1
    for c in range(k):
        begin[c + 1] += begin[c]
        fit.rows.next[c] = begin[c]
    for r in range(n):
        code = fit.rows.node[r]
        order[fit.rows.next[code]] = r
        fit.rows.next[code] += 1
        fit.rows.node[r] = 0
    copy_sorted(fit, int(k), n, n_sums)
    return int(k)


@kernel
def copy_sorted(fit: Fit, n_groups: int, n: int, n_sums: int) -> None:
    """Copy the gradients in the order of rows, and add up those of each group."""
    for i in range(n):
        row = fit.rows.order[i]
        for s in range(n_sums + 1):
            short_loop()
            fit.rows.sorted[i, s] = fit.rows.gradient[row, s]
    fit.total[:n_groups] = 0.0
    for group in range(n_groups):
        for i in range(fit.rows.begin[group], fit.rows.begin[group + 1]):
            for s in range(n_sums + 1):
                short_loop()
                fit.total[group, s] += fit.rows.sorted[i, s]


@kernel
def _add_up_below(fit: Fit, column: int, begin: int, end: int) -> None:
    """Fill the sums of gradients in the lower of two bins, in four sums, so that none waits."""
    bins, order, sorted_rows, last = (
        fit.columns.bins[column],
        fit.rows.order,
        fit.rows.sorted,
        end - (end - begin) % 2,
    )
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for i in range(begin, last, 2):
        one, two = 1.0 - bins[order[i]], 1.0 - bins[order[i + 1]]
        a += one * sorted_rows[i, 0]
        b += one * sorted_rows[i, 1]
        c += two * sorted_rows[i + 1, 0]
        d += two * sorted_rows[i + 1, 1]
    for i in range(last, end):
        one = 1.0 - bins[order[i]]
        a += one * sorted_rows[i, 0]
        b += one * sorted_rows[i, 1]
    fit.histogram[0], fit.histogram[1] = a + c, b + d


@kernel
def _add_up(fit: Fit, column: int, begin: int, end: int, width: int) -> None:
    """Fill the sums of gradients in each bin of a column, of the sorted rows of a group."""
    histogram, bins, order, sorted_rows = (
        fit.histogram,
        fit.columns.bins[column],
        fit.rows.order,
        fit.rows.sorted,
    )
    histogram[: (fit.columns.n_cuts[column] + 1) * width] = 0.0
    if width == 2 and fit.columns.n_cuts[column] == 1:
        _add_up_below(fit, column, begin, end)
        return
    if width == 2:
        for i in range(begin, end):
            at = 2 * bins[order[i]]
            histogram[at] += sorted_rows[i, 0]
            histogram[at + 1] += sorted_rows[i, 1]
        return
    for i in range(begin, end):
        at = width * bins[order[i]]
        for s in range(width):
            short_loop()
            histogram[at + s] += sorted_rows[i, s]


@kernel
def gains_of(fit: Fit, column: int, n_groups: int, n_sums: int) -> None:
    """Write what the cuts of a column gain in all groups of rows; a group of one row gains nothing."""
    width, n_cuts, gain, left, histogram = (
        n_sums + 1,
        fit.columns.n_cuts[column],
        fit.gain,
        fit.left,
        fit.histogram,
    )
    gain[:] = 0.0
    for group in range(n_groups):
        begin, end = fit.rows.begin[group], fit.rows.begin[group + 1]
        if end - begin < 2:
            continue
        _add_up(fit, column, begin, end, width)
        whole, of_all = fit.total[group], fit.total[group, n_sums]
        for s in range(width):
            short_loop()
            sums = 0.0
            for b in range(n_cuts):
                sums += histogram[b * width + s]
                left[s, b] = sums
        below = left[n_sums]
        for s in range(n_sums):
            short_loop()
            own, one = whole[s], left[s]
            before = own * own / (of_all + PENALTY)
            for b in range(n_cuts):
                low, high = one[b] * one[b], (own - one[b]) * (own - one[b])
                lower, higher = below[b] + PENALTY, of_all - below[b] + PENALTY
                gain[b] += (low * higher + high * lower) / (lower * higher) - before


@kernel
def gains_of_one_cut(fit: Fit, columns: int, n_tested: int, n_groups: int, n_sums: int) -> None:
    """Write what the cut of each tested column of one cut gains, from the rows above it."""
    width, above, gain = n_sums + 1, fit.histogram, fit.gain_of
    gain[:columns] = 0.0
    for group in range(n_groups):
        begin, end = fit.rows.begin[group], fit.rows.begin[group + 1]
        if end - begin < 2:
            continue
        above[: columns * width] = 0.0
        for i in range(begin, end):
            row = fit.rows.order[i]
            for j in range(fit.columns.n_present[row]):
                at = width * fit.columns.present[row, j]
                for s in range(width):
                    short_loop()
                    above[at + s] += fit.rows.sorted[i, s]
        whole, of_all = fit.total[group], fit.total[group, n_sums]
        for at in range(n_tested):
            c = fit.columns.tested[at]
            upper = above[c * width + n_sums] + PENALTY
            lower = of_all - upper + 2.0 * PENALTY
            for s in range(n_sums):
                short_loop()
                own, one = whole[s], above[c * width + s]
                low, high = (own - one) * (own - one), one * one
                gain[c] += (low * upper + high * lower) / (lower * upper) - own * own / (of_all + PENALTY)


@kernel
def divide(fit: Fit, column: int, cut: int, n_groups: int) -> None:
    """Divide each group of rows, and their nodes, by a cut of a column, or by none if it is -1."""
    order, begin, bins = fit.rows.order, fit.rows.begin, fit.columns.bins[column]
    for group in range(n_groups - 1, -1, -1):
        first, end = begin[group], begin[group + 1]
        n_left, n_right = 0, 0
        for i in range(first, end):
            row = order[i]
            right = cut >= 0 and bins[row] > cut
            fit.rows.node[row] = 2 * fit.rows.node[row] + (1 if right else 0)
            if right:
                fit.rows.next[n_right] = row
                n_right += 1
            else:
                order[first + n_left] = row
                n_left += 1
        for i in range(n_right):
            order[first + n_left + i] = fit.rows.next[i]
        begin[2 * group + 2], begin[2 * group + 1] = end, first + n_left
    begin[0] = 0
