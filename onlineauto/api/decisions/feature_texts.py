"""``FeatureTexts``: features as members of a JSON object, with a cache, since most features repeat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from onlineauto.interop.dsjson import event_dsjson

if TYPE_CHECKING:
    from collections.abc import Mapping

_MOST: Final = 1 << 16
"""Maximum number of cached texts."""
_BEGIN: Final = '"c":{'
_END: Final = '"_multi":'


class FeatureTexts:
    """Writes features like `event_dsjson`.

    Parameters
    ----------
    hash_seed : int
        ``hash_seed`` of the reader.

    Examples
    --------
    >>> FeatureTexts().object_of({"user": "tom", "page": {"new": True, "length": 2.5}, "old": None})
    '{"user":{"user=tom":1.0},"page":{"new":1.0,"length":2.5}}'
    """

    def __init__(self, *, hash_seed: int = 0) -> None:
        self._seed = hash_seed
        self._known: dict[tuple[Any, Any], str] = {}

    def object_of(self, features: Mapping[str, Any]) -> str:
        """Return the features of a context, or of an action, as a JSON object.

        Raises
        ------
        InputError
            A feature is malformed, or has a name that JSON cannot represent.
        """
        known, texts = self._known, []
        for namespace, value in features.items():
            kind = type(value)
            if kind is dict:
                key = namespace, tuple(value.items())
            elif kind is list:
                key = namespace, tuple(value)
            else:
                key = namespace, value
            try:
                text = known.get(key)
            except TypeError:  # the value is malformed, or not hashable
                text = self._text_of(namespace, value)
            if text is None:
                if len(known) >= _MOST:
                    known.clear()
                text = known[key] = self._text_of(namespace, value)
            if text:
                texts.append(text)
        return "{" + ",".join(texts) + "}"

    def _text_of(self, namespace: str, value: Any) -> str:
        """Return the members of one namespace."""
        line = event_dsjson({"context": {namespace: value}, "actions": [{}]}, hash_seed=self._seed)
        return line[line.index(_BEGIN) + len(_BEGIN) : line.rindex(_END)].rstrip(",")
