"""Random lines of VW text in which every corner of the format turns up, right and wrong."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

KINDS = ("simple", "cb", "cb_adf", "ccb")


def entries(text: str) -> list[str]:
    """Return the entries of a table, which are separated by ``~``."""
    return text.split("~")


_FEATURES = entries(
    "x~x:2~x:-0.5~x:0~12~0012~12:3~-7~:2~:0~:.5~color:red~color:~d:~7:red~é~ü:1.5~a_b~x=y~'q~a:b:c~"
    "longname_abcdefg~d:2020-01-01~v:inf~v:-Infinity~v:nan~v:nan(12)~n:nano~x:1e5~x:1e~x:1e+5~x:3e~"
    "x:1e-50~x:1e50~x:0e99~x:00e1~x:-~x:+3~x:--1~x:0x10~x:.~x:1.2.3~x:1,~::~:~::1~x::~x:2.993~"
    "x:16777217~18446744073709551617~e:e9~x:3.4028235e38~x|y~x:1|y~x:r|y~x:|y~\x01~\x00~x:\x00~"
    "\x0b~x:\x0b5~x:\r5~a\rb~\x7f~日本"
)
_NAMESPACES = entries(
    "a~b~alpha~able~12~Zed:2~b:0.5~b:0~c:-1.5~n:abc~b:3~:~n:~n:nan~n:inf~n:1e3~n:2x~é~a:b~n:2:3~_~"
    "n:1e39~~~n: 2~\x01"
)
_BLANKS = (" ", " ", " ", " ", "  ", "\t", " \t", "", "\r", "\v")
_HEADS = {
    "simple": entries(
        "~1~-1~0.5 2~1 1 0.5~1 2 3 4~x~1x~nan~1 nan~1e3~+3~inf~1e39~'tag~1 'tag~1 2 tag~ 1 ~1\t2~\t1 ~"
        "1 -1~\r 5~\x0b~\x0b 3~0x10~1 \t 2~'~''~' 1~1 2 'a'b~.5 .5 .5~-~1 - .~save~save_x~3.4028235e38~"
        "1 1 inf"
    ),
    "cb": entries(
        "~1:2:0.5~1:2:0.5 2:3:0.25~1~1 2~shared~shared:1~shared shared~1:2:0.5 shared~1:2~1::0.5~"
        ":1:0.5~1:2:3:4~:~::~1:nan:0.5~1:2:nan~1:2:1.5~1:2:-1~1:2:0~a:1:1~01:2:.5~1:x:0.5~1:inf:0.5~"
        "1:2:x 'tag~shared 'tag~'tag~1:2:.5 tag~1:\x0b:1~1:\x0b \x0b:1~shared\t1:2:.4 ~1:2:0.5\t~"
        " 1:2:0.5 ~4294967297:1:1~1:1e50:.5~1:2:1e-50~graph~1:2:0.5: ~1: :2~save_x~shared 1:2:.3~"
        "1:3.4028235e38:1~1:2:1e-40"
    ),
    "ccb": entries(
        "~ccb~slot~ccb slots~CCB slot~ccb shared 1~ccb action 0~ccb\tslot~ ccb  slot ~ccb slot 0:1~"
        "ccb slot 0:1:0.5:1~ccb slot 0:1:2~ccb slot 0:1:0~ccb slot 0:1:-1~'tag~ccb slot x:1:1~"
        "ccb slot 0:x:1~ccb slot 0:1:x~ccb slot 0:inf:1~ccb slot 0:1:nan~tag~ccb slot 0:1:0.5,1~"
        "ccb slot 0:1:0.5,1:0.1~ccb slot 0:1:0.5,1:0.5,~ccb slot 0,1:0.5~ccb slot 0:1:0.5,x:0.5~"
        "ccb slot 0:1:0.5,1:-1~ccb slot 0:1:0.5,1:x~ccb slot ,0:1:0.5~ccb slot 1,2~ccb slot 1,~"
        "ccb slot ,1~ccb slot x,1~ccb slot -1,+2~ccb slot 1 0:1:1~ccb slot 0:1:1 1:1:1~ccb slot 0 1 2~"
        "ccb slot 0:1:1 0 1~ccb slot 0 1 ~ccb slot :~ccb slot 9999999999:1:1~ccb slot 4294967297~"
        "ccb slot 7:1:1~ccb slot 0:1:0.5 1~ccb slot ,"
    ),
}
_HEADS["cb_adf"] = _HEADS["cb"]
_GOOD = {
    "simple": entries("1 |a x y:2 |b z~0 2 0.5 'tag|a x~|a x:.5 :2 :3"),
    "cb": entries("1:2:0.5 |a x y:2~|a z |b color:red~2:-1:1 'tag|a x"),
    "ccb": entries(
        "ccb shared |u a b:2~ccb action |a x:1~ccb action |a y |b z~ccb slot 0:1:0.5 'tag|s x~"
        "ccb action 'tag|a~ccb slot |~ccb slot 1:-1:.25,0:.75 0,1 |s y~ccb slot 1 q|s"
    ),
    "cb_adf": entries("shared |u a b:2~|a x:1~|a y |b z~0:1:0.5 |a x~shared 'tag|u x~1:-1:.25 q|a x"),
}
_SPECIAL = b" |:\t\r\n'0123456789.eE-+naifx\0\v\xff\xc3"


def _word(draw: Random, words: Sequence[str]) -> bytes:
    return draw.choice(words).encode()


def _odd_line(draw: Random, kind: str) -> bytes:
    line = _word(draw, _HEADS[kind]) + draw.choice((b" ", b" ", b" ", b""))
    for _ in range(draw.choice((0, 1, 1, 1, 2, 3))):
        line += b"|" + _word(draw, _NAMESPACES)
        for _ in range(draw.randrange(5)):
            line += _word(draw, _BLANKS) + _word(draw, _FEATURES)
        line += draw.choice((b"", b" "))
    return line


def mutated(draw: Random, line: bytes, special: bytes = _SPECIAL) -> bytes:
    """Delete, insert and overwrite up to three bytes."""
    text = bytearray(line)
    for _ in range(draw.randrange(1, 4)):
        at = draw.randrange(len(text) + 1)
        action = draw.randrange(3)
        if action == 0:
            del text[at : at + 1]
        elif action == 1:
            text.insert(at, draw.choice(special))
        else:
            text[at : at + 1] = bytes([draw.randrange(256)])
    return bytes(text)


def _event_of_slots(draw: Random) -> bytes:
    """Return an event, of which a slot may be odd."""
    shared, action, *_ = (word.encode() for word in _GOOD["ccb"])
    slots = [_word(draw, tuple(word for word in _GOOD["ccb"] if "slot" in word)) for _ in range(2)]
    if draw.random() < 0.3:
        slots[draw.randrange(2)] = _odd_line(draw, "ccb")
    return b"\n".join([b"", shared, action, action, *slots[: draw.randrange(3)], b""])


def _line(draw: Random, kind: str) -> bytes:
    chance = draw.random()
    if chance < 0.2:
        return draw.choice((b"", b"", b" ", b"\t", b"\r", b"\xef\xbb\xbf"))
    if chance < 0.4 and kind == "ccb":
        return _event_of_slots(draw)
    if chance < 0.6:
        return _word(draw, _GOOD[kind])
    line = _odd_line(draw, kind)
    return mutated(draw, line) if draw.random() < 0.4 else line


def odd_text(draw: Random, kind: str, *, lines: int) -> bytes:
    """Lines of one kind of label, of which about half are well-formed, and some are empty.

    Parameters
    ----------
    draw : Random
        Source of randomness.
    kind : {"simple", "cb", "cb_adf", "ccb"}
        Kind of label.
    lines : int
        How many, give or take a newline.
    """
    marks = (b"",) * 8 + (b"\xef\xbb\xbf",)
    ends = (b"\n",) * 8 + (b"\r\n", b"\r\r\n", b" \n")
    text = b"".join(draw.choice(marks) + _line(draw, kind) + draw.choice(ends) for _ in range(lines))
    return text if draw.random() < 0.7 else text.rstrip(b"\n")
