"""Personalizer's configuration, policy, model and logs, and its calls that have no counterpart here.

The paths of all its versions, ``/personalizer/v1.0/…``, ``/personalizer/v1.1-preview.1/…`` to
``…preview.3/…`` and ``/personalizer/…?api-version=…``, are answered alike. A call that has no counterpart
here is answered 501, with a body that says what to use instead.
"""

from __future__ import annotations

import re
import shlex
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import msgspec

from onlineauto.errors import OptionError
from onlineauto.service.refused import RefusedError
from onlineauto.workspace.options import REGISTRY

if TYPE_CHECKING:
    from onlineauto.service.join.settings import JoinSettings
    from onlineauto.service.loop.loop import Loop

_OTHER: Final = re.compile(r"/personalizer/(?:v1\.1-preview\.[123]/)?(?!v1\.)")
_CANONICAL: Final = "/personalizer/v1.0/"
_MODES: Final = {"Online": "online", "Apprentice": "apprentice", "LoggingOnly": "logging-only"}
_EVALUATE: Final = (
    "POST /v1/evaluate evaluates policies over the whole log, and GET /v1/status has the live values"
)
_ERASE: Final = (
    "the model is a function of the log: --keep_log DAYS limits the log, and onlineauto loop FOLDER "
    "--erase IDS removes the features of events"
)
_NOT_HERE: Final = (
    (
        "POST",
        "/configurations/applyFromEvaluation",
        "--automl adopts better settings by itself while it learns",
    ),
    ("*", "/evaluations", f"there are no evaluation jobs: {_EVALUATE}"),
    (
        "*",
        "/featureImportances",
        "GET /v1/status has what the champion crosses, and onlineauto inspect its weights",
    ),
    ("POST", "/logs/interactions", "each rank is logged when it is answered: send ranks"),
    ("POST", "/logs/observations", "rewards of decisions made elsewhere are not accepted: send rewards"),
    ("DELETE", "/logs", _ERASE),
)


class ServiceConfiguration(msgspec.Struct, rename="camel", omit_defaults=True):
    """The body of ``/configurations/service``; in a change, absent fields stay as they are."""

    reward_wait_time: timedelta | msgspec.UnsetType = msgspec.UNSET
    default_reward: float | msgspec.UnsetType = msgspec.UNSET
    reward_aggregation: str | msgspec.UnsetType = msgspec.UNSET
    exploration_percentage: float | msgspec.UnsetType = msgspec.UNSET
    model_export_frequency: timedelta | msgspec.UnsetType = msgspec.UNSET
    log_retention_days: int | msgspec.UnsetType = msgspec.UNSET
    learning_mode: str | msgspec.UnsetType | None = msgspec.UNSET
    log_mirror_enabled: bool | msgspec.UnsetType | None = msgspec.UNSET
    is_auto_optimization_enabled: bool | msgspec.UnsetType | None = msgspec.UNSET
    model_retrain_days: int | msgspec.UnsetType = msgspec.UNSET


class PolicyContract(msgspec.Struct):
    """The body of ``/configurations/policy``: the name of the service, and the options of its model."""

    name: str
    arguments: str


class ModelProperties(msgspec.Struct, rename="camel"):
    """The answer of ``/model/properties``: the times of the first record and of the last change."""

    creation_time: datetime
    last_modified_time: datetime


class DateRange(msgspec.Struct):
    """The times of the first and the last record of the log."""

    begin: datetime = msgspec.field(name="from")
    end: datetime = msgspec.field(name="to")


class LogProperties(msgspec.Struct, rename="camel"):
    """The answer of ``/logs/properties``."""

    date_range: DateRange


def canonical_path(path: str) -> str:
    """Return a path of any version of Personalizer as that of version 1.0, and other paths unchanged.

    >>> canonical_path("/personalizer/v1.1-preview.3/multislot/rank"), canonical_path("/personalizer/rank")
    ('/personalizer/v1.0/multislot/rank', '/personalizer/v1.0/rank')
    >>> canonical_path("/v1/rank")
    '/v1/rank'
    """
    match = _OTHER.match(path)
    return path if match is None else _CANONICAL + path[match.end() :]


