"""N-grams and vectors, compared with lists."""

from __future__ import annotations

import random

import numpy as np
import pytest

from onlineauto.features.grams import Grams
from onlineauto.features.options import FeatureOptions
from onlineauto.features.records import FEATURE
from onlineauto.features.vector_kernels import settle_zeros
from tests.naive.blocks import Line, Span, make_block
from tests.naive.grams import Feature, grams, is_vector, settled
from tests.naive.lines import unpack

NAMES = (b"a", b"ab", b"b")


def drawn(random_: random.Random) -> list[Feature]:
    """Draw features, half of the time with consecutive hashes."""
    n, first = random_.choice([0, 1, 5, 15, 16, 20]), random_.choice([7, 2**32 - 8])
    near = random_.random() < 0.5
    hashes = [(first + i) % 2**32 if near else random_.randrange(2**32) for i in range(n)]
    return [(hash_, random_.choice([0.0, 1.0, -0.5])) for hash_ in hashes]


@pytest.mark.parametrize("seed", range(50))
def test_zeros_remain_only_in_vectors(seed: int) -> None:
    features = drawn(random.Random(seed))
    records = np.array([(9, 0.0), *features], FEATURE)
    end = settle_zeros(records, 1, len(records))
    assert records[1:end].tolist() == settled(features)


@pytest.mark.parametrize("bytewise", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_the_kernel_equals_lists(seed: int, *, bytewise: bool) -> None:
    random_ = random.Random(seed)
    sizes, skips = (2, 4), (0, 2)  # of namespaces that begin with a, and with b
    options = FeatureOptions(ngram=("9", "a2", "b4"), skips=("1", "a0", "b2"))
    counts = [random_.randrange(4) for _ in range(4)]
    lines: list[list[Span]] = [
        [(random_.choice(NAMES), tuple(drawn(random_))) for _ in range(n_spans)] for n_spans in counts
    ]
    block = make_block([tuple(Line(spans=tuple(spans)) for spans in lines)])
    names = block.namespaces.names
    key = np.array([name[0] if bytewise else i for i, name in enumerate(names)], np.int32)
    expanded = Grams(options, bytewise=bytewise).expand(block, key)
    [event] = unpack([expanded])
    for line, spans in zip(event, lines, strict=True):
        spans = [(name, features) for name, features in spans if features]
        expected = [(name, list(features)) for name, features in spans]
        for group in dict.fromkeys(name[:1] if bytewise else name for name, _ in spans):
            own = [each for each in spans if each[0] == group or (bytewise and each[0][:1] == group)]
            words = [
                hash_
                for _, features in own
                if bytewise or not is_vector(list(features))
                for hash_, _ in features
            ]
            kind = b"ab".index(group[:1])
            if found := grams(words, sizes[kind], skips[kind]):
                expected.append((own[0][0], [(hash_, 1.0) for hash_ in found]))
        assert line.spans == expected
