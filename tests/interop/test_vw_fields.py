"""``Fields``: a layout is declared once for reading and writing."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlineauto.errors import InputError
from onlineauto.interop.vw.fields import FieldReader, FieldWriter, checksum_of
from onlineauto.interop.vw.file import begins_as_vw
from onlineauto.interop.vw.search import (
    NO_SEARCH,
    VwBound,
    VwConfig,
    VwEstimator,
    VwLive,
    VwSearch,
    search_fields,
)

pytestmark = pytest.mark.lane("quick")

_COUNT = st.integers(0, 2**64 - 1)
_BYTE = st.integers(0, 255)
_FLOAT = st.floats(allow_nan=False)
_SINGLE = st.floats(allow_nan=False, width=32)


def _several(*parts: st.SearchStrategy[object]) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(st.tuples(*parts), max_size=3).map(tuple)


_BOUND = st.builds(VwBound, _COUNT, _FLOAT, _FLOAT, _FLOAT, _several(_COUNT, st.booleans(), _FLOAT))
_ESTIMATOR = st.builds(VwEstimator, _COUNT, _FLOAT, _FLOAT, _BOUND, _BOUND)
_CODE = st.integers(-(2**31), 2**31 - 1)
_ELEMENTS = st.lists(st.binary(max_size=3), max_size=3).map(tuple)
_SEARCH = st.builds(
    VwSearch,
    _COUNT,
    _COUNT,
    _several(_BYTE, _COUNT),
    st.lists(st.builds(VwConfig, _ELEMENTS, _COUNT, _CODE, _CODE), max_size=3).map(tuple),
    st.lists(st.builds(VwLive, _ESTIMATOR, _COUNT, st.booleans(), _ESTIMATOR), max_size=2).map(tuple),
    _several(_SINGLE, _COUNT),
)


@given(_SEARCH)
def test_written_fields_are_read_back(search: VwSearch) -> None:
    writer = FieldWriter()
    assert search_fields(writer, search) == search
    data = b"".join(writer.parts)
    reader = FieldReader(data, name="it")
    assert search_fields(reader, NO_SEARCH) == search
    assert reader.at == len(data)
    for end in range(0, len(data), max(len(data) // 20, 1)):
        with pytest.raises(InputError, match="it is not a whole model file of Vowpal Wabbit: it was cut off"):
            search_fields(FieldReader(data[:end], name="it"), NO_SEARCH)


def test_a_count_beyond_the_file_takes_no_memory() -> None:
    reader = FieldReader(struct.pack("<IQ", 2**32 - 1, 0), name="it")
    with pytest.raises(InputError, match="cut off"):
        reader.items((), lambda _: reader.number("Q", 0), empty=0)


def test_the_checksum_goes_from_field_to_field() -> None:
    assert checksum_of([]) == 0
    assert checksum_of([b"test"]) == 3127628307  # as MurmurHash3 has it
    assert checksum_of([b"te", b"st"]) != checksum_of([b"test"])


def test_models_are_recognized_by_their_first_bytes() -> None:
    assert begins_as_vw(b"\x07\0\0\x009.11.9\0\x01")
    assert begins_as_vw(b"\x06\0\0\x008.9.0\0\x01")
    assert not begins_as_vw(b"1 |a x:9.11.9")
    assert not begins_as_vw(b"")
