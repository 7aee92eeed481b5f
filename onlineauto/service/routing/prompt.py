"""``Prompt``: the text of a request in OpenAI's format, and the features by which a model is picked.

The log has no text: a word is the number of its hash.
"""

from __future__ import annotations

import re
import zlib
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from onlineauto.service.ranking import Features
from onlineauto.service.refused import RefusedError

if TYPE_CHECKING:
    from onlineauto.service.routing.endpoints import RouteFile

Body = dict[str, msgspec.Raw]
"""The members of a request; the values are JSON that is not parsed yet."""
_WORD: Final = re.compile(r"[^\W_]+|[^\w\s]")
_MOST_CHARACTERS: Final = 8000
"""Number of characters of a prompt that are read for its words."""
_MOST_NUMBERS: Final = 8192
_HASHES: Final = 1 << 18
_SYSTEM: Final = ("system", "developer")
_BODY: Final = msgspec.json.Decoder(Body)


class Message(msgspec.Struct):
    """A message of a chat: its role, and its content, which is text or a list of parts."""

    role: str = ""
    content: Any = None


class Extras(msgspec.Struct, forbid_unknown_fields=True):
    """The member ``onlineauto`` of a request, which the models do not see."""

    vector: list[float] = []  # Numbers that describe the prompt, in place of its words.
    features: Features = {}  # Further features of the context.
    event_id: str = ""  # As in a rank.
    unit: str = ""


class Prompt(NamedTuple):
    """A request: its members without those for the router, and its text."""

    body: Body
    model: str  # The name of the model that is asked for.
    streams: bool
    extras: Extras
    text: str  # The latest message of the user.
    system: str  # What the system's messages say, which differs between applications.
    characters: int  # The length of all messages.
    turns: int
    kinds: frozenset[str]  # Kinds of parts that are not text, such as image_url.


def read_prompt(content: bytes, *, chat: bool) -> Prompt:
    """Return the prompt of a request for a chat, or for the completion of a text."""
    body = _BODY.decode(content)
    streams = _member(body, "stream", bool | None) or False
    model = _member(body, "model", str | None) or ""
    extras = _member(body, "onlineauto", Extras | None) or Extras()
    body.pop("onlineauto", None)
    if chat:
        messages = _member(body, "messages", list[Message] | None) or []
        if not messages:
            raise RefusedError("messages: a chat has at least one message")
    else:
        prompt = _member(body, "prompt", Any)
        if not isinstance(prompt, str) and not _is_list_of(prompt, str):
            raise RefusedError("prompt: only text is routed, a string or a list of strings")
        messages = [Message("user", prompt if isinstance(prompt, str) else "\n".join(prompt))]
    kinds: set[str] = set()
    texts = [(message.role, _text_of(message, index, kinds)) for index, message in enumerate(messages)]
    asked = [text for role, text in texts if role == "user" and text]
    return Prompt(
        body,
        model,
        streams,
        extras,
        asked[-1] if asked else texts[-1][1],
        "\n".join(text for role, text in texts if role in _SYSTEM),
        sum(len(text) for _, text in texts),
        sum(role == "user" for role, _ in texts),
        frozenset(kinds),
    )


def context_of_prompt(prompt: Prompt, rules: RouteFile) -> Features:
    """Return the features of a prompt.

    >>> from onlineauto.service.routing.endpoints import RouteFile
    >>> prompt = read_prompt(b'{"messages":[{"role":"user","content":"Add 2 and 2"}]}', chat=True)
    >>> bytes(context_of_prompt(prompt, RouteFile({}))["form"])
    b'{"length":"up to 16","turns":"1","digits":0.18}'
    """
    text = prompt.text[:_MOST_CHARACTERS]
    form: dict[str, Any] = {
        "length": f"up to {1 << max(prompt.characters - 1, 1).bit_length()}",
        "turns": f"{prompt.turns}" if prompt.turns < 4 else "many",
        "digits": round(sum(map(str.isdigit, text)) / max(len(text), 1), 2),
    }
    if prompt.system:
        form["system"] = _hash_of(prompt.system)
    if "```" in text:
        form["code"] = 1
    form |= dict.fromkeys((*sorted(prompt.kinds), *(prompt.body.keys() & {"tools"})), 1)
    context = {**prompt.extras.features, "form": form}
    if prompt.extras.vector:
        if len(prompt.extras.vector) > _MOST_NUMBERS:
            raise RefusedError(f"onlineauto.vector has at most {_MOST_NUMBERS} numbers", status=413)
        context["vector"] = {"v": prompt.extras.vector}
    elif rules.words and text:
        words = dict.fromkeys(map(_hash_of, _WORD.findall(text.lower())))
        hashes = list(islice(words, rules.words))
        context["prompt"] = dict.fromkeys(hashes, round(max(len(hashes), 1) ** -0.5, 4))
    return {name: _raw(value) for name, value in context.items()}


def _raw(value: Any) -> msgspec.Raw:
    return value if isinstance(value, msgspec.Raw) else msgspec.Raw(msgspec.json.encode(value))


def _hash_of(text: str) -> str:
    return f"h{zlib.crc32(text.encode('utf-8', 'replace')) % _HASHES:x}"


def _member(body: Body, name: str, kind: Any) -> Any:
    """Return the value of a member of a request; an error names the member."""
    try:
        return msgspec.json.decode(body.get(name, b"null"), type=kind)
    except msgspec.ValidationError as error:
        raise RefusedError(f"{name}: {error}") from None


def _text_of(message: Message, index: int, kinds: set[str]) -> str:
    """Return the text of a message, and add the kinds of its other parts to `kinds`."""
    content = message.content
    if content is None or isinstance(content, str):
        return content or ""
    if not _is_list_of(content, dict):
        raise RefusedError(f"messages[{index}].content is text or a list of parts, not {str(content)[:40]!r}")
    texts = []
    for part in content:
        text = part.get("text") if part.get("type") == "text" else part.get("refusal", "")
        if not isinstance(text, str):
            raise RefusedError(f"messages[{index}].content has a part whose text is {str(text)[:40]!r}")
        texts.append(text)
        if part.get("type") != "text":
            kinds.add(re.sub(r"\W", "", str(part.get("type")))[:40].lstrip("_") or "other")
    return "\n".join(filter(None, texts))


def _is_list_of(value: Any, kind: type) -> bool:
    return isinstance(value, list) and all(isinstance(item, kind) for item in value)
