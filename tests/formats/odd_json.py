"""Random lines of JSON in which every corner of the format turns up, right and wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from tests.formats.odd_lines import entries, mutated

JSON_KINDS: dict[str, dict[str, Any]] = {
    "log": {"log": True, "label": "cb", "multiline": True},
    "log_cb": {"log": True, "label": "cb", "multiline": False},
    "log_ccb": {"log": True, "label": "ccb", "multiline": True},
    "slots": {"label": "ccb", "multiline": True},
    "contexts": {"label": "cb", "multiline": True},
    "classic": {"label": "cb", "multiline": False},
    "simple": {"label": "simple", "multiline": False},
    "log_simple": {"log": True, "label": "simple", "multiline": False},
}
"""Rules of reading, by the kind of lines."""

_KEYS = entries('a~User~Uptime~~ ~12~x y~\\u00e9t\\u00e9~\u65e5~q\\"\\n~\\ud83d\\ude00~n\\u0000z~a:b|c')
_STRINGS = entries(r"~x~two words~7~a|b:c~tab\there~\u0041\u00e9~é~end\u0000 more~longer than eight bytes")
_BAD_STRINGS = entries("\\x~\\u12~\\ud800~\\ud800\\u0041~\x01~tab\t~\\")
_NUMBERS = entries("0~1~-1~2.5~-0.0~1e2~1E-2~0.125e+3~123456789012~1e39~4294967296~0.30000001")
_BAD_NUMBERS = entries("01~1.~.5~+1~1e~1e999~--1~-~0x1~NaN~Infinity~1e-400")
_LABELS = {
    "simple": entries(
        '"1"~"1 2"~"0.5 2 -1"~"x"~"1 2 3 4"~"1 -2"~"1e39"~""~1.5~1e39~{"Label":1,"weight":2}~'
        '{"Initial":3,"Weight":-1}~{"label":"NaN"}~{"label":"NaN","weight":2}~'
        '{"weight":"NaN","label":1}~"nan"~"-NaN 2"~"1 nan"'
    ),
    "cb": entries(
        '"1:-1:0.5"~"2:1"~"shared"~"1:1:0.5 2:1:0.5"~":"~"a:b:c"~'
        '{"Cost":-1,"Probability":0.5,"Action":1}~{"cost":1,"probability":2}~{"Action":2}~'
        '{"Cost":"nan","PROBABILITY":0.5}~{"Cost":"NaN","Probability":"NaN","Action":"NaN"}~'
        '{"Cost":1,"Probability":"NaN","Action":1}~"1:nan:0.5"~"1:1:NaN"~"1:nan:x"~3~{"Label":1}~{}'
    ),
}
_LABELS["ccb"] = _LABELS["cb"]
_PROPERTIES = {
    "simple": entries("_label_label~_label_Weight~_label_initial~_label_cost~_label_"),
    "cb": entries(
        "_label_cost~_label_Probability~_label_ACTION~_labelIndex~_label_weight~_labelINDEX~_labels"
    ),
}
_PROPERTIES["ccb"] = _PROPERTIES["cb"]
_OTHERS = entries(
    "_ignored~_text~_tag~_TAG~_multi~_slots~_slot_id~__aid~_original_label_cost~_a~_p~_inc~_outcomes"
)
_LISTS = entries("[0]~[1]~[0,1]~[2,1,0]~[]")
_BAD_LISTS = entries('0~null~[null,1]~["NaN"]~["1"]~[0.5]~[-1]~[9]~[1e10]~{}~[1,]~[1')
_MEMBERS = entries(
    r'"pdrop":0.5~"pdrop":1~"_skipLearn":true~"EventId":"e\u0041"~"Timestamp":""~"x":[1,{"a":"]"}]~'
    '"_ba":[1]~"p":[0.5]~"_original_label_cost":-1.5~"_outcomes":[]~"pdrop":2'
)
_BLANKS = ("",) * 12 + (" ", "\t", " \r ")


class _Writer:
    """Writes values, each of which is malformed with a small probability."""

    def __init__(self, draw: Random, kind: str) -> None:
        self.draw = draw
        self.how = JSON_KINDS[kind]
        self.oddness = draw.choice((0, 0, 0.02, 0.1))

    def odd(self) -> bool:
        return self.draw.random() < self.oddness

    def one(self, usual: Sequence[str], others: Sequence[str]) -> str:
        return self.draw.choice(others if self.odd() else usual)

    def blank(self) -> str:
        return self.draw.choice(_BLANKS)

    def string(self) -> str:
        return f'"{self.one(_STRINGS, _BAD_STRINGS)}"'

    def number(self) -> str:
        return self.one(_NUMBERS, _BAD_NUMBERS)

    def label(self) -> str:
        label = self.how["label"]
        return f'"_label":{self.draw.choice(_LABELS[label])}'

    def property(self) -> str:
        name = self.draw.choice(_PROPERTIES[self.how["label"]][: None if self.odd() else 4])
        value = self.one(("0", "1", "0.5", "2", "-1", "null"), ('"NaN"', "{}", "[]", "true", '"x"', "1e39"))
        return f'"{name}"{self.blank()}:{self.blank()}{value}'

    def good_label(self) -> str:
        """Return the usual keys of a label."""
        if self.how["label"] == "simple":
            return '"_label":1'
        keys = ['"_label_cost":-1', '"_label_probability":0.5', '"_label_Action":1', '"_labelIndex":0']
        self.draw.shuffle(keys)
        return ",".join(keys if self.how["multiline"] else [key for key in keys if "Index" not in key])

    def value(self, depth: int) -> str:
        kind = self.draw.randrange(8)
        if kind < 2:
            return self.number()
        if kind < 4:
            return self.string()
        if kind == 4:
            return self.one(("true", "false", "null"), ("tru", "nul", "True", ""))
        if kind == 5:
            return self.array(depth + 1)
        return self.object(depth + 1) if depth < 4 else self.number()

    def joined(self, parts: list[str], ends: str) -> str:
        comma = f"{self.blank()},{self.blank()}"
        text = comma.join(parts) + self.blank()
        if self.odd():
            text += self.draw.choice((",", "]", "}", " 1"))
        return ends[0] + self.blank() + text + (ends[1] if not self.odd() else "")

    def array(self, depth: int) -> str:
        elements = []
        for _ in range(self.draw.randrange(4)):
            kind = self.draw.randrange(8)
            if kind < 4:
                elements.append(self.number())
            elif kind == 4:
                elements.append("null")
            elif kind == 5 and depth < 5:
                elements.append(self.object(depth + 1))
            elif self.odd():
                elements.append(self.value(depth))
        return self.joined(elements, "[]")

    def member(self, depth: int) -> str:
        chance = self.draw.random()
        if chance < 0.04 and (self.how["label"] != "ccb" or self.odd()):
            return self.label()
        if chance < 0.1:
            return self.property()
        if chance < 0.2:
            key = self.draw.choice(_OTHERS[: None if self.odd() else 4])
            value = self.string() if key != "_ignored" else self.value(depth)
            return f'"{key}":{self.value(depth) if self.odd() else value}'
        key = self.draw.choice(_KEYS)
        return f'"{key}"{self.blank()}:{self.blank()}{self.value(depth)}'

    def members(self, depth: int) -> list[str]:
        return [self.member(depth) for _ in range(self.draw.randrange(4))]

    def object(self, depth: int) -> str:
        return self.joined(self.members(depth), "{}")

    def context(self, extra: list[str]) -> str:
        members = [*extra, *self.members(0)]
        if self.how["multiline"] and not self.odd():
            n = self.draw.randrange(1, 4)
            actions = [self.one((self.object(1),), ("null", "1", "[]")) for _ in range(n)]
            at = self.draw.randrange(len(members) + 1)
            members.insert(at, '"_multi":' + self.joined(actions, "[]"))
            if self.how["label"] == "ccb" and self.draw.random() < 0.8:
                behind = self.draw.randrange(0 if self.odd() else at + 1, len(members) + 1)
                members.insert(behind, f'"_slots":{self.slots(self.slot)}')
        return self.joined(members, "{}")

    def slots(self, one: Callable[[], str]) -> str:
        """Return slots, or their logged outcomes."""
        if self.odd():
            return self.draw.choice(("null", "[]", "{}", "1", "[1]"))
        n = self.draw.randrange(4)
        return self.joined([self.one((one(),), ("null", "1", "{}")) for _ in range(n)], "[]")

    def list(self, name: str) -> str:
        return f'"{name}":{self.one(_LISTS, _BAD_LISTS)}'

    def slot(self) -> str:
        members = self.members(1)
        if self.draw.random() < 0.3:
            members.insert(0, self.list("_inc"))
        if self.draw.random() < 0.2:
            members.append(self.logged())
        return self.joined(members, "{}")

    def logged(self) -> str:
        """Return members with the logged outcome of a slot."""
        n = self.draw.randrange(1, 4)
        actions = [str(action) for action in self.draw.sample(range(3), n)]
        members = [f'"_a":[{",".join(actions)}]', f'"_p":[{",".join(n * ["0.25"])}]', '"_label_cost":-1']
        if self.odd():
            members[self.draw.randrange(3)] = self.one(
                (self.list("_a"), self.list("_p"), self.property()), ('"_p":[0]', '"_p":[2]', '"_a":[7]')
            )
        self.draw.shuffle(members)
        return ",".join(members)

    def outcome(self) -> str:
        return self.joined([self.logged(), *self.members(4)[:1]] if self.draw.random() < 0.8 else [], "{}")

    def line(self) -> str:
        label = self.draw.random()
        labels = (
            [self.good_label()] if label < 0.6 else [self.property() for _ in range(self.draw.randrange(3))]
        )
        if not self.how.get("log"):
            return self.context(labels)
        members = [
            *labels,
            f'"c":{self.context([])}',
            '"a":' + self.one(("[1,2]", "[2]", "[1]"), ("[]", "1", '["NaN"]', "{}")),
        ]
        if self.draw.random() < 0.5:
            members.append(self.draw.choice(_MEMBERS))
        if self.how["label"] == "ccb" and self.draw.random() < 0.8:
            members.append(f'"_outcomes":{self.slots(self.outcome)}')
        if self.odd():
            self.draw.shuffle(members)
        return self.joined(members, "{}")


def odd_json(draw: Random, kind: str, *, lines: int) -> bytes:
    """Lines of one of `JSON_KINDS`, of which about half are well-formed."""
    text = b""
    for _ in range(lines):
        line = _Writer(draw, kind).line().encode()
        if draw.random() < 0.2:
            line = mutated(draw, line, b'{}[]",:\\u0 _\0\r\x7f\xff')
        if draw.random() < 0.1:
            line = draw.choice(
                (b"", b" ", b"[1]", b"no", b"\xef\xbb\xbf" + line, b" " + line, line + b"\0x", line[:-1])
            )
        text += line + draw.choice((b"\n",) * 6 + (b"\r\n",))
    return text if draw.random() < 0.7 else text.rstrip(b"\n")
