"""``LineNames``: the names of a line's features by hash, since Blocks have only the hashes.

``RememberedLines`` is a source whose lines can be read again while it is being parsed.
"""

from __future__ import annotations

import io
import json
import re
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from onlineauto.features.block import DEFAULT
from onlineauto.formats.mappings.name_hashes import NameHashes
from onlineauto.formats.sources.source import ByteSource

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from onlineauto.formats.sources.source import Source

_NAMESPACE = re.compile(r"([^ \t|:\r]*)(?::[^ \t|\r]*)?")
_FEATURE = re.compile(
    r"""([^ \t|:\r]*)
    (?::(?:([-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)(?=[ \t\r|]|$)|([ \t\r]*)([^ \t\r]*)))?""",
    re.VERBOSE,
)
"""A name, and a number or a string after a colon; with ``--vw_exact`` the string may contain bars."""
_BEGINS = re.compile(r"[-+]?(?:\.?[0-9]|inf|nan)", re.IGNORECASE)
"""The beginning of a string that VW reads as a number, whatever follows."""
_REPLACED = str.maketrans(" \t|:", "____")
_NO_NAME = DEFAULT.decode()


class _Members(list[tuple[str, Any]]):
    """Members of a JSON object; a key may occur twice."""


_Json: TypeAlias = _Members | list[Any] | str | float | None


class Word(NamedTuple):
    """A feature of a line of VW text."""

    name: str  # The part before the colon.
    number: str  # The part after the colon: a number; or blanks and any other string.
    blanks: str
    string: str


def words_of(line: str) -> Iterator[tuple[str, list[Word]]]:
    """Yield each namespace that a line of VW text opens, with its features.

    >>> [(each, [word.name for word in words]) for each, words in words_of("1 |user:2 tom age:0.5 | :3")]
    [('user', ['tom', 'age']), (' ', [''])]
    """
    at = line.find("|")
    while 0 <= at < len(line) and line[at] == "|":
        match = _NAMESPACE.match(line, at + 1)
        assert match is not None
        namespace, at = match[1] or _NO_NAME, match.end()
        words = []
        while at < len(line) and line[at] in " \t":
            feature = _FEATURE.match(line, at + 1)
            assert feature is not None
            at = feature.end()
            if feature[0]:
                words.append(Word(*feature.groups("")))
        yield namespace, words


