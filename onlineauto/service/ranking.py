"""``RankRequest``: the content of a rank request, encoded within limits as the context of a dsjson line.

``Ranked`` is the answer: drawn, written as a line of the log, and read back from that line.
"""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from onlineauto.api.decisions.choice import draw_index
from onlineauto.features.records import LEAST_VECTOR
from onlineauto.formats.decisions.dsjson import decision_line, stamp
from onlineauto.service.join.pacing import LARGEST_COST
from onlineauto.service.log.segment_log import read_record, sealed
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
_COST: Final = "cost"
_NO_NUMBER: Final = (b"{", b"[", b'"', b"t", b"f", b"n")
"""How JSON begins that is not a number."""
_NUMBERS: Final = frozenset({float, int, bool, type(None)})
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
    if text.count(b'"_') > 1 + len(request.ids) or (b"\\u005" in text and _ESCAPED.search(text)):
        _refuse_hidden(msgspec.json.decode(text), top=True)
    if b"\n" in text or b"\r" in text:
        text = text.replace(b"\n", b" ").replace(b"\r", b" ")
    if not text.isascii():
        _check_encoding(text)
    most = limits.features
    if len(text) > most and sum(map(text.count, (b",", b"{", b"[", b" "))) > most:
        _check_features(msgspec.json.decode(text), most)
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
        features = action[0] if len(action) == 1 else None
        if features is None or len(features) > most:
            return b""
        if not features.keys() <= known_namespaces and not _is_ordinary(features, known_namespaces):
            return b""
        objects.append({"_tag": event_id, **features})
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
    text = b'{%b"_multi":[%b]}' % (b"".join(member + b"," for member in context), b",".join(objects))
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
    most, names = limits.name_bytes, (request.event_id, *request.ids)
    if not all(names) or 4 * max(map(len, names)) > most:
        for name in names:
            if not 1 <= len(name.encode()) <= most:
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
    for action in objects:
        if not action.keys() <= known_namespaces:
            for name, raw in action.items():
                if name not in known_namespaces:
                    _check_member(name, bytes(raw), limits, names, where)
        if action:
            members.append(_ENCODER.encode(action)[1:-1])
            count += len(action)
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
        count = shared + _features_in({name: item for name, item in action.items() if name != "_tag"})
        if count > most:
            raise RefusedError(
                f"the context and action {action['_tag']!r} have {count} features together; at most "
                f"{most} are accepted (--max_features)",
                status=413,
            )


def _features_in(value: Any, name: str = "") -> int:
    """Return the number of features in a JSON value; a vector counts as one."""
    if isinstance(value, dict):
        return sum(_features_in(item, name) for name, item in value.items())
    if isinstance(value, list):
        if len(value) >= LEAST_VECTOR and {*map(type, value)} <= _NUMBERS:
            return 1
        return sum(_features_in(item) for item in value)
    return len(value.split()) if name == _ALLOWED and isinstance(value, str) else 1


def _refuse_hidden(value: Any, *, top: bool = False) -> None:
    """Reject names that begin with ``_`` at any depth, since the log uses such names for labels."""
    if isinstance(value, dict):
        for name, each in value.items():
            if name.startswith("_") and name != _ALLOWED and not (top and name in ("_multi", "_tag")):
                raise RefusedError(f"{name!r} begins with '_', which names of features cannot")
            _refuse_hidden(each, top=top and name == "_multi")
    elif isinstance(value, list):
        for item in value:
            _refuse_hidden(item, top=top)


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
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path if step != "")
    where = begin + "".join(steps)
    return where if len(where) <= _MOST_PATH else f"{where[: _MOST_PATH - 3]}..."


def without_costs(request: RankRequest, *, strict: bool) -> tuple[list[float | None], RankRequest]:
    """Return the cost that each action declares, or None, and the request without them; [] if none does.

    A cost is a number beside the features and namespaces of an action. It is no feature. What is no cost is
    rejected if the request is read strictly, for a budget, and otherwise remains a feature.

    >>> request = RankRequest("e", [], ["a", "b"], [[{"cost": msgspec.Raw(b"0.5")}], [{}]])
    >>> costs, rest = without_costs(request, strict=True)
    >>> costs, rest.actions
    ([0.5, None], [[{}], [{}]])
    """
    if not any(_COST in features for action in request.actions for features in action):
        return [], request
    costs: list[float | None] = []
    actions: list[Sequence[Features]] = []
    for name, objects in zip(request.ids, request.actions, strict=True):
        given = [bytes(features[_COST]) for features in objects if _COST in features]
        numbers = [raw for raw in given if raw[:1] not in _NO_NUMBER]
        cost = _cost_in(numbers, name, strict=strict) if numbers else None
        costs.append(cost)
        is_feature = cost is None and given != [b"null"]
        actions.append(objects if is_feature else [_without_cost(features) for features in objects])
    return costs if any(cost is not None for cost in costs) else [], request._replace(actions=actions)


def _without_cost(features: Features) -> Features:
    return {name: value for name, value in features.items() if name != _COST}


def _cost_in(numbers: Sequence[bytes], action: str, *, strict: bool) -> float | None:
    """Return the cost of an action, given as JSON; None if it is none and the request is not strict."""
    what, text = f"the cost of action {action!r}", numbers[0].decode()
    if strict and len(numbers) > 1:
        raise RefusedError(f"{what} is in {len(numbers)} of its objects: give one", status=422)
    cost = float(text)
    return check_cost(cost, what, text) if strict or 0.0 <= cost < LARGEST_COST else None


