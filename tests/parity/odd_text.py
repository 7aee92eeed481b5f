"""Files in the odd corners of VW's text format: legal, half legal and wrong, never fatal to VW."""

from __future__ import annotations

import random

_NUMBERS = """
    1 -1 0 -0 +3 1. .5 -.5 00012.50 3.14159265358979323846 123.45678 1e3 1E3 1e-3 1e+3 -2.5e2 0.1e1 1e-30
    1e-37 9.99e-38 1e-38 1e-45 1e-46 0x10 -0x1.8p1 0.00000000000000000000000000000000000001 0.3 1e0 1.e2 5e-1
    7.0000001 0.12345678901234567890123456789012345678901234567890
    999.99999999 2.993 0.1e-5 12e-1 1e00 1e03 2.50e-01
"""
_EXTREMES = """
    12345 16777217 123456789 4294967297 1e10 99999999.99999999 1e18 3.3e18 1e19 -1e15 1e-18 1e-19 1.5e12 1e37
"""


def _number_lines(numbers: str) -> bytes:
    """Each spelling as label, importance weight, initial prediction, value and namespace weight."""
    lines = []
    for i, number in enumerate(numbers.split()):
        lines += [f"{number} |a x:1 w", f"{number} |a x:0.25", f"{i % 5} |a x:{number} y:{number}"]
        lines += [f"1 1 {number} |a z", f"{i % 5} |a:{number} u v:2 |b w"]
        if not number.startswith("-"):
            lines.append(f"{i % 5} {number} |a z |b w")
    return "\n".join(lines).encode() + b"\n"


_BYTES = bytes(range(256))


def _decimal_lines() -> bytes:
    """Values with one to twelve digits: VW's own float parser rounds many of them otherwise than strtof."""
    draw = random.Random(11)
    lines = []
    for _ in range(300):
        drawn = [draw.uniform(-1, 1) * 10 ** draw.randrange(-6, 6) for _ in range(4)]
        values = " ".join(f"f{i}:{value:.{draw.randrange(1, 13)}f}" for i, value in enumerate(drawn))
        lines.append(f"{draw.uniform(-5, 5):.{draw.randrange(1, 9)}f} |n {values}")
    return "\n".join(lines).encode() + b"\n"


_TOKENS = """
    x x:2 x:-0.5 x:0 12 0012 12:3 -7 :2 :0 :.5 color:red color: d: 7:red é ü:1.5 日本 a_b a^b A.B x=y 'q
    18446744073709551616 4294967295 4294967296 1e3 0x10 x:1e-3 x:+3 x:0x2 longnameeeeeeeeeeeeeeeeeeeee
"""
_NAMES = ("", "a", "b", "alpha", "able", "12", "été", "Zed:2", "b:0.5", "b:0", "c:-1.5", "_", "~t", "日本")


def _mixture() -> bytes:
    """Random lines of odd tokens, namespaces, separators and heads."""
    draw = random.Random(7)
    heads = ("1", "-1", "0.5 2", "1 1 0.5", "", "'tag", "1 'tag", "2 0.5 'a_tag", "1 0", "0 3 -1 longtag")
    lines = []
    for _ in range(600):
        head = draw.choice(heads)
        spans = []
        for _ in range(draw.randrange(1, 4)):
            separator = draw.choice((" ", " ", " ", "  ", "\t"))
            words = [draw.choice(_TOKENS.split()) for _ in range(draw.randrange(5))]
            spans.append("|" + separator.join([draw.choice(_NAMES), *words]) + draw.choice((" ", "", " ")))
        joint = "" if head.endswith("tag") and draw.random() < 0.5 else " "
        lines.append(head + joint + " ".join(spans) + draw.choice(("", "", "", " ", "\r")))
    return "\n".join(lines).encode() + b"\n"