def what_instead(method: str, path: str) -> str:
    """Return what to use instead of a call of Personalizer that is not here; "" for any other path.

    >>> what_instead("GET", "/personalizer/v1.0/evaluations/e")[:29]
    'there are no evaluation jobs:'
    """
    rest = path.removeprefix(_CANONICAL[:-1])
    if rest == path:
        return ""
    for wanted, begin, instead in _NOT_HERE:
        if wanted in ("*", method) and (rest == begin or (rest.startswith(begin + "/") and wanted == "*")):
            return instead
    return ""


def configuration_of(loop: Loop) -> ServiceConfiguration:
    """Return the settings of a service in Personalizer's terms."""
    settings, epsilon = loop.join.settings, loop.learner.workspace.configuration.get("epsilon")
    return ServiceConfiguration(
        reward_wait_time=timedelta(seconds=settings.reward_wait),
        default_reward=settings.default_reward,
        reward_aggregation="earliest" if settings.aggregation == "first" else settings.aggregation,
        exploration_percentage=float(str(epsilon)),
        model_export_frequency=timedelta(seconds=max(round(loop.every.publish), 1)),
        log_retention_days=-1 if loop.keep_log is None else max(round(loop.keep_log / 86400.0), 1),
        learning_mode=next(name for name, mode in _MODES.items() if mode == settings.mode),
        log_mirror_enabled=False,
        is_auto_optimization_enabled=bool(loop.learner.workspace.configuration.get("automl")),
        model_retrain_days=0,
    )


def changes_in(body: ServiceConfiguration, loop: Loop) -> dict[str, object]:
    """Return the settings that a configuration of Personalizer changes."""
    current, fixed = configuration_of(loop), []
    for name, flag in (
        ("exploration_percentage", "--epsilon"),
        ("model_export_frequency", "--publish_every"),
        ("log_retention_days", "--keep_log"),
    ):
        wanted, now = getattr(body, name), getattr(current, name)
        if wanted is not msgspec.UNSET and wanted != now:
            fixed.append(f"{name.replace('_', ' ')} ({flag}) is {_text(now)}, not {_text(wanted)}")
    if body.log_mirror_enabled is True:
        fixed.append("there is no mirror of the log (--log_topic copies it to Kafka)")
    if fixed:
        raise RefusedError(
            f"nothing was changed, because some values are set when the service starts: {'; '.join(fixed)}",
            status=501,
        )
    return settings_in(body)


def settings_in(body: ServiceConfiguration) -> dict[str, object]:
    """Return the settings of a service that a configuration of Personalizer has."""
    changes: dict[str, object] = {}
    if body.reward_wait_time is not msgspec.UNSET:
        changes["reward_wait"] = body.reward_wait_time.total_seconds()
    if body.default_reward is not msgspec.UNSET:
        changes["default_reward"] = body.default_reward
    if body.reward_aggregation is not msgspec.UNSET:
        how = body.reward_aggregation.lower()
        changes["aggregation"] = "first" if how == "earliest" else how
    if isinstance(body.learning_mode, str):
        if body.learning_mode not in _MODES:
            raise OptionError(f"learningMode takes one of {', '.join(_MODES)}, not {body.learning_mode}")
        changes["mode"] = _MODES[body.learning_mode]
    return changes


def check_policy(policy: PolicyContract, settings: JoinSettings) -> None:
    """Check that a policy has the options of the model, which are those of the start."""
    wanted = REGISTRY.parse(words_of(policy.arguments)).command(kept=True)
    if wanted != REGISTRY.parse(shlex.split(settings.options)).command(kept=True):
        raise RefusedError(
            f"the options of a model are those of its start: {settings.options}. Others need another folder: "
            f"onlineauto serve FOLDER {policy.arguments}; POST /v1/evaluate compares them on the log",
            status=501,
        )


def words_of(options: str) -> list[str]:
    """Return the words of options; raise OptionError if a quotation has no end."""
    try:
        return shlex.split(options)
    except ValueError as error:
        raise OptionError(f"options {options[:200]!r}: {error}") from None


def date_of(seconds: float) -> datetime:
    """Return a time of the log as a date."""
    return datetime.fromtimestamp(seconds, UTC)


def _text(value: object) -> str:
    return f"{value.total_seconds():g} seconds" if isinstance(value, timedelta) else f"{value}"
