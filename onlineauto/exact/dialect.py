"""The dialect of Vowpal Wabbit: the rules of input, the reader of text, and the layout of namespaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.stream.dialect import Dialect
from onlineauto.exact.options import READING
from onlineauto.exact.text_kernels import read_vw_lines
from onlineauto.features.interactions import WILDCARD, compile_products
from onlineauto.features.layout import Keys, StreamLayout
from onlineauto.features.slots import INDEX_NAME, SLOT_NAME
from onlineauto.formats.text_reader import TextReader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


_BYTES = 256
_CONSTANT, _DEFAULT = 128, 32
_FIRST_LETTER, _LAST_LETTER = 32, 126
"""Wildcards match namespaces that begin with one of these bytes."""


class VwLayout(StreamLayout):
    """A layout whose group keys are first bytes: two names with the same first byte are one group.

    Wildcards match printable first bytes, without a limit on the number of products. A second walk over the
    features of an event (`again`) crosses only the products that VW knows outside its reductions: no
    wildcards, and no products chosen by a search.
    """

    bytewise = True

    def crossable(self) -> NDArray[np.bool_]:
        """Return for each group key whether its namespace can be crossed: bool[256]."""
        return np.array([self._interacts(bytes([key])) for key in range(_BYTES)])

    def name_of(self, key: int) -> bytes:
        """Return the first byte that belongs to a group key."""
        return bytes([key])

    def keys(self) -> dict[bytes, int]:
        """Return the group keys of all first bytes."""
        return {bytes([key]): key for key in range(_BYTES)}

    def _make_keys(self, known: Sequence[bytes]) -> dict[bytes, int]:
        """Return no keys: VW has keys of first bytes, not of names."""
        del known
        return {}

    def _identity_of(self, name: bytes) -> bytes:
        """Return the first byte of a name, which identifies the namespace."""
        return name[:1]

    def _interacts(self, name: bytes) -> bool:
        """Return whether wildcards match a namespace: a printable first byte, or slots', and not ignored."""
        letter = _FIRST_LETTER <= name[0] <= _LAST_LETTER or name[:1] == SLOT_NAME
        return letter and super()._interacts(name)

    def _has_capacity(self) -> bool:
        """Return True: VW has no limit on products."""
        return True

    def _keys_of(self, names: Sequence[bytes]) -> Keys:
        """Return first bytes as the keys of namespaces."""
        return Keys(
            key=np.array([name[0] for name in names], np.int32),
            n=_BYTES,
            constant=_CONSTANT,
            default=_DEFAULT,
            slot=SLOT_NAME[0],
            slot_index=INDEX_NAME[0],
        )

    def _present(self, products: Sequence[tuple[bytes, ...]]) -> list[bool] | None:
        """Return None: all products are present, since every first byte has a key."""
        del products
        return None

    def _factors(self, products: Sequence[tuple[bytes, ...]]) -> list[tuple[int, ...]]:
        """Return the first bytes of the factors of products."""
        return [tuple(name[0] for name in product) for product in products]

    def _make_interactions(self) -> None:
        """Compile the products, and those without wildcards separately for a second walk (`again`)."""
        super()._make_interactions()
        plain = [terms for terms in self._products if WILDCARD not in terms]
        if plain != self._products:
            keep_duplicates = self._options.leave_duplicate_interactions
            products = compile_products(plain, (), keep_duplicates=keep_duplicates)
            self.again = self._assemble(products, np.ones((len(products), self._n_slots), bool))


class VwTextReader(TextReader):
    r"""Iterator over the events of a VW text, in Blocks, read with VW's oddities and warnings.

    Parameters, attributes and errors are those of `TextReader`. A label that is fatal to VW raises a
    `ParseError`.

    Source: VW 9.11.9, ``parse_example_text.cc``.

    >>> from onlineauto.formats.lines.reader_state_kernels import ReaderRules
    >>> [len(block) for block in VwTextReader(b"1 |a x\n\n2 |a y\n", ReaderRules())]
    [2]
    """

    quirks = READING
    _read_lines = staticmethod(read_vw_lines)


VW = Dialect(rules={"vw_exact": True}, layout=VwLayout, text=VwTextReader, quirks=READING, counts_lines=True)
"""The dialect of VW: a separate reader of text, JSON with quirks; ``--examples`` counts lines of a text."""
