"""The tests of a tree that grows: rows in groups, and what the cuts of columns gain in them.

Rows are sorted by group, so that the sums of a group are in the cache while its rows are added up. A group is
a node of the tree or, for costs, the part of a node that has the same output.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.jit import kernel, short_loop
from onlineauto.learners.tree_records import FEW, LEAVES, PENALTY, Grown

if TYPE_CHECKING:
    from onlineauto.learners.tree_records import Fit, Trees


@kernel
def list_present(fit: Fit, columns: int, n: int) -> None:
    """List the columns of one cut whose values are above it, of each row, if these are few."""
    single, total = 0, 0
    for c in range(columns):
        if fit.columns.n_cuts[c] == 1:
            single += 1
            for r in range(n):
                total += fit.columns.bins[c, r]
    fit.prepared[1] = 1 if total < n * single // FEW else 0
    listed = 0
    for r in range(n if fit.prepared[1] != 0 else 0):
        fit.columns.begin[r] = listed
        for c in range(columns):
            if fit.columns.n_cuts[c] == 1 and fit.columns.bins[c, r] == 1:
                fit.columns.present[listed] = c
                listed += 1
    fit.columns.begin[n] = listed


@kernel
def sort_by_group(trees: Trees, fit: Fit, n: int) -> None:
    """Sort the rows of a fit by the groups whose gradients add up: one for classes, or one an output."""
    by_output, begin = len(trees.cost) > 0, fit.rows.begin_first
    model, n_rows = 1 - trees.tally[Grown.MODEL], len(trees.length)
    first = (trees.tally[Grown.BEGIN] - n) % n_rows
    k = trees.outputs[model] if by_output else 1
    begin[: k + 1] = 0
    for r in range(n):
        row = first + r if first + r < n_rows else first + r - n_rows
        begin[(trees.code[row] if by_output else 0) + 1] += 1
    for c in range(k):
        begin[c + 1] += begin[c]
    for r in range(n):  # each group begins where the one before it ends, until all rows have moved its end
        row = first + r if first + r < n_rows else first + r - n_rows
        code = trees.code[row] if by_output else 0
        fit.rows.order_first[begin[code]] = r
        begin[code] += 1
    for c in range(k, 0, -1):
        begin[c] = begin[c - 1]
    begin[0] = 0


@kernel
def sort_rows(trees: Trees, fit: Fit, n: int, n_sums: int) -> int:
    """Begin a tree with all rows and gradients in the groups of its first node; return their number."""
    k = trees.outputs[1 - trees.tally[Grown.MODEL]] if len(trees.cost) > 0 else 1
    begin, order = fit.rows.begin, fit.rows.order
    for group in range(k + 1):
        begin[group] = fit.rows.begin_first[group]
    for i in range(n):
        row = fit.rows.order_first[i]
        order[i] = row
        for s in range(n_sums + 1):
            short_loop()
            fit.rows.sorted[i, s] = fit.rows.gradient[row, s]
    for group in range(k):
        for s in range(n_sums + 1):
            short_loop()
            total = 0.0
            for i in range(begin[group], begin[group + 1]):
                total += fit.rows.sorted[i, s]
            fit.total[group, s] = total
    return int(k)


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
        if width == 2:
            one, two = 0.0, 0.0
            for b in range(n_cuts):
                one += histogram[2 * b]
                two += histogram[2 * b + 1]
                left[0, b], left[1, b] = one, two
        else:
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
            for j in range(fit.columns.begin[row], fit.columns.begin[row + 1]):
                at = width * fit.columns.present[j]
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
def divide(fit: Fit, column: int, cut: int, n_groups: int, n_sums: int) -> None:
    """Divide each group of rows, with their gradients, by a cut of a column, or by none if it is -1."""
    begin, total = fit.rows.begin, fit.total
    for group in range(n_groups - 1, -1, -1):
        end = begin[group + 1]
        left = end
        if cut < 0:
            for s in range(n_sums + 1):
                short_loop()
                total[2 * group, s], total[2 * group + 1, s] = total[group, s], 0.0
        elif n_sums == 1:
            left = _divide_pairs(fit, column, cut, group)
        else:
            left = _divide_group(fit, column, cut, group, n_sums)
        begin[2 * group + 2], begin[2 * group + 1] = end, left
    begin[0] = 0


@kernel
def _divide_pairs(fit: Fit, column: int, cut: int, group: int) -> int:
    """Divide a group of rows with two sums, without a branch; return where the part above the cut begins."""
    order, bins, pairs = fit.rows.order, fit.columns.bins[column], fit.rows.sorted
    rows_above, above = fit.rows.next, fit.rows.above
    first, end = fit.rows.begin[group], fit.rows.begin[group + 1]
    left, n_above, a, b, c, d = first, 0, 0.0, 0.0, 0.0, 0.0
    for i in range(first, end):
        row, one, two = order[i], pairs[i, 0], pairs[i, 1]
        right = 1 if bins[row] > cut else 0
        order[left], pairs[left, 0], pairs[left, 1] = row, one, two
        rows_above[n_above], above[n_above, 0], above[n_above, 1] = row, one, two
        a += one * (1 - right)
        b += two * (1 - right)
        c += one * right
        d += two * right
        left += 1 - right
        n_above += right
    for i in range(n_above):
        order[left + i] = rows_above[i]
        pairs[left + i, 0], pairs[left + i, 1] = above[i, 0], above[i, 1]
    total = fit.total
    total[2 * group, 0], total[2 * group, 1] = a, b
    total[2 * group + 1, 0], total[2 * group + 1, 1] = c, d
    return int(left)


@kernel
def _divide_group(fit: Fit, column: int, cut: int, group: int, n_sums: int) -> int:
    """Divide a group of rows with any number of sums; return where the part above the cut begins."""
    order, bins, width = fit.rows.order, fit.columns.bins[column], n_sums + 1
    first, end = fit.rows.begin[group], fit.rows.begin[group + 1]
    left, n_above = first, 0
    for i in range(first, end):
        row = order[i]
        right = 1 if bins[row] > cut else 0
        for s in range(width):
            short_loop()
            one = fit.rows.sorted[i, s]
            fit.rows.sorted[left, s] = one
            fit.rows.above[n_above, s] = one
        order[left] = row
        fit.rows.next[n_above] = row
        left += 1 - right
        n_above += right
    for i in range(n_above):
        order[left + i] = fit.rows.next[i]
        for s in range(width):
            short_loop()
            fit.rows.sorted[left + i, s] = fit.rows.above[i, s]
    for s in range(width):
        short_loop()
        below, beyond = 0.0, 0.0
        for i in range(first, left):
            below += fit.rows.sorted[i, s]
        for i in range(left, end):
            beyond += fit.rows.sorted[i, s]
        fit.total[2 * group, s], fit.total[2 * group + 1, s] = below, beyond
    return int(left)


@kernel
def note_leaves(fit: Fit, n_groups: int) -> None:
    """Note the leaf of each row; the rows are in `n_groups` groups, whose leaves repeat."""
    for group in range(n_groups):
        leaf = group % LEAVES
        for i in range(fit.rows.begin[group], fit.rows.begin[group + 1]):
            fit.rows.node[fit.rows.order[i]] = leaf
