"""JSON with explicit names of features: written for logs, and made of JSON whose strings are values.

In ``{"user":{"user=tom":1.0}}`` each feature is in a namespace, and its name is explicit, so the rule by
which strings become names has no effect. `ExplicitNames` turns lines into this form by the rule of dicts.
"""

from __future__ import annotations

import json
import math
import re
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from onlineauto.errors import InputError
from onlineauto.formats.json_reader import JsonReader
from onlineauto.formats.mappings.identities import MOST_NUMBERS, identity, named, numbers_in
from onlineauto.formats.mappings.name_hashes import NameHashes
from onlineauto.formats.mappings.named_event import NamedLine, spans_of, vector_in, vector_of
from onlineauto.formats.mappings.values import as_list
from onlineauto.formats.options import FORMATS
from onlineauto.formats.text.writer import number_word

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from onlineauto.features.block import Rules
    from onlineauto.features.event import Line
    from onlineauto.formats.lines.diagnostics import Diagnostics
    from onlineauto.formats.lines.event_source import EventRules
    from onlineauto.formats.lines.reader_state_kernels import ReaderRules
    from onlineauto.formats.mappings.identities import Identities
    from onlineauto.formats.sources.source import ByteSource, Source

_MOST: Final = 1 << 16
"""Maximum number of cached texts."""
_BEFORE: Final = b" \t\r\xef\xbb\xbf"
"""Bytes before a line's object: blanks and the bytes of a byte order mark."""
_KNOWN: Final = re.compile(
    "_(label.*|multi|slots|slot_id|text|tag|inc|a|p|ba|outcomes|original_label_cost|skipLearn|_aid)$",
    re.DOTALL,
)
"""Members that Vowpal Wabbit knows; others whose names begin with ``_`` are features."""
_LINES: Final = "_multi", "_slots"
"""Members that are lists of objects with features."""
MARK: Final = b'{"NameColumns":'
"""Begins a line of a log whose names are those of dicts; the columns follow whose numbers are names."""
_HEAD: Final = 1 << 12
"""Number of bytes, beside the first line, in which names of Vowpal Wabbit are looked for."""
_REPLACED: Final = frozenset(" \t|:")


class FeatureTexts:
    """Writes features as members of a JSON object, with a cache, since most features repeat.

    >>> FeatureTexts().object_of({"user": "tom", "page": {"new": True, "length": 2.5}, "old": None})
    '{"user":{"user=tom":1.0},"page":{"new":1.0,"length":2.5}}'
    """

    def __init__(self, *, hash_seed: int = 0, identities: Identities = frozenset()) -> None:
        self._seed, self._identities = hash_seed, identities
        self._known: dict[tuple[Any, ...], str] = {}
        self.numbers: set[str] = set()  # columns that had numbers

    def object_of(self, features: Mapping[str, Any]) -> str:
        """Return the features of a context, or of an action, as a JSON object."""
        return object_of(self.members(features.items()))

    def members(self, features: Iterable[tuple[str, Any]]) -> Iterator[str]:
        """Yield the members for each namespace; see `object_of`."""
        known = self._known
        for namespace, value in features:
            value = as_list(value)
            kind = type(value)
            if kind is list and (vector := vector_in(value)) is not None and namespace not in ("", " "):
                yield _array(namespace, vector)
                continue
            if kind is dict:
                key: tuple[Any, ...] = namespace, kind, tuple(value.items()), *map(type, value.values())
            elif kind is list:
                key = namespace, kind, tuple(value), *map(type, value)
            else:
                key = namespace, kind, value
            try:
                text = known.get(key)
            except TypeError:  # the value is malformed, or not hashable
                yield from self._members(namespace, value)
                continue
            if text is None:
                if len(known) >= _MOST:
                    known.clear()
                text = known[key] = ",".join(self._members(namespace, value))
            if text:
                yield text

    def _members(self, namespace: str, value: Any) -> Iterator[str]:
        features = named({namespace: value}, self._identities)
        if len(self.numbers) < MOST_NUMBERS:
            self.numbers.update(numbers_in(features))
        line = NamedLine(spans=spans_of(features))
        return members_of(line, NameHashes(hash_seed=self._seed), self._seed)


