"""``StudySettings``: what a study is about, as record 1 of its log has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onlineauto.errors import OptionError
from onlineauto.tune.progress import Progress
from onlineauto.tune.schedulers import SCHEDULERS, Scheduler, Setting
from onlineauto.tune.searchers import SEARCHERS, Searcher
from onlineauto.tune.spaces import Space

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from onlineauto.tune.spaces import Parameter

__all__ = ["StudySettings"]

_MODES = {"min": 1.0, "max": -1.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySettings:
    """Everything that a study depends on, but for its log.

    Attributes
    ----------
    setting : Setting
    scheduler, searcher : tuple
        A name, its options, and a callable that makes a new object.
    mode : str
    max_trials : int or None
    retries : int
    """

    setting: Setting
    scheduler: tuple[str, Mapping[str, Any], Callable[[], Scheduler]]
    searcher: tuple[str, Mapping[str, Any], Callable[[], Searcher]]
    mode: str
    max_trials: int | None
    retries: int

    @classmethod
    def of(
        cls,
        space: Mapping[str, Parameter | Mapping[str, Any]] | Space,
        scheduler: str | Scheduler,
        searcher: str | Searcher,
        *,
        mode: str,
        max_trials: int | None,
        retries: int,
        **ladder: int,
    ) -> StudySettings:
        """Check what a study was called with.

        Raises
        ------
        OptionError
            If a value is not valid; the message says what would be.
        """
        if mode not in _MODES:
            raise OptionError(f"mode = {mode!r}: valid are {', '.join(_MODES)}")
        counts: tuple[tuple[str, Any, int], ...] = (("max_trials", max_trials, 1), ("retries", retries, 0))
        for name, value, least in counts:
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
                raise OptionError(f"{name} = {value!r}: give a whole number, {least} or more")
        settings = cls(
            setting=Setting(space=space if isinstance(space, Space) else Space(space), **ladder),
            scheduler=_part("scheduler", scheduler, SCHEDULERS, Scheduler),
            searcher=_part("searcher", searcher, SEARCHERS, Searcher),
            mode=mode,
            max_trials=max_trials,
            retries=retries,
        )
        settings.progress()  # so that a ladder of one rung is found before anything is written
        return settings

    @classmethod
    def read(
        cls, found: Mapping[str, Any], *, scheduler: Scheduler | None, searcher: Searcher | None
    ) -> StudySettings:
        """Return what record 1 says."""
        made: dict[str, Any] = {}
        for what, own, registry in (("scheduler", scheduler, SCHEDULERS), ("searcher", searcher, SEARCHERS)):
            name, options = found[what]["name"], found[what]["options"]
            if own is None and name not in registry:
                raise OptionError(f"the study has a {what} {name!r} of one's own: give it as {what}=")
            made[what] = own if own is not None else registry[name](**options)
        rest = {key: value for key, value in found.items() if key not in ("space", "scheduler", "searcher")}
        return cls.of(found["space"], made["scheduler"], made["searcher"], **rest)

    @property
    def sign(self) -> float:
        """The factor that makes a loss of a value."""
        return _MODES[self.mode]

    def progress(self) -> Progress:
        """Return the state of the study before its first record."""
        scheduler, searcher = self.scheduler[2](), self.searcher[2]()
        searcher.begin(self.setting.space, seed=self.setting.seed)
        searcher.limit = self.max_trials
        scheduler.begin(self.setting)
        return Progress(scheduler, searcher, sign=self.sign, retries=self.retries)

    def described(self) -> dict[str, Any]:
        """Return everything as plain JSON."""
        return {
            "space": self.setting.space.described(),
            "scheduler": {"name": self.scheduler[0], "options": dict(self.scheduler[1])},
            "searcher": {"name": self.searcher[0], "options": dict(self.searcher[1])},
            "min_resource": self.setting.min_resource,
            "max_resource": self.setting.max_resource,
            "eta": self.setting.eta,
            "seed": self.setting.seed,
            "mode": self.mode,
            "max_trials": self.max_trials,
            "retries": self.retries,
        }

    def check_same(self, found: Mapping[str, Any], name: str) -> None:
        """Raise `OptionError` if a study is about something else than these settings."""
        ours = self.described()
        if differ := [key for key in ours if ours[key] != found.get(key)]:
            key = differ[0]
            raise OptionError(
                f"the study {name!r} is there already, with {key} = {found.get(key)!r} and not {ours[key]!r}"
                "; give it another name, or take it as it is by Study.load"
            )


def _part(what: str, given: Any, registry: Mapping[str, Any], kind: type[Any]) -> tuple[str, Any, Any]:
    """Return the name, the options and the maker of a scheduler or a searcher."""
    if isinstance(given, kind):
        options = dict(given.options)
        return given.name, options, lambda: type(given)(**options)
    if given not in registry:
        raise OptionError(
            f"{what} = {given!r} is unknown; valid are {', '.join(registry)}, or your own {kind.__name__}"
        )
    made = registry[given]
    return given, dict(made().options), made
