"""Odd things to put into the decoded content of a file: other values, types, shapes, sizes and keys."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.workspace.options import REGISTRY

if TYPE_CHECKING:
    import random

    from numpy.typing import NDArray

NUMBERS = (0, 1, -1, 2, 3, 64, 2**31, 2**32 - 1, 2**53 + 1, 2**61, 2**63 - 1, 2**63, 2**64 - 1, -(2**63))
_FLOATS = (0.0, -0.0, 0.5, -1.0, 1.5, 1e-320, 1e39, 1e300, float("nan"), float("inf"), float("-inf"))
_OTHERS: tuple[Any, ...] = (
    None,
    True,
    False,
    "",
    "x",
    "a b",
    "-p stolen",
    b"",
    b"a",
    b"\x8b",
    b"a" * 300,
    [],
    {},
    [1],
    [[]],
)
_DTYPES = ("<f4", "<f8", "<i8", "<u4", "<u8", "|u1", "|b1", ">f4", "<i4", "|O", "|V8", "<M8[s]", "f4,f4", "")
_ARRAY = {"dtype", "shape", "at"}
_WORDS = (
    *(
        "--cb 4",
        "--cb_adf",
        "--ccb_explore_adf",
        "--automl 2",
        "--automl 7",
        "--bag 2",
        "--cover 3",
        "--rnd 2",
    ),
    *("--epsilon_decay", "--vw_exact", "--bit_precision 5", "--bit_precision 13", "--cb_type dr", "-q ::"),
    *("--loss_function logistic", "--first 3", "--squarecb", "--oracle_type rand", "--ccb_no_slot_index"),
    *(
        "--search l1,cb_type",
        "--estimator robust",
        "--initial_weight 0.5",
        "--ignore u",
        "--keep u",
        "-q uuu",
    ),
    *("--power_t 1e30", "--learning_rate 1e30", "--l1 1e30", "'", "--", "x", "--hash_seed 3", "--testonly"),
)
"""What may be added to the options of a model; none takes much memory or time."""


def _places(tree: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where everything in a tree stands, the tree itself left out."""
    found = []
    keys = list(tree) if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    for key in keys:
        found.append((*place, key))
        found += _places(tree[key], (*place, key))
    return found


