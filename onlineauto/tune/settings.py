"""``StudySettings``: the settings of a study, which record 1 of its log contains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from onlineauto.errors import OptionError, short_repr
from onlineauto.tune.plain import as_json, count, number
from onlineauto.tune.progress import Progress
from onlineauto.tune.schedulers import SCHEDULERS, Scheduler, Setting
from onlineauto.tune.searchers import SEARCHERS, Searcher
from onlineauto.tune.searchers.open_searcher import OpenSearcher
from onlineauto.tune.searchers.outcome import objectives_of
from onlineauto.tune.spaces import Space
from onlineauto.tune.spaces.space import OpenSpace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from onlineauto.options import Parts
    from onlineauto.tune.spaces import Parameter

UNLIMITED: Final = 10**9
"""Resource of a complete trial, if a study has no maximum: more steps than a trial reports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySettings:
    """Everything that a study depends on, except its log."""

    setting: Setting
    # A name, its options, and a callable that creates a new object.
    scheduler: tuple[str, Mapping[str, Any], Callable[[], Scheduler]]
    searcher: tuple[str, Mapping[str, Any], Callable[[], Searcher]]
    mode: Any  # As for `Study`, as plain JSON.
    max_trials: int | None
    retries: int
    lease: float | None = None  # Seconds of the leases; None for the default.
    named: bool = True  # True if the caller named the searcher, False if it is the default.

    @classmethod
    def of(
        cls,
        space: Mapping[str, Parameter | Mapping[str, Any]] | Space | None,
        scheduler: str | Scheduler | None,
        searcher: str | Searcher | None,
        *,
        mode: Any,
        max_trials: int | None,
        retries: int,
        lease: float | None = None,
        **ladder: int,
    ) -> StudySettings:
        """Check the arguments of a study and return its settings."""
        several = len(objectives_of(mode)) > 1
        if scheduler is None:
            scheduler = "fifo" if several else "hyperband"
        how = _part("scheduler", scheduler, SCHEDULERS, Scheduler)
        scheduler_object = how[2]()
        if space is None:
            space = OpenSpace()
        settings = cls(
            setting=Setting(space=space if isinstance(space, Space) else Space(space), **ladder),
            scheduler=how,
            searcher=_part(
                "searcher",
                scheduler_object.default_searcher if searcher is None else searcher,
                SEARCHERS,
                Searcher,
            ),
            mode=mode if isinstance(mode, str) else dict(mode) if isinstance(mode, Mapping) else list(mode),
            max_trials=None if max_trials is None else count("max_trials", max_trials, 1),
            retries=count("retries", retries, 0),
            lease=None if lease is None else seconds_of(lease),
            named=searcher is not None,
        )
        searcher_object = settings.searcher[2]()
        if isinstance(space, OpenSpace):
            for part in (scheduler_object, searcher_object):
                if part.needs_space:
                    raise OptionError(f"{part.name!r} needs a space that is declared before the study begins")
        if several and how[0] != "fifo":
            raise OptionError(f"scheduler={how[0]!r} compares one objective; with several, it is 'fifo'")
        if several and not searcher_object.several:
            takes = ", ".join(name for name, searcher_type in SEARCHERS.items() if searcher_type.several)
            raise OptionError(f"searcher={searcher_object.name!r} learns one objective; {takes} take several")
        if settings.setting.space.has_prior and not searcher_object.uses_prior:
            users = ", ".join(name for name, searcher_type in SEARCHERS.items() if searcher_type.uses_prior)
            raise OptionError(f"searcher={searcher_object.name!r} uses no prior; {users} do")
        settings.progress()  # rejects a ladder of one rung before anything is written
        return settings

    @classmethod
    def read(
        cls, stored: Mapping[str, Any], *, scheduler: Scheduler | None, searcher: Searcher | None
    ) -> StudySettings:
        """Return the settings of record 1, with the custom scheduler or searcher that it names."""
        if "scheduler" not in stored:
            raise OptionError(
                f"it is a log of {stored.get('log', 'another kind')}, and no study of onlineauto"
            )
        parts: dict[str, Any] = {}
        for part, custom, registry in (
            ("scheduler", scheduler, SCHEDULERS),
            ("searcher", searcher, SEARCHERS),
        ):
            name, options = stored[part]["name"], stored[part]["options"]
            if custom is None and name not in registry:
                source = stored.get("sources", {}).get(part)
                how = f" of {source}: it needs --import {source}, or in Python" if source else ": pass it as"
                raise OptionError(f"the study has a custom {part} {name!r}{how} {part}=")
            parts[part] = custom if custom is not None else registry[name](**options)
        rest = {key: value for key, value in stored.items() if key not in ("space", "sources", *parts)}
        return cls.of(stored["space"] or None, parts["scheduler"], parts["searcher"], **rest)

    def progress(self, setting: Setting | None = None) -> Progress:
        """Return the state of the study before its first record, optionally with another setting."""
        scheduler, make = self.scheduler[2](), self.searcher[2]
        searcher = OpenSearcher(make) if isinstance(self.setting.space, OpenSpace) else make()
        searcher.begin(self.setting.space, seed=self.setting.seed)
        searcher.limit = self.max_trials
        scheduler.begin(setting or self.setting)
        return Progress(scheduler, searcher, objectives=objectives_of(self.mode), retries=self.retries)

    def described(self) -> dict[str, Any]:
        """Return the settings as plain JSON, with the modules of parts that are not the package's."""
        sources = {
            "scheduler": SCHEDULERS.source(self.scheduler[2]()),
            "searcher": SEARCHERS.source(self.searcher[2]()),
        }
        sources = {part: source for part, source in sources.items() if source is not None}
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
            "lease": self.lease,
            **({"sources": sources} if sources else {}),
        }

    def of_study(self, stored: Mapping[str, Any]) -> StudySettings:
        """Return these settings with the limits, lease and default searcher of an existing, equal study."""
        name, options = stored["searcher"]["name"], stored["searcher"]["options"]
        searcher = self.searcher
        if not self.named and name != searcher[0] and name in SEARCHERS:
            searcher = _part("searcher", SEARCHERS[name](**options), SEARCHERS, Searcher)
        setting = replace(self.setting, max_resource=stored["max_resource"])
        return replace(
            self,
            setting=setting,
            mode=stored["mode"],  # in the order of the study
            max_trials=stored["max_trials"],
            lease=stored["lease"],
            searcher=searcher,
        )

    def check_growth(self, max_resource: int) -> None:
        """Raise `OptionError` if the scheduler does not support a larger resource."""
        if max_resource != self.setting.max_resource:
            fresh = self.progress(self.setting).scheduler
            fresh.extend(replace(self.setting, max_resource=max_resource))

    def check_same(self, stored: Mapping[str, Any], name: str, *, free: Sequence[str] = ()) -> None:
        """Raise `OptionError` if a study has other settings than these, except for the keys in `free`."""
        declared = self.described()
        skips = {"lease", "sources", *free, *(() if self.named else ("searcher",))}
        if differ := [key for key in declared if key not in skips and declared[key] != stored.get(key)]:
            key = differ[0]
            raise OptionError(
                f"the study {name!r} exists already with {key} = {stored.get(key)!r}, not {declared[key]!r}"
                ": give another name, or open the study with Study.load"
            )


def seconds_of(lease: Any) -> float:
    """Return the seconds of a lease; raise `OptionError` if it is not a number above 0."""
    seconds = number(lease)
    if isinstance(lease, bool) or not seconds > 0:
        raise OptionError(f"lease = {short_repr(lease)}: give a number of seconds above 0")
    return seconds


def _part(part: str, value: Any, registry: Parts[Any], kind: type[Any]) -> tuple[str, Any, Any]:
    """Return the name, the options and the factory of a scheduler or a searcher."""
    if isinstance(value, kind):
        options = as_json(value.options, f"options of {part} {value.name!r}")
        return value.name, options, lambda: type(value)(**options)
    if not isinstance(value, str) or value not in registry:
        raise OptionError(
            f"{part} = {value!r} is unknown; valid are {registry.listed}, or your own {kind.__name__}"
        )
    factory = registry[value]
    return value, dict(factory().options), factory