ODD_SIMPLE: dict[str, bytes] = {
    "numbers": _number_lines(_NUMBERS),
    "extremes": _number_lines(_EXTREMES),
    "decimals": _decimal_lines(),
    "mixture": _mixture(),
    "anonymous": (
        b"1 |a :3 :2 x\n0 | :1 :0 :5 y:2 :4\n1 |a :3 |a :2 |b :1\n0 |7 :1 1 2 :9\n1 |a :1 |c :1:2\n"
    )
    * 3,
    "string_values": (
        b"1 |a color:red size:big x:1\n0 |a color:blue size: big\n1 |a:2 color:red 7:12 d: :2\n"
    )
    * 4,
    "namespace_weights": (
        b"1 |a:2.5 x y:2 |b:0 z |c:-1 w\n0 |a:.5 x |b z |c:1e2 w q:0.1\n1 |:3 x\n2 |a:1 x\n"
    )
    * 3,
    "numeric_names": b"1 |a 12 0012 12:3 5:-1\n0 |12 5 |0012 5\n1 | 5 18446744073709551617 -5\n" * 4,
    "tags": (
        b"1 'first|a x\n0 second|a x y\n'third |a x\n1 2 fourth| x\n1 'fifth |a y\n1 1 1 sixth|a z\n|a x\n"
    )
    * 2,
    "repeated_namespaces": (
        b"1 |a x |b y |a z |b y\n0 |alpha x |able x |a x |beta x\n1 |a |b y |a x\n0 |a x x x\n"
    )
    * 3,
    "empty_namespaces": b"1 |a |b x\n0 || x | y\n1 |\n0\n1 |a\n0 |a x|b y|c\n1 |a x |b\n" * 3,
    "crlf": b"1 |a x y:2\r\n0 |b z\r\n1 'tag|a x\r\n\r\n0 |a y:3 |b z:1.5\r\n" * 3,
    "tabs": b"1\t|a x\ty:2\n0 |a\tx |b z\t\n1 2\t|a x\n0\t2 |a y\nid7\t1 |a x\n1 |a x:1\t|b z\n" * 3,
    "no_final_newline": b"1 |a x\n0 |a y:2 |b z\n1 |a x |b z",
    "no_final_newline_in_number": b"1 |a x\n0 |a y:2.5",
    "no_final_newline_blank": b"1 |a x\n0 |a y:2 ",
    "blank_lines": b"1 |a x\n\n0 |a y\n \n1 |b z\n   \n\n\n0 |a x |b z\n\t\n1 |a y\n",
    "byte_order_mark": b"\xef\xbb\xbf1 |a x\n0 |a y\n\xef\xbb\xbf1 |a x\n",
    "unlabelled": b"|a x\n |a y\n1 |a x\n| y\n1 |a y\n|a x y\n" * 3,
    "test_only": b"1 0 |a x\n0 1 |a y\n1 0 'held|a x y\n3 2 |a x\n4 0 1 |a y\n" * 3,
    "negative_weight": b"1 -1 |a x\n0 1 |a y\n1 -0.5 |a x y\n3 2 |a x\n" * 3,
    "utf8": "1 |été naïve:2 日本 |日 x |ß ß:0.5\n0 |été naïve |x ü\n1 |é naïve |日本 x\n".encode() * 4,
    "invalid_utf8": b"1 |\xff\xfe x\xff:2 |a \x80\n0 |\xff x\xff |a \x80:2 \xc3\n1 |a \x01 \x7f\n" * 4,
    "bad_labels": (
        b"x |a x\n1 y |a x\n1 2 3 4 |a x\n1x |a y\nnan |a x\n1 nan |a y\n1 |a x\n0 |a y\n1:2:3 |a x\n"
    ),
    "bad_values": (
        b"1 |a d:2020-01-01 b |m c\n0 |a x nano:nano |b y\n1 |a v:nan x\n0 |n:abc x y |m z\n1 |:3 x |a y\n"
        b"1 |a x:1:2 y\n0 |a x:: y\n1 |a x:1e y |b z\n0 |a x:- y\n1 |a x:1.2.3 |b y\n0 |a ::1 x\n"
        b"1 |a x:1, y\n"
    )
    * 2,
    "long_line": (
        b"1 |a " + b" ".join(b"w%d:%d" % (i * 7919 % 1000, i % 7) for i in range(3000)) + b"\n0 |a w1 w2\n"
    ),
    "pipes_in_words": b"1 |a x|y z\n0 |a x||b y\n1 a|b|c\n0 'a|b|c d\n1 ' |a x\n0 '' |a x\n1 1'|a x\n" * 2,
    "binary": b"%b%b\n1 |a x\n%b\n0 |a y\n" % (_BYTES[1:10], _BYTES[11:], _BYTES[:10:-1]),
    "empty": b"",
    "only_newlines": b"\n\n\n",
}
"""Single-line files."""


def _action(number: int) -> bytes:
    return b"0:%d:0.5 |A %d\n|A %d\n\n" % (number % 3 - 1, number % 4, number % 3)