class ExplicitNames:
    """Rewrites lines of JSON or of a log, so that each feature has the name that a dict gives it.

    A line of a `log` has its features in ``c``. A line that cannot be rewritten is made malformed, so that
    the reader reports it, and does not read it by the rule of Vowpal Wabbit.

    >>> ExplicitNames(log=False).line(b'{"_label":1,"user":"tom","page":{"id":7}}')
    b'{"_label":1,"user":{"user=tom":1.0},"page":{"id":7.0}}'
    """

    def __init__(self, *, log: bool, hash_seed: int = 0, identities: Identities = frozenset()) -> None:
        self._log, self._texts = log, FeatureTexts(hash_seed=hash_seed, identities=identities)
        self.numbers = self._texts.numbers

    def line(self, line: bytes) -> bytes:
        """Return a line, rewritten unless its names are explicit already."""
        if line.startswith(MARK):
            return line
        try:
            members = _decoded(line)
            if not isinstance(members, _Members):
                return line
            if self._log:
                words = (
                    f"{_dumped(key)}:{(self._object if key == 'c' else _text)(item)}" for key, item in members
                )
                return object_of(words).encode("utf-8", "surrogateescape")
            return self._object(members).encode("utf-8", "surrogateescape")
        except (ValueError, RecursionError, InputError):
            return line + b"{"

    def bytes_of(self, source: ByteSource) -> ByteSource:
        """Return a source with all lines rewritten."""
        return cast("ByteSource", _ExplicitBytes(source, self))

    def text(self, text: bytes) -> bytes:
        """Return lines, rewritten."""
        return b"\n".join(
            [self.line(line) if line.lstrip(_BEFORE)[:1] == b"{" else line for line in text.split(b"\n")]
        )

    def _line_members(self, members: _Members) -> Iterator[str]:
        for key, value in members:
            if not _KNOWN.match(key):
                yield from self._texts.members([(key, _value(value))])
            elif key in _LINES and isinstance(value, list):
                yield f"{_dumped(key)}:[{','.join(map(self._object, value))}]"
            else:
                yield f"{_dumped(key)}:{_text(value)}"

    def _object(self, value: Any) -> str:
        return object_of(self._line_members(value)) if isinstance(value, _Members) else _text(value)


def open_json(
    source: Source | ByteSource,
    rules: ReaderRules,
    *,
    diagnostics: Diagnostics | None,
    read_by: Rules,
    event_rules: EventRules,
) -> JsonReader:
    """Return a reader of JSON, which stores `read_by` in its blocks and reads names by `event_rules`."""
    reader = JsonReader(source, rules, diagnostics=diagnostics)
    reader.read_by = read_by
    follow_names(reader, event_rules)
    return reader


def follow_names(reader: JsonReader, rules: EventRules) -> None:
    """Let a reader rewrite texts by the rule of dicts if it has that rule, and look for the rule of texts."""
    log = FORMATS[rules.format].log
    explicit = ExplicitNames(log=log, hash_seed=rules.hash_seed, identities=rules.identities)
    if rules.names == "columns":
        reader.rewrite_by(explicit)
    if rules.names != "any":
        reader.read_by = {**reader.read_by, "names": rules.names, "name_columns": tuple(rules.identities)}
    if rules.native:
        reader.looks_for_names = partial(_look_for_names, log=log, rewritten=explicit.numbers)


def _look_for_names(text: bytes, rules: Rules, *, log: bool, rewritten: set[str]) -> Rules:
    """Return the rules of a text: a log of `AutoML` has them, and strings have names of Vowpal Wabbit."""
    known: Any = rules.get("name_columns", ())
    names, columns = rules.get("names"), {*known}
    offset = -1 if not log else 0 if text.startswith(MARK) else text.rfind(b"\n" + MARK) + 1 or -1
    if offset >= 0:
        end = text.find(b"\n", offset) % (len(text) + 1)
        line = text[offset + len(MARK) : end].decode("utf-8", "replace")
        with suppress(ValueError, TypeError):
            columns.update(json.JSONDecoder().raw_decode(line)[0])
            names = "columns"
    before: Any = rules.get("number_columns", ())
    numbers = rewritten.union(before)
    if names != "vw":
        for members in _objects(text[: max(text.find(b"\n") % (len(text) + 1), _HEAD)], log=log):
            implicit = _note_numbers(members, " ", numbers)
            names = names or ("vw" if implicit else None)
    if names != "columns":
        return {**rules, "names": names} if names and names != rules.get("names") else rules
    numbers -= columns
    if len(columns) == len(known) and len(numbers) == len(before) and names == rules.get("names"):
        return rules
    return {
        **rules,
        "names": names,
        "name_columns": tuple(sorted(columns)),
        "number_columns": tuple(sorted(numbers)),
    }


