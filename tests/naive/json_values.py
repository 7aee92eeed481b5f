"""Values of JSON in a line, the slow and obvious way."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from onlineauto.formats.records.problem_code_kernels import ProblemCode
from tests.naive.lines import BadLineError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Scanner"]

_WORDS = {b"true": True, b"false": False, b"null": None}
_ESCAPES = dict(zip(b'"\\/bfnrt', b'"\\/\b\f\n\r\t', strict=True))
_NUMBER = re.compile(rb"-?([0-9]+)(\.[0-9]*)?([eE][+-]?[0-9]*)?")


class Scanner:
    """A line, and how far it is read."""

    def __init__(self, text: bytes, *, exact: bool) -> None:
        self.text, self.exact, self.at = text, exact, 0

    def bad(self, code: ProblemCode, at: int | None = None) -> NoReturn:
        raise BadLineError(code, self.at if at is None else at)

    def peek(self) -> bytes:
        """The byte at hand, none at the end."""
        return self.text[self.at : self.at + 1]

    def blanks(self) -> None:
        while self.peek() and self.peek() in b" \t\r":
            self.at += 1

    def code_point(self) -> str:
        """What follows a backslash and a ``u``; empty if it is malformed."""
        match = re.compile(rb"[0-9a-fA-F]{4}").match(self.text, self.at)
        if match is None:
            return ""
        self.at += 4
        high = int(match[0], 16)
        if not 0xD800 <= high <= 0xDFFF:
            return chr(high)
        match = re.compile(rb"\\u([dD][c-fC-F][0-9a-fA-F]{2})").match(self.text, self.at)
        if high > 0xDBFF or match is None:
            return ""
        self.at += 6
        return chr(((high - 0xD800) << 10) + (int(match[1], 16) - 0xDC00) + 0x10000)

    def string(self) -> tuple[bytes, bool]:
        """The string at hand, and whether it has no escapes."""
        begin, found, plain = self.at, b"", True
        self.at += 1
        while self.peek() not in (b"", b'"') and self.peek() >= b" ":
            byte, escape = self.peek(), self.at
            self.at += 1
            if byte != b"\\":
                found += byte
                continue
            plain = False
            kind = self.peek()
            self.at += 1
            if kind == b"u":
                point = self.code_point()
                found += point.encode()
                good = point != ""
            else:
                good = kind != b"" and kind[0] in _ESCAPES
                found += bytes([_ESCAPES[kind[0]]]) if good else b""
            if not good or self.at >= len(self.text):
                self.bad(ProblemCode.JSON_STRING, escape)
        if self.peek() != b'"':
            self.bad(ProblemCode.JSON_STRING, begin)
        self.at += 1
        return (found.partition(b"\0")[0] if self.exact else found), plain

    def word(self) -> bool | None:
        word = next((word for word in _WORDS if self.text.startswith(word, self.at)), None)
        if word is None:
            self.bad(ProblemCode.JSON_VALUE)
        self.at += len(word)
        return _WORDS[word]

    def null(self) -> bool:
        """Whether a null is at hand, which is read."""
        if self.peek() == b"n":
            return self.word() is None
        return False

    def number(self, code: ProblemCode) -> tuple[float, bool]:
        """The number at hand, as a float32, and whether it is a whole one of 32 bits; `code` if none is."""
        match = _NUMBER.match(self.text, self.at)
        if match is None:
            self.bad(code)
        whole, decimals, exponent = match.groups()
        malformed = (len(whole) > 1 and whole.startswith(b"0")) or decimals == b"."
        malformed |= exponent is not None and not exponent[-1:].isdigit()
        if malformed or (exponent is not None and int(exponent[1:]) > 308 + len((decimals or b".")[1:])):
            self.bad(code)
        value = float(match[0])
        if not np.isfinite(value):
            self.bad(code)
        self.at = match.end()
        if decimals is None and exponent is None and int(whole) < 2**64:
            size = np.float32(np.uint64(int(whole)))
            negative = match[0].startswith(b"-")
            return float(-size if negative else size), not negative and int(whole) < 2**32
        with np.errstate(over="ignore"):
            return float(np.float32(value)), False

    def skip(self) -> None:
        """Skip a value that is not read."""
        begin, objects, lists = self.at, 0, 0
        while byte := self.peek():
            if byte == b'"':
                self.at += 1
                while self.peek() not in (b"", b'"'):
                    self.at += 2 if self.peek() == b"\\" else 1
            elif byte in b",}]" and objects == lists == 0:
                return
            objects += (byte == b"{") - (byte == b"}")
            lists += (byte == b"[") - (byte == b"]")
            self.at += 1
        self.bad(ProblemCode.JSON_VALUE, begin)

    def members(self, read: Callable[[bytes, bool, int], object]) -> None:
        """Call `read` for each member of the object at hand, when its value is."""
        self.at += 1
        filled = False
        while True:
            self.blanks()
            if self.peek() == b"}":
                self.at += 1
                return
            if filled:
                self.comma(ProblemCode.JSON_MEMBER)
            filled = True
            if self.peek() != b'"':
                self.bad(ProblemCode.JSON_MEMBER)
            begin = self.at
            name, plain = self.string()
            touches = self.peek() == b":"
            self.blanks()
            if self.peek() != b":":
                self.bad(ProblemCode.JSON_COLON)
            self.at += 1
            self.blanks()
            read(name, plain and touches, begin)

    def elements(self, read: Callable[[], object]) -> None:
        """Call `read` for each element of the array at hand."""
        self.at += 1
        filled = False
        while True:
            self.blanks()
            if self.peek() == b"]":
                self.at += 1
                return
            if filled:
                self.comma(ProblemCode.JSON_ELEMENT)
            filled = True
            read()

    def comma(self, code: ProblemCode) -> None:
        if self.peek() != b",":
            self.bad(code)
        self.at += 1
        self.blanks()

    def entry(self, good: Callable[[float], bool] | None) -> float | None:
        """A number, ``"NaN"`` or null, where nothing else may be."""
        if self.null():
            return None
        begin, value = self.at, float("nan")
        if self.peek() == b'"':
            if self.string()[0].lower() != b"nan":
                self.bad(ProblemCode.JSON_UNEXPECTED, begin)
        else:
            value = self.number(ProblemCode.JSON_VALUE)[0]
        if good and not good(value):
            self.bad(ProblemCode.JSON_UNEXPECTED, begin)
        return value

    def list(self, good: Callable[[float], bool] | None = None) -> list[float]:
        """A list of entries, or one of them; all have to be good."""
        found: list[float | None] = []
        if self.peek() == b"[":
            self.elements(lambda: found.append(self.entry(good)))
        else:
            found.append(self.entry(good))
        return [value for value in found if value is not None]