ODD_BANDIT: dict[str, bytes] = {
    "shared_and_action": b"shared |U u |A s:2\n0:1:0.5 |A a |U w |B b\n|A b |B c |U x\n\n" * 4,
    "same_namespace_twice": b"shared |U u |V v |U w\n0:1:0.5 |A a |B b |A c\n|A b |A c\n\n" * 4,
    "missing_shared": b"0:1:0.5 |A a\n|A b\n\n|A a\n1:0:0.25 |A b\n|A c\n\n" * 4,
    "some_shared": (
        b"shared |U u\n0:1:0.5 |A a\n|A b\n\n|A a\n1:-1:0.2 |A b\n\nshared |U w\n|A a\n1:2:0.9 |A b\n\n"
    )
    * 3,
    "empty_shared": (
        b"shared\n0:1:0.5 |A a\n|A b\n\nshared |\n|A a\n0:0:0.4 |A c\n\nshared |U\n0:1:1 |A a\n\n"
    )
    * 3,
    "late_shared": b"|A a\nshared |U u\n0:1:0.5 |A b\n\n0:1:0.5 |A a\n|A b\nshared |U u\n\n",
    "tab_before_bar": b"shared\t|U u\n0:1:0.5\t|A a\n|A b\n\nshared |U u\n0:1:0.5 |A a\n|A\tb\n\n" * 3,
    "tags": b"shared 'ev1|U u\n0:1:0.5 'a1|A a\n'a2 |A b\n\nshared ev2|U u\n0:1:0.5 a1|A a\n|A b\n\n" * 2,
    "touching_label": b"shared |U u\n0:1:0.5|A a\n|A b\n\nshared|U u\n0:1:0.5 |A a\n|A b\n\n",
    "blank_only_line": b"shared |U u\n0:1:0.5 |A a\n|A b\n \nshared |U u\n\n0:1:0.5 |A a\n\t\n|A b\n\n",
    "many_blank_lines": b"\n\n" + _action(1) + b"\n\n\n" + _action(2) + b"\n" + _action(3) + b"\n\n",
    "no_final_blank_line": _action(1) + _action(2) + b"shared |U u\n|A a\n0:-1:0.3 |A b\n",
    "no_final_newline": _action(1) + _action(2) + b"shared |U u\n|A a\n0:-1:0.3 |A b",
    "crlf": (_action(1) + b"shared |U u\n|A a\n1:-1:0.3 |A b:2\n\n" + _action(2)).replace(b"\n", b"\r\n") * 2,
    "single_action": b"shared |U u\n0:1:1 |A a\n\n0:0:0.5 |A b\n\n|A a\n\n" * 4,
    "unlabelled": b"shared |U u\n|A a\n|A b\n\n" + _action(1) + b"|A a\n|A b\n\n" + _action(2),
    "none_labelled": b"shared |U u\n|A a\n|A b\n\n" * 5,
    "probabilities": b"".join(
        b"shared |U u\n0:1:%s |A a\n|A b:%d\n\n" % (p, i)
        for i, p in enumerate(b"1 1.5 2 .25 1e-3 0.999 1e-7 +0.5".split())
    ),
    "costs": b"".join(
        b"shared |U u\n|A b:%d\n0:%s:0.5 |A a\n\n" % (i + 1, c)
        for i, c in enumerate(b"1 -1 0 -0 1e3 -1e-3 0.1234567 +2 100 nan 5e-20".split())
    ),
    "action_names": b"17:1:0.5 |A a\n|A b\n\nbest:1:0.5 |A a\n|A b\n\n0017:0:0.25 |A b\n|A a\n\n" * 2,
    "no_features": b"shared |U u\n0:1:0.5 |\n|\n\nshared |U u\n0:1:0.5\n|A a\n\n0:1:0.5 |A a\n|A\n\n" * 2,
    "zero_values": b"shared |U u:0 w\n0:1:0.5 |A a:0 b\n|A a:2 b:0 |B c:0\n\n" * 4,
    "utf8": "shared |Ü ü |日 本:2\n0:1:0.5 |é à\n|é b |日 x\n\n".encode() * 4,
    "one_letter_two_names": b"shared |User u |Uptime u |Area a\n0:1:0.5 |Age a |Area b\n|Age b\n\n" * 4,
    "shared_only": b"shared |U u\n\n" + _action(1) + b"shared |U u\n\n" + _action(2),
    "costs_without_colon": b"0 |A a\n|A b\n\n" + _action(1) + b"1 |A a\n|A b\n\n" + _action(2),
    "cost_without_probability": _action(1) + b"shared |U u\n0:1 |A a\n|A b\n\n" + _action(2),
    "probability_zero": _action(1) + b"shared |U u\n0:1:0 |A a\n|A b\n\n" + _action(2),
    "negative_probability": _action(1) + b"shared |U u\n0:1:-0.5 |A a\n|A b\n\n" + _action(2),
    "nameless": b"shared |U :0.5 u :2\n0:-1:0.5 |A :1.5 x:0.3 :0.7 | :0.25\n|A a | :0.5 b\n\n" * 4,
    "empty": b"",
}
"""``cb_adf`` files."""

ODD_CLASSIC: dict[str, bytes] = {
    "labels": (
        b"1:1:0.5 |a x\n2:0:0.25 |a y\n|a x\n3:-1:1 'tag|a x y\n4:2:2 |a z\n1:1:.5|a x\n01:3:0.5 |a y\n"
    )
    * 3,
    "tabs_and_blanks": b"1:1:0.5\t|a x\n2:0:0.25 |a\ty\n \n\n3:1:1 |a x\r\n1:0:0.5 |a x |b y:2 |a z\n" * 3,
    "no_final_newline": b"1:1:0.5 |a x\n2:0:0.25 |a y\n3:0:0.25 |a y:2.5",
    "empty_features": b"1:1:0.5 |\n2:0:0.25\n3:0:0.5 |a\n|a x\n",
    "tags": b"1:1:0.5 'a|a x\n2:0:0.25 b|a y\n'c |a x\n3:0:0.25 'd |a y\n",
    "utf8": "1:1:0.5 |é à:2 |日 本\n2:0:0.25 |été x\n".encode() * 4,
}
"""``--cb 4`` files."""