def check_cost(cost: float, what: str, text: str = "") -> float:
    """Return a cost; reject one that is negative or not finite."""
    if not 0.0 <= cost < LARGEST_COST:
        raise RefusedError(f"{what} is {text[:40] or cost}: give a number from 0 to below 1e30", status=422)
    return cost


_BITS: Final = 53


class RankedActions(NamedTuple):
    """All actions by index, the chosen one first, the others by falling probability; and probabilities."""

    actions: list[int]
    probabilities: list[float]


def seed_of(app: str, event_id: str) -> int:
    """Return the seed of the draw for an event, from 0 to 2^53 - 1.

    >>> seed_of("default", "e1") == seed_of("default", "e1") != seed_of("other", "e1")
    True
    """
    digest = blake2b(event_id.encode(), digest_size=8, key=_key_of(app)).digest()
    return int.from_bytes(digest) >> (64 - _BITS)


@lru_cache(maxsize=4)
def _key_of(app: str) -> bytes:
    return blake2b(app.encode(), digest_size=32).digest()


def uniform_of(seed: int) -> float:
    """Return a seed as a number in [0, 1)."""
    return seed / 2.0**_BITS


def choose(pmf: Sequence[float], excluded: Iterable[int], seed: int) -> RankedActions:
    """Draw an action from a pmf, without the excluded actions.

    >>> choose([0.25, 0.5, 0.25], [1], seed=0)
    RankedActions(actions=[0, 2, 1], probabilities=[0.5, 0.5, 0.0])
    """
    chances, out = list(pmf), set(excluded)
    for action in out:
        chances[action] = 0.0
    total = sum(chances)
    if total <= 0.0:
        chances = [float(action not in out) for action in range(len(chances))]
        total = sum(chances)
    chances = [chance / total for chance in chances]
    return _first(draw_index(chances, uniform_of(seed)), chances)


def certain_choice(action: int, count: int) -> RankedActions:
    """Return the choice of an action with probability 1.

    >>> certain_choice(1, 3)
    RankedActions(actions=[1, 0, 2], probabilities=[1.0, 0.0, 0.0])
    """
    return _first(action, [float(number == action) for number in range(count)])


def _first(action: int, chances: list[float]) -> RankedActions:
    order = sorted(range(len(chances)), key=chances.__getitem__, reverse=True)
    if order[0] != action:
        order.remove(action)
        order.insert(0, action)
    return RankedActions(order, [chances[each] for each in order])


class Ranked(NamedTuple):
    """The answer to a rank."""

    event_id: str  # The id of the decision.
    ids: list[str]  # Ids of all actions, the chosen one first.
    actions: list[int]  # The indices of the same actions in the request.
    probabilities: list[float]  # Their probabilities.
    model: str  # The name of the model that ranked.


def line_of(
    ranked: Ranked,
    context: bytes,
    *,
    time: float,
    seed: int,
    mode: str,
    deferred: bool = False,
    excluded: Sequence[int] = (),
    arm: str = "",
    bucket: int = 0,
    epoch: int = 0,
    costs: Sequence[float | None] = (),
    price: float | None = None,
    over_budget: bool = False,
) -> bytes:
    """Return the line of a decision in the log."""
    members: dict[str, Any] = {
        "Type": "rank",
        "EventId": ranked.event_id,
        "Timestamp": stamp(time),
        "a": [action + 1 for action in ranked.actions],
        "p": ranked.probabilities,
        "VWState": {"m": ranked.model},
        "seed": seed,
        "mode": mode,
    }
    if deferred:
        members["DeferredAction"] = True
    if excluded:
        members["Excluded"] = [action + 1 for action in excluded]
    if arm:
        members |= {"Arm": arm, "Bucket": bucket}
    if epoch:
        members["Epoch"] = epoch
    if costs:
        members["Costs"] = costs
    if price is not None:
        members["Price"] = price
    if over_budget:
        members["OverBudget"] = True
    return sealed(decision_line(members, context))


def answer_of(choice: RankedActions, ids: Sequence[str], *, event_id: str, model: str) -> Ranked:
    """Return the answer for a choice."""
    return Ranked(event_id, [ids[action] for action in choice.actions], *choice, model)


def has_seed(line: bytes, *, app: str) -> bool:
    """Return whether the seed of a decision is that of its id and an app; True if it has none."""
    seed = msgspec.json.decode(line).get("seed")
    return seed is None or seed == seed_of(app, read_record(line).event_id)


def is_drawn(line: bytes, *, app: str) -> bool:
    """Return whether the action of a decision follows from its id and its probabilities.

    For a baseline's decision, return whether its action was certain.
    """
    answer = read_answer(line)[0]
    chances = dict(zip(answer.actions, answer.probabilities, strict=True))
    pmf = [chances[action] for action in range(len(chances))]
    return draw_index(pmf, uniform_of(seed_of(app, answer.event_id))) == answer.actions[0]


def read_answer(line: bytes) -> tuple[Ranked, bytes, list[int], bool]:
    """Return the answer and the request in a line of the log.

    The request is the context, the indices of the excluded actions, and whether the decision is deferred.
    """
    decision = read_record(line)
    tags, order = decision.tags, [action - 1 for action in decision.ranked]
    ids = [tags[action] for action in order]
    answer = Ranked(decision.event_id, ids, order, decision.probabilities, decision.state["m"])
    return answer, bytes(decision.context), [action - 1 for action in decision.excluded], decision.deferred