class LineNames:
    r"""The names of the features of some lines, by namespace and hash, in the form of Vowpal Wabbit's audit.

    A string value follows its name after ``^``. A feature without a name has the empty name.

    Examples
    --------
    >>> names = LineNames()
    >>> names.read("0 |user tom day:monday")
    >>> names.name_of(b"user", 3513260458, seed=0)
    'user^tom'
    >>> names.name_of(b"user", 12, seed=5)
    'user^7'
    """

    def __init__(
        self,
        *,
        as_vw: bool = False,
        json: bool = False,
        log: bool = False,
        chain_hash: bool = False,
        hash: str = "strings",  # noqa: A002 - the option's name
        hash_seed: int = 0,
    ) -> None:
        self._as_vw, self._json, self._log, self._chained = as_vw, json or log, log, chain_hash
        self._hashes = NameHashes(hash=hash, hash_seed=hash_seed)
        self._default = self._hashes.hash(_NO_NAME, hash_seed) if self._json else 0
        self._found: dict[tuple[str, int], list[str]] = {}

    def forget(self) -> None:
        """Remove all names."""
        self._found.clear()

    def name_of(self, namespace: bytes, hash_: int, *, seed: int) -> str:
        """Return the name of a feature; if its name is unknown, the number with the same hash."""
        name = namespace.decode("utf-8", "surrogateescape")
        names = self._found.get((name, hash_))
        known_name = names.pop(0) if names else str((hash_ - seed) % 2**32)
        if names is not None:
            names.append(known_name)  # several names with one hash are returned in turn
        return known_name if name == _NO_NAME else f"{name}^{known_name}"

    def note(self, namespace: str, feature: str) -> None:
        """Add the name of a feature of a mapping."""
        hash_ = self._hashes.feature(feature, self._hashes.namespace(namespace))
        self._put(namespace, hash_, feature)

    def read(self, line: str) -> None:
        """Add the names of a line."""
        if self._json:
            self._read_json(line)
        else:
            self._read_text(line)

    def _put(self, namespace: str, hash_: int, name: str) -> None:
        self._found.setdefault((namespace, hash_ % 2**32), []).append(name)

    def _read_text(self, line: str) -> None:
        for namespace, words in words_of(line):
            number = self._hashes.namespace(namespace)
            unnamed = self._hashes.namespaces.hashes[number]
            for name, value, blanks, string in words:
                hash_ = self._hashes.feature(name, number)
                number_first = self._as_vw and _BEGINS.match(string) and not blanks.startswith("\t")
                if string and not number_first:
                    self._put(namespace, self._hashes.hash(string, hash_), f"{name}^{string}")
                    continue
                if not value or float(value):  # features of value 0 are not read
                    self._put(namespace, hash_ if name else unnamed, name)
                unnamed += not name

    def _read_json(self, line: str) -> None:
        try:
            members = json.loads(line, object_pairs_hook=_Members)
        except ValueError:  # the reader of the line has reported the error
            return
        for context in [value for key, value in members if key == "c"] if self._log else [members]:
            if isinstance(context, _Members):
                self._read_members(context, _NO_NAME)

    def _seed(self, namespace: str) -> int:
        """Return the hash of a namespace in JSON, where a blank is the name of the default namespace."""
        return self._default if namespace == _NO_NAME else self._hashes.namespace_hash(namespace)

    def _note(self, namespace: str, name: str) -> None:
        self._put(namespace, self._hashes.hash(name, self._seed(namespace)), name)

    def _read_members(self, members: _Members, namespace: str) -> None:
        for key, value in members:
            if key == "_text" and isinstance(value, str):
                for word in re.findall(r"[^ \t]+", value):
                    self._note(namespace, word.translate(_REPLACED))
            elif key == "_multi" and isinstance(value, list):
                self._read_each(value, _NO_NAME)
            elif not key.startswith("_"):
                self._read_member(namespace, key, value)

    def _read_member(self, namespace: str, key: str, value: _Json) -> None:
        if isinstance(value, _Members):
            self._read_members(value, key or _NO_NAME)
        elif isinstance(value, list):
            self._read_each(value, key or _NO_NAME)
        elif not isinstance(value, str):
            self._note(namespace, key)
        elif self._chained:
            text = value.translate(_REPLACED)
            hash_ = self._hashes.hash(text, self._hashes.hash(key, self._seed(namespace)))
            self._put(namespace, hash_, f"{key}^{text}" if text else key)
        else:
            self._note(namespace, key + value.translate(_REPLACED))

    def _read_each(self, elements: Iterable[Any], namespace: str) -> None:
        """Add the names of an array's elements; numbers are named after their index."""
        hash_, position = self._seed(namespace), 0
        for element in elements:
            if element is None:
                continue
            if isinstance(element, _Members):
                self._read_members(element, namespace)
                continue
            if isinstance(element, str):
                self._note(namespace, element.translate(_REPLACED))
            else:
                self._put(namespace, hash_ + position, f"[{position}]")
            position += 1


class RememberedLines(io.BufferedIOBase):
    """A binary file over a source; it stores the lines read until a later line is requested."""

    def __init__(self, source: Source | ByteSource) -> None:
        self._source = source if isinstance(source, ByteSource) else ByteSource(source)
        self.name = self._source.name
        self._number = 1  # number of the first stored line
        self._lines: deque[bytes] = deque()
        self._rest = b""

    def readable(self) -> bool:
        """Return True: the file can be read."""
        return True

    def read1(self, size: int = -1, /) -> bytes:
        """Return up to `size` bytes."""
        data = self._source.read(size if size >= 0 else io.DEFAULT_BUFFER_SIZE)
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._lines.extend(lines)
        return data

    def close(self) -> None:
        """Close the source if this object opened it."""
        self._source.close()
        super().close()

    def text(self, number: int) -> str:
        """Return the line with this number; drop the lines before it."""
        while self._number < number:
            self._lines.popleft()
            self._number += 1
        line = self._lines[0] if self._lines else self._rest
        return line.decode("utf-8", "surrogateescape")