def _objects(text: bytes, *, log: bool) -> Iterator[_Members]:
    """Yield the objects with features in lines of JSON."""
    for line in text.split(b"\n"):
        try:
            members = _decoded(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(members, _Members):
            for context in [context for key, context in members if key == "c"] if log else [members]:
                if isinstance(context, _Members):
                    yield context


def _note_numbers(members: _Members, namespace: str, numbers: set[str]) -> bool:
    """Add the columns with numbers to `numbers`; return whether names depend on the rule.

    The names of strings do, if these are no words of lists, and those of members that are in no object.
    """
    implicit = False
    for key, value in members:
        if isinstance(value, list):
            top = key in _LINES
            for item in [value] if isinstance(value, _Members) else value:
                if isinstance(item, _Members):
                    implicit |= _note_numbers(item, " " if top else key, numbers)
                else:
                    implicit |= isinstance(item, str) and not (top or _REPLACED.isdisjoint(item))
        elif not key.startswith("_"):
            implicit |= isinstance(value, str) or (namespace == " " and bool(value))
            if isinstance(value, int | float) and "=" not in key:
                numbers.add(identity(key if namespace == " " else namespace, key))
    return implicit


class _ExplicitBytes:
    """The bytes of a source, of which all lines are rewritten by `ExplicitNames`."""

    def __init__(self, source: ByteSource, names: ExplicitNames) -> None:
        self._source, self._names, self.name = source, names, source.name
        self._rest = self._ready = b""
        self.close = source.close

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes, none at the end."""
        while not self._ready:
            data = self._source.read(size)
            lines, end, self._rest = (self._rest + data).rpartition(b"\n") if data else (self._rest, b"", b"")
            self._ready = self._names.text(lines) + end
            if not data:
                break
        taken, self._ready = self._ready[:size], self._ready[size:]
        return taken


class _Members(list[tuple[str, Any]]):
    """Members of a JSON object; a key may occur twice."""


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_dumped: Final = partial(json.dumps, ensure_ascii=False)
_DECODER: Final = json.JSONDecoder(object_pairs_hook=_Members, parse_constant=_refuse)


def _decoded(line: bytes) -> Any:
    """Return the JSON value of a line; bytes that are not UTF-8 are in its texts as surrogates."""
    return _DECODER.decode(line.lstrip(_BEFORE).decode("utf-8", "surrogateescape"))


def _value(value: Any) -> Any:
    """Return a JSON value as mappings and lists; a list adds up equal keys, and the words of a text."""
    if isinstance(value, list) and not isinstance(value, _Members):
        return [_value(item) for item in value]
    if not isinstance(value, _Members):
        return value
    pairs = [(key, _value(item)) for key, item in value if not _KNOWN.match(key)]
    words = [word for key, item in value if key == "_text" and isinstance(item, str) for word in item.split()]
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        return [*({key: item} for key, item in pairs), *words]
    return [mapping, *words] if words else mapping


def _text(value: Any) -> str:
    """Return a JSON value as text, as it was."""
    if isinstance(value, _Members):
        return object_of(f"{_dumped(key)}:{_text(item)}" for key, item in value)
    return f"[{','.join(map(_text, value))}]" if isinstance(value, list) else _dumped(value)


def members_of(line: NamedLine | Line, names: NameHashes, seed: int) -> Iterator[str]:
    """Yield the members of a line's object: tag, features without a namespace, an object per namespace."""
    if line.tag:
        yield f'"_tag":{quoted(line.tag)}'
    merged: dict[tuple[str, bool], list[str]] = {}
    hashed = not isinstance(line, NamedLine)
    for namespace, features in line.spans if isinstance(line, NamedLine) else line.features.items():
        vector = vector_of(features, names.namespace_hash(namespace) if hashed else 0)
        name_of_it = " " if namespace in ("", " ") else namespace
        members = merged.setdefault((name_of_it, vector is not None), [])
        if vector is not None:
            members.append(_array(name_of_it, vector))
            continue
        members += [
            f"{_name(name if hashed else str(name), namespace, names, seed)}:{number_of(value)}"
            for name, value in features
            if value
        ]
    for (namespace, is_array), words in merged.items():
        if namespace == " " or is_array:
            yield from words
        elif words:
            yield f"{_key(namespace)}:{object_of(words)}"


def _key(namespace: str) -> str:
    """Return the name of a namespace as JSON."""
    if namespace.startswith("_") or not _can_be_key(namespace):
        raise InputError(
            f"event: namespace {namespace!r} begins with '_', or has a NUL or bytes that are not UTF-8, "
            "which JSON cannot have there"
        )
    return quoted(namespace)


def _array(namespace: str, vector: list[float]) -> str:
    """Return the member of a namespace that is an array of float32 numbers."""
    if not math.isfinite(sum(vector)):
        raise InputError(f"event: {namespace!r} has a number that is infinite or NaN, which JSON cannot have")
    return f"{_key(namespace)}:{msgspec.json.encode(vector).decode()}"


def _name(name: str | int, namespace: str, names: NameHashes, seed: int) -> str:
    nameless = namespace in ("", " ")
    plain = isinstance(name, str) and name and not name.startswith("_") and _can_be_key(name)
    if plain and not (nameless and seed):
        return quoted(str(name))
    # In JSON a feature without a namespace is hashed with another seed than in text, as in VW.
    base = seed if nameless else names.namespace_hash(namespace)
    return f'"{(names.hash_in(name, namespace) - base) % 2**32}"'


def _can_be_key(name: str) -> bool:
    return "\0" not in name and not any("\ud800" <= letter <= "\udfff" for letter in name)


def quoted(text: str) -> str:
    """Return a text as JSON."""
    if not _can_be_key(text):
        raise InputError(
            f"event: {text!r} has a NUL, or bytes that are not UTF-8, which JSON cannot have there"
        )
    return msgspec.json.encode(text).decode()


def number_of(value: float) -> str:
    """Return a number as JSON: the shortest text of its float32."""
    return number_word(value, "JSON")


def object_of(members: Iterable[str]) -> str:
    """Return the JSON object of members."""
    return "{" + ",".join(members) + "}"