def _at(tree: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        tree = tree[key]
    return tree


def _odd(draw: random.Random, value: Any) -> Any:
    """Another value, mostly of the same type."""
    if draw.random() < 0.25:
        return copy.deepcopy(draw.choice((*NUMBERS, *_FLOATS, *_OTHERS)))
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return draw.choice((*NUMBERS, value + 1, value - 1, 2 * value, -value))
    if isinstance(value, float):
        return draw.choice((*_FLOATS, -value, value * 1e30, value + 1))
    if isinstance(value, str | bytes) and value:
        text: Any = value
        odd: Any = "\0é'-,|\n" if isinstance(value, str) else b"\0\x8b\xff a"
        at, i = draw.randrange(len(text)), draw.randrange(len(odd))
        turned = text[:at] + odd[i : i + 1] + text[at + 1 :]
        return draw.choice((text[:at], text[at:], text + text, turned))
    if isinstance(value, list):
        return draw.choice((value[::-1], value[:-1], value + value, [*value, None], [value]))
    return draw.choice(_OTHERS)


def _mutate_array(draw: random.Random, array: dict[str, Any]) -> None:
    """Let an array be of another type or shape, or somewhere else."""
    kind, shape = draw.randrange(5), array["shape"]
    if not isinstance(shape, list) or not isinstance(array["at"], int):
        return  # it was mutated before
    if kind == 0:
        array["dtype"] = draw.choice(_DTYPES)
    elif kind == 1 and shape:
        at = draw.randrange(len(shape))
        shape[at] = draw.choice((*NUMBERS, shape[at] + 1, shape[at] - 1))
    elif kind == 2:
        array["shape"] = draw.choice(
            (shape[::-1], [1, *shape], shape[1:], [*shape, 0], [], "x", {}, [1] * 70)
        )
    elif kind == 3:
        array["at"] += draw.choice((-64, -8, 1, 64, 4096))
    else:
        array["at"] = draw.choice((*NUMBERS, None, 1.5))


def mutated_options(draw: random.Random, options: str) -> str:
    """Add options to a command line, among them those that no model keeps; or take some away."""
    words = options.split()
    kind = draw.randrange(4)
    if kind == 0 and words:
        del words[draw.randrange(len(words)) :]
    elif kind == 1:
        option = draw.choice([each for each in REGISTRY.options if not each.keep])
        words += [option.flag] if option.switch else [option.flag, "3" if option.kind is int else "stolen"]
    else:
        words.append(draw.choice(_WORDS))
    return " ".join(words)


def mutated_tree(draw: random.Random, tree: Any) -> Any:
    """Return another tree: with odd values and arrays, more or fewer keys and items, parts exchanged."""
    tree = copy.deepcopy(tree)
    for _ in range(draw.choice((1, 1, 1, 2, 5))):
        places = _places(tree)
        if not places:
            return _odd(draw, tree)
        place = draw.choice(places)
        parent, key, value = _at(tree, place[:-1]), place[-1], _at(tree, place)
        kind = draw.randrange(10)
        if key == "options" and isinstance(value, str):
            parent[key] = mutated_options(draw, value)
        elif isinstance(value, dict) and value.keys() == _ARRAY and kind < 7:
            _mutate_array(draw, value)
        elif kind == 0:
            del parent[key]
        elif kind == 1:
            parent[key] = copy.deepcopy(_at(tree, draw.choice(places)))
        elif kind == 2 and isinstance(parent, list):
            parent.insert(key, copy.deepcopy(value))
        elif kind == 3 and isinstance(value, dict):
            value[draw.choice(("", "x", "cell", 7))] = draw.choice(_OTHERS)
        elif kind == 4:
            for _ in range(draw.choice((2, 30, 200))):
                value = [value] if draw.random() < 0.7 else {"x": value}
            parent[key] = value
        else:
            parent[key] = _odd(draw, value)
    return tree


def _put_odd(draw: random.Random, column: NDArray[Any]) -> None:
    """Let some items of a column be others."""
    if not column.size:
        return
    kind = column.dtype.kind
    flat = column.reshape(-1) if column.flags.c_contiguous else column
    for _ in range(draw.choice((1, 1, 3, 50))):
        at = draw.randrange(len(flat))
        if kind == "f":
            with np.errstate(all="ignore"):
                flat[at] = draw.choice((*_FLOATS, -float(flat[at]), float(flat[at]) + 1))
        elif kind == "b":
            flat.view(np.uint8)[at] = draw.choice((0, 1, 2, 255))
        else:
            number = draw.choice((*NUMBERS, int(flat[at]) + 1, int(flat[at]) - 1, 2 * int(flat[at])))
            bits = 8 * column.dtype.itemsize
            wrapped = number % 2**bits
            signed = kind == "i" and wrapped >= 2 ** (bits - 1)
            flat[at] = wrapped - 2**bits if signed else wrapped


def mutated_arrays(draw: random.Random, tree: Any, arrays: bytearray) -> bytearray:
    """Return the bytes of arrays, with odd numbers in one or some of those that a tree describes."""
    arrays = bytearray(arrays)
    found = [_at(tree, place) for place in _places(tree)]
    found = [
        each for each in found if isinstance(each, dict) and each.keys() == _ARRAY and 0 not in each["shape"]
    ]
    for array in draw.sample(found, min(len(found), draw.choice((1, 1, 2, 4)))):
        count = int(np.prod(array["shape"]))
        _put_odd(draw, np.frombuffer(arrays, array["dtype"], count, array["at"]))
    return arrays


def mutated_records(draw: random.Random, records: NDArray[Any]) -> NDArray[Any]:
    """Return other records: with odd fields, more of them, fewer, or in another order."""
    records, kind = records.copy(), draw.randrange(8)
    if kind == 0:
        return records[: draw.randrange(len(records) + 1)]
    if kind == 1:
        return np.concatenate([records, records[: draw.randrange(len(records) + 1)]])
    if kind == 2:
        return np.ascontiguousarray(records[::-1])
    names = records.dtype.names
    column = records if names is None else records[draw.choice(names)]
    if column.dtype.kind == "b" and len(column):
        column[draw.randrange(len(column))] ^= True
        if draw.random() < 0.5:
            records.view(np.uint8)[:] = _with_odd_bytes(draw, records, column)
    else:
        _put_odd(draw, column)
    return records


def _with_odd_bytes(draw: random.Random, records: NDArray[Any], column: NDArray[Any]) -> NDArray[np.uint8]:
    """Let a truth value of some records be a byte that is neither 0 nor 1."""
    data = records.view(np.uint8).copy()
    offset = column.__array_interface__["data"][0] - records.__array_interface__["data"][0]
    data[offset + draw.randrange(len(records)) * records.itemsize] = draw.choice((2, 7, 128, 255))
    return data
