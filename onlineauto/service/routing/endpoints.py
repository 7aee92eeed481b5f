"""``RouteFile``: the models that are routed, their addresses and prices, and the judge, as TOML."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from onlineauto.errors import InputError, OptionError
from onlineauto.options.registry import read_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

AUTO: Final = "auto"
"""The name of a model that clients send to have the model picked; so is any name that is not configured."""
_JUDGE: Final = """\
Grade how well the answer does what the prompt asks.
Reply with one number from 0 (useless) to 10 (perfect), and nothing else.

PROMPT:
{prompt}

ANSWER:
{answer}
"""
_LONGEST_NAME: Final = 128
_AMOUNT = Annotated[float, Meta(ge=0.0, le=1e6)]


class ModelEndpoint(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A table ``[models.NAME]``: where a model is, and what it costs."""

    url: str  # The base of the address, as in https://host/v1.
    model: str = ""  # The name to send; by default that of the table.
    key: str = ""  # The variable of the environment that has the key.
    input_price: _AMOUNT = 0.0  # Dollars per million tokens.
    output_price: _AMOUNT = 0.0
    timeout: Annotated[float, Meta(gt=0.0, le=86400.0)] = 60.0  # Seconds for an answer, or for a next event.
    routed: bool = True  # False: it answers only those who ask for it by its name, such as the judge.
    features: dict[str, float | str | bool] = {}  # What else is known of the model.


class Judge(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The table ``[judge]``: a model that grades the answers to a sample of the decisions."""

    model: str  # The name of its table.
    rate: Annotated[float, Meta(ge=0.0, le=1.0)] = 0.1  # The share of the decisions.
    low: float = 0.0  # The grades that become the rewards 0 and 1.
    high: float = 10.0
    prompt: str = _JUDGE
    parameters: dict[str, Any] = {}  # Further members of its request, such as temperature.


class RouteFile(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The whole file."""

    models: Annotated[dict[str, ModelEndpoint], Meta(min_length=1)]
    judge: Judge | None = None
    failure_reward: float | bool = (
        0.0  # The reward of a decision whose model failed; false: it is not learnt.
    )
    words: Annotated[int, Meta(ge=0, le=1000)] = (
        256  # Number of distinct words of a prompt that are features.
    )

    @property
    def routed(self) -> dict[str, ModelEndpoint]:
        """The models to pick from."""
        return {name: model for name, model in self.models.items() if model.routed}


def read_route_file(path: str, environment: Mapping[str, str]) -> tuple[RouteFile, dict[str, str]]:
    """Return the content of a file, and the keys of its models, which the environment has."""
    try:
        content = _read(tomllib.loads(read_settings(path)))
        _check(content)
        keys = {name: _key_of(name, model.key, environment) for name, model in content.models.items()}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError, InputError) as error:
        raise OptionError(f"{path}: {error}") from None
    return content, keys


def _read(document: dict[str, Any]) -> RouteFile:
    """Return the content of a document; an error in the table of a model names the model."""
    models = document.get("models")
    for name, table in models.items() if isinstance(models, dict) else ():
        try:
            msgspec.convert(table, ModelEndpoint)
        except msgspec.ValidationError as error:
            raise InputError(f"[models.{name}]: {error}") from None
    return msgspec.convert(document, RouteFile)


def _check(content: RouteFile) -> None:
    """Reject content whose parts do not fit together."""
    if not content.routed:
        raise InputError("no model is routed: at least one [models.NAME] is needed without routed = false")
    for name, model in content.models.items():
        if name == AUTO or not 1 <= len(name.encode()) <= _LONGEST_NAME:
            raise InputError(
                f"[models.{name[:40]}]: a name has 1 to {_LONGEST_NAME} bytes, and {AUTO!r} is none: "
                "it lets the router pick"
            )
        if urlsplit(model.url).scheme not in ("http", "https") or not urlsplit(model.url).hostname:
            raise InputError(f"[models.{name}]: url {model.url!r} is not like http://127.0.0.1:8101/v1")
    judge, failure = content.judge, content.failure_reward
    if failure is True or not abs(failure) < 1e9:
        raise InputError(f"failure_reward takes a number, or false to learn nothing, not {failure}")
    if judge is None:
        return
    if judge.model not in content.models:
        raise InputError(f"[judge]: model {judge.model!r} is none of {', '.join(content.models)}")
    if "{answer}" not in judge.prompt:
        raise InputError("[judge]: the prompt must have {answer} where the answer belongs")
    if not judge.low < judge.high:
        raise InputError(f"[judge]: low {judge.low:g} must be below high {judge.high:g}")


def _key_of(name: str, variable: str, environment: Mapping[str, str]) -> str:
    """Return the key of a model, or "" if it needs none."""
    key = environment.get(variable, "").strip() if variable else ""
    if variable and not key:
        raise InputError(f"[models.{name}]: the variable {variable} of the environment is not set")
    return key
