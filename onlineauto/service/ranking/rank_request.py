"""``RankRequest``: the content of a rank request, encoded within limits as the context of a dsjson line."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from onlineauto.service.refused import RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from onlineauto.service.options import Limits

Features = dict[str, msgspec.Raw]
"""Features or namespaces by name; the values are JSON that is not parsed yet."""

_ESCAPED: Final = re.compile(rb'"\\u005[fF]')
_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\],:]')
_MOST_PATH: Final = 200
_ALLOWED: Final = "_text"
_ENCODER: Final = msgspec.json.Encoder()


class RankRequest(NamedTuple):
    """A request to rank actions: a context, and the actions with their features."""

    event_id: str  # The id of the decision.
    context: Sequence[Features]  # Features of the context, in one or several objects.
    ids: Sequence[str]  # The id of each action.
    actions: Sequence[Sequence[Features]]  # Features of each action. The first one is the baseline.
    excluded: frozenset[str] = frozenset()  # Ids of actions that must not be chosen.
    deferred: bool = False  # The decision has to be activated before it is learnt.
    unit: str = ""  # What an experiment assigns to an arm, such as the id of a user; by default the event.


def context_of(request: RankRequest, limits: Limits, known_namespaces: set[str]) -> bytes:
    """Return the context and the actions of a request as one JSON object, the member ``c`` of dsjson.

    Examples
    --------
    >>> from onlineauto.service.options import Limits
    >>> user, topic = msgspec.Raw(b'{"age":3}'), msgspec.Raw(b'"art"')
    >>> request = RankRequest("e", [{"user": user}], ["a"], [[{"topic": topic}]])
    >>> context_of(request, Limits(), set())
    b'{"user":{"age":3},"_multi":[{"_tag":"a","topic":"art"}]}'
    """
    _check_ids(request, limits)
    text = _encode_simple(request, limits, known_namespaces) or _encode_checked(
        request, limits, known_namespaces
    )
    if text.count(b'"_') > 1 + len(request.ids) or _ESCAPED.search(text):
        _refuse_hidden(msgspec.json.decode(text), top=True)
    if b"\n" in text or b"\r" in text:
        text = text.replace(b"\n", b" ").replace(b"\r", b" ")
    if not text.isascii():
        _check_encoding(text)
    if text.count(b",") + text.count(b"{") + text.count(b"[") + text.count(b" ") > limits.features:
        _check_features(msgspec.json.decode(text), limits.features)
    return text


def _encode_simple(request: RankRequest, limits: Limits, known_namespaces: set[str]) -> bytes:
    """Return the context of an ordinary request as JSON, or b"" if the request needs `_encode_checked`.

    A request is ordinary if its context and each action are one object, and no namespace is new.
    """
    if len(request.context) != 1:
        return b""
    (context,), objects = request.context, []
    most = limits.members
    if len(context) > most or not _is_ordinary(context, known_namespaces):
        return b""
    for event_id, action in zip(request.ids, request.actions, strict=True):
        if len(action) != 1 or len(action[0]) > most or not _is_ordinary(action[0], known_namespaces):
            return b""
        objects.append({"_tag": event_id, **action[0]})
    return _ENCODER.encode({**context, "_multi": objects})


def _is_ordinary(features: Features, known_namespaces: set[str]) -> bool:
    """Return whether an object has only known namespaces, and features whose names are not reserved."""
    if features.keys() <= known_namespaces:
        return True
    for name, value in features.items():
        if name not in known_namespaces and (name[:1] == "_" or memoryview(value)[0] in b"{["):
            return False
    return True


def _encode_checked(request: RankRequest, limits: Limits, known_namespaces: set[str]) -> bytes:
    """Return the context of any request as JSON, and add its new namespaces to `known_namespaces`."""
    names: set[str] = set()
    context = _members(request.context, limits, names, known_namespaces, where="the context")
    objects = []
    for event_id, action in zip(request.ids, request.actions, strict=True):
        members = _members(action, limits, names, known_namespaces, where=f"action {event_id!r}")
        objects.append(b'{"_tag":%b}' % b",".join([_quote(event_id), *members]))
    text = b'{%b"_multi":[%b]}' % (b"".join(each + b"," for each in context), b",".join(objects))
    if names:
        _check_names(names, known_namespaces, limits)
    if text.count(b'"_') > 1 + len(objects) or _ESCAPED.search(text):
        _refuse_hidden(msgspec.json.decode(text), top=True)
    known_namespaces |= names
    return text


def _check_ids(request: RankRequest, limits: Limits) -> None:
    """Reject ids that are missing, too long, repeated, or all excluded."""
    if not request.ids:
        raise RefusedError("there are no actions: a rank needs at least one")
    if len(request.ids) > limits.actions:
        raise RefusedError(
            f"there are {len(request.ids)} actions; at most {limits.actions} are accepted", status=413
        )
    most = limits.name_bytes
    for name in (request.event_id, *request.ids):
        if not name or (4 * len(name) > most and len(name.encode()) > most):
            what = "event id" if name == request.event_id else "id of an action"
            raise RefusedError(f"the {what} has 1 to {most} bytes, not {len(name.encode())}")
    if len(request.unit.encode()) > most:
        raise RefusedError(f"the unit has {len(request.unit.encode())} bytes; at most {most} are accepted")
    if len(set(request.ids)) < len(request.ids):
        raise RefusedError("two actions have the same id; each needs its own")
    if request.excluded and request.excluded.issuperset(request.ids):
        raise RefusedError("all actions are excluded: at least one must remain")


def _members(
    objects: Iterable[Features],
    limits: Limits,
    names: set[str],
    known_namespaces: set[str],
    *,
    where: str,
) -> list[bytes]:
    """Return the members of each object as JSON, and add the names of new namespaces to `names`."""
    members, count = [], 0
    for each in objects:
        if not each.keys() <= known_namespaces:
            for name, raw in each.items():
                if name not in known_namespaces:
                    _check_member(name, bytes(raw), limits, names, where)
        if each:
            members.append(_ENCODER.encode(each)[1:-1])
            count += len(each)
    if count > limits.members:
        raise RefusedError(
            f"{where} has {count} namespaces and features; at most {limits.members} are accepted: put "
            "features into a namespace",
            status=413,
        )
    return members


def _check_member(name: str, value: bytes, limits: Limits, names: set[str], where: str) -> None:
    """Reject a new name that has another meaning or is too long."""
    if name.startswith("_") and name != _ALLOWED:
        raise RefusedError(f"{where}: {name!r} begins with '_', which names of features cannot")
    if value[:1] in (b"{", b"["):
        names.add(name)
        if len(name.encode()) > limits.name_bytes:
            raise RefusedError(
                f"{where}: a namespace's name has at most {limits.name_bytes} bytes", status=413
            )


@lru_cache(maxsize=4096)
def _quote(name: str) -> bytes:
    """Return a name as JSON; a cache, because names repeat."""
    return msgspec.json.encode(name)


def _check_names(names: set[str], known_namespaces: set[str], limits: Limits) -> None:
    new = names - known_namespaces
    if new and limits.only is not None:
        raise RefusedError(
            f"namespace {min(new)!r} is not one of {', '.join(limits.only)}, which --namespaces names",
            status=413,
        )
    if new and len(known_namespaces) + len(new) > limits.namespaces:
        raise RefusedError(
            f"namespace {min(new)!r} is new, and {limits.namespaces} are known already: use few, fixed "
            "namespaces, and put what varies into the name or the value of a feature",
            status=413,
        )


def _check_encoding(text: bytes) -> None:
    """Reject text that is not UTF-8, which would not be valid JSON in the log."""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        before = text[: error.start].decode()[-20:]
        raise RefusedError(
            f"the features are not UTF-8: byte {text[error.start]:#04x} after {before!r}"
        ) from None


def _check_features(context: dict[str, Any], most: int) -> None:
    """Reject a request with too many features; the cost of learning grows with their products."""
    actions = context.pop("_multi")
    shared = _features_in(context)
    for action in actions:
        count = shared + _features_in({name: each for name, each in action.items() if name != "_tag"})
        if count > most:
            raise RefusedError(
                f"the context and action {action['_tag']!r} have {count} features together; at most "
                f"{most} are accepted (--max_features)",
                status=413,
            )


def _features_in(value: Any, name: str = "") -> int:
    """Return the number of features in a JSON value."""
    if isinstance(value, dict):
        return sum(_features_in(each, name) for name, each in value.items())
    if isinstance(value, list):
        return sum(_features_in(each) for each in value)
    return len(value.split()) if name == _ALLOWED and isinstance(value, str) else 1


def _refuse_hidden(value: Any, *, top: bool = False) -> None:
    """Reject names that begin with ``_`` at any depth, since the log uses such names for labels."""
    if isinstance(value, dict):
        for name, each in value.items():
            if name.startswith("_") and name != _ALLOWED and not (top and name in ("_multi", "_tag")):
                raise RefusedError(f"{name!r} begins with '_', which names of features cannot")
            _refuse_hidden(each, top=top and name == "_multi")
    elif isinstance(value, list):
        for each in value:
            _refuse_hidden(each, top=top)


def path_at(context: bytes, position: int, ids: Sequence[str]) -> str:
    """Return the path of the field at a position in the text of a request, as its sender knows the field.

    >>> text = b'{"user":{"age":1},"_multi":[{"_tag":"a"},{"_tag":"b","prices":[1,1e50]}]}'
    >>> path_at(text, text.index(b"1}"), ["a", "b"]), path_at(text, text.index(b"1e50"), ["a", "b"])
    ('context.user.age', "action 'b'.prices[1]")
    """
    path: list[str | int] = []
    last = b'""'
    for match in _TOKEN.finditer(context, 0, max(position, 0)):
        token = match[0]
        if token in (b"{", b"["):
            path.append("" if token == b"{" else 0)
        elif token in (b"}", b"]"):
            path.pop()
        elif token == b",":
            path[-1] = path[-1] + 1 if isinstance(path[-1], int) else ""
        elif token == b":":
            path[-1] = msgspec.json.decode(last, type=str)
        else:
            last = token
    begin = "context"
    if len(path) > 1 and path[0] == "_multi" and isinstance(path[1], int):
        begin, path = f"action {ids[path[1]]!r}", path[2:]
    steps = (f"[{each}]" if isinstance(each, int) else f".{each}" for each in path if each != "")
    where = begin + "".join(steps)
    return where if len(where) <= _MOST_PATH else f"{where[: _MOST_PATH - 3]}..."
