"""Trainables: the classes and functions that a trial runs, and one driver for both.

A *class* does one unit of resource in each ``step``. Its objects can be saved after any step, and may be
reused for the next trial:

>>> class Falling(Trainable):
...     def setup(self, config):
...         self.rate, self.loss = config["rate"], 1.0
...     def step(self):
...         self.loss *= 1 - self.rate
...         return self.loss
...     def save(self):
...         return self.loss
...     def load(self, saved):
...         self.loss = saved

A *function* takes the config, or the config and the resource, and returns its value. With a third argument it
reports a value after each unit of resource, and may save the state that it needs to continue:

>>> def falling(config, resource, report):
...     loss = 1.0 if report.saved is None else report.saved
...     while report.step < resource:
...         loss *= 1 - config["rate"]
...         report(loss, save=loss)

A saved state is bytes, or an object that JSON can represent.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property, reduce
from typing import Any, Final, TypeAlias

from onlineauto.errors import OptionError
from onlineauto.tune.plain import as_int, as_json

OF_STREAM = "stream "
"""Prefix of the recorded trainable if trials learn a stream, which no other process can import."""
_ANY_NUMBER: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
Config: TypeAlias = Mapping[str, Any]
"""Values of hyperparameters by name."""
Saved: TypeAlias = Any
"""The content of a checkpoint: bytes, or an object that JSON can represent."""
Function: TypeAlias = Callable[..., Any]
"""A function of a config, of a config and a resource, or of these and a `Report`."""
Details: TypeAlias = Mapping[str, Any] | None
"""Description of a value as plain JSON, which is recorded with the value and may be read by a scheduler."""
Hear: TypeAlias = Callable[[int, Any, Callable[[], Saved] | None, Details], bool]
"""Receives step, value, a function that saves, and details; returns whether the trial continues."""


History: TypeAlias = Callable[[], list[dict[str, Any]]]
"""Returns the rows of values that were reported before a job was claimed."""


class Leave(BaseException):
    """End a function whose job is done. `Report` raises it, and `train` catches it."""


class Trainable(ABC):
    """Runs a trial, one unit of resource after the other."""

    @abstractmethod
    def setup(self, config: Config) -> None:
        """Begin a trial with this config."""

    @abstractmethod
    def step(self) -> float:
        """Do one unit of resource and return the value after it."""

    def save(self) -> Saved:
        """Return the state that `load` needs to continue from here; None if trials cannot be resumed."""
        return None

    def load(self, saved: Saved) -> None:
        """Restore a state that `save` has returned."""
        raise NotImplementedError(f"{type(self).__name__} has save() but no load()")

    def reset(self, config: Config) -> bool:
        """Begin another trial in this object, which is faster than a new one; return False if unsupported."""
        del config
        return False


AnyTrainable: TypeAlias = Function | type[Trainable]
"""A function or a class that a trial can run."""


class Report:
    """The third argument of a function, which calls it with a value after each unit of resource."""

    def __init__(
        self, *, resource: int, step: int, saved: Saved, report: Hear, history: History = list
    ) -> None:
        self.resource = resource
        self.step = step
        self.saved = saved
        self._report_step = report
        self._begins: int | None = step
        self._from_zero = False
        self._read_history = history

    @cached_property
    def history(self) -> list[dict[str, Any]]:
        """A row for each value that trials had reported when this job was claimed; see `StudyView.history`.

        The rows stay the same while the job runs. They are read from the study at the first access.
        """
        return self._read_history()

    def __call__(
        self, value: float, *, step: int | None = None, save: Saved = None, details: Details = None
    ) -> None:
        """Report the value after one more step, or after `step` steps, and the content of a checkpoint.

        Steps may also be counted from 0: if the first reported step equals the number of earlier steps (0 in
        a new trial), 1 is added to each step. If `save` is a function, it is called when a checkpoint is
        saved, and returns its content.
        """
        if step is None:
            self.step, self._begins = self.step + 1, None
        else:
            self.step = self._completed_steps(step)
        how = save if save is None or callable(save) else lambda: save
        plain = as_json(details, "a value's details") if details else None
        continues = self._report_step(self.step, value, how, plain)
        if not continues or self.step >= self.resource:
            raise Leave

    def finish(self, value: float) -> None:
        """Report the value after the last step."""
        self.step = self.resource
        self._report_step(self.step, value, None, None)

    def _completed_steps(self, step: Any) -> int:
        """Return the number of steps that are done, from a step counted from 0 or 1."""
        count = as_int(step)
        if count is None or count < 0:
            raise OptionError(f"report(step={step!r}): a step is a whole number, 0 or more")
        if self._begins is not None:
            self._from_zero, self._begins = count == self._begins, None
        return count + self._from_zero


def train(
    trainable: AnyTrainable,
    config: Config,
    *,
    resource: int,
    step: int,
    saved: Saved,
    report: Hear,
    reusable: Trainable | None = None,
    history: History = list,
) -> Trainable | None:
    """Run a trial from `step` to `resource`; return its object, which the next trial may reuse."""
    if isinstance(trainable, type) and issubclass(trainable, Trainable):
        trained = reusable if reusable is not None and reusable.reset(config) else _new(trainable, config)
        if saved is not None:
            trained.load(saved)
        while step < resource:
            value = trained.step()
            step += 1
            if not report(step, value, trained.save, None):
                break
        return trained
    reporter = Report(resource=resource, step=step, saved=saved, report=report, history=history)
    _call(trainable, config, reporter)
    return None


def _new(trainable: type[Trainable], config: Config) -> Trainable:
    trained = trainable()
    trained.setup(config)
    return trained


def _call(trainable: Function, config: Config, report: Report) -> None:
    """Call a function, and report its return value, unless that is None, as the value of the last step."""
    try:
        value = trainable(*(config, report.resource, report)[: n_arguments(trainable)])
        if value is not None:
            report.finish(value)
    except Leave:
        return


def takes_config_only(trainable: Any) -> bool:
    """Return whether a trainable is a function of the config alone, so that more resource changes nothing."""
    return not isinstance(trainable, type) and callable(trainable) and n_arguments(trainable) == 1


def n_arguments(trainable: Any) -> int:
    """Return the number of arguments that a function takes: a config, a resource, a `Report`.

    >>> n_arguments(lambda c, scale=2: 0), n_arguments(lambda config, resource: 0), n_arguments(lambda *_: 0)
    (1, 2, 2)
    """
    if callable(trainable):
        try:
            parameters = inspect.signature(trainable).parameters.values()
        except ValueError:  # a C function without a signature
            return 1
        positional = [
            parameter
            for parameter in parameters
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        ]
        needed = [
            parameter
            for parameter in parameters
            if parameter.default is parameter.empty and parameter.kind not in _ANY_NUMBER
        ]
        any_number = any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters)
        if (positional or any_number) and len(needed) <= 3 and set(needed) <= set(positional):
            return max(2 if any_number else 1, len(needed))
    raise OptionError(
        f"{trainable!r} cannot be run: a trainable is a class of Trainable, f(config), f(config, resource) "
        "or f(config, resource, report)"
    )


def import_trainable(text: str) -> Any:
    """Return the object with the name ``MODULE:NAME``.

    >>> import_trainable("json:dumps") is import_trainable("json:encoder.JSONEncoder.encode")
    False
    """
    module, colon, name = text.partition(":")
    if not (colon and name and all(map(str.isidentifier, module.split(".")))):
        raise OptionError(f"trainable = {text!r}: it is MODULE:NAME, as in train:loss for loss in train.py")
    try:
        target: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise OptionError(f"trainable = {text!r}: there is no module {error.name!r} here") from None
    for part in name.split("."):
        try:
            target = getattr(target, part)
        except AttributeError:
            raise OptionError(f"trainable = {text!r}: the module {module!r} has no {part!r}") from None
    return target


def name_of_trainable(trainable: AnyTrainable) -> str | None:
    """Return the name by which other processes import a function or a class; None if they cannot.

    >>> import json
    >>> name_of_trainable(json.dumps), name_of_trainable(lambda config: 0)
    ('json:dumps', None)
    """
    module, name = getattr(trainable, "__module__", None), getattr(trainable, "__qualname__", None)
    if not (isinstance(module, str) and isinstance(name, str)) or module == "__main__":
        return None
    try:
        target: Any = reduce(getattr, name.split("."), sys.modules.get(module))
    except AttributeError:
        return None
    return f"{module}:{name}" if target is trainable else None


def about_stream(trainable: AnyTrainable, stored: str | None, study: str) -> str | None:
    """Return the description of the stream that trials learn, or None."""
    about: str | None = getattr(trainable, "about", None)
    if stored is not None and stored.startswith(OF_STREAM) and about != stored:
        raise OptionError(
            f"trials of {study!r} learn the {stored}, but these would learn the {about or 'function'}: "
            "give the study another name"
        )
    return about
