"""Convert spaces from and to the package ConfigSpace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onlineauto.errors import OptionError, install_hint
from onlineauto.tune.spaces.parameter import Categorical, Float, Int, Parameter
from onlineauto.tune.spaces.space import Space

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onlineauto.tune.spaces.parameter import Value


def from_configspace(space: Any) -> Space:
    """Return the space of a `ConfigSpace.ConfigurationSpace`.

    An ordinal hyperparameter becomes a `Categorical`, and so does a constant.
    """
    if space.forbidden_clauses:
        raise OptionError(f"a space has no forbidden clauses: {space.forbidden_clauses[0]}")
    when: dict[str, dict[str, list[Value]]] = {}
    for condition in space.conditions:
        for child, parent, values in _read(condition):
            when.setdefault(child, {})[parent] = values
    return Space(
        {
            hyperparameter.name: _parameter(hyperparameter, when.get(hyperparameter.name, {}))
            for hyperparameter in space.values()
        }
    )


def _read(condition: Any) -> Iterator[tuple[str, str, list[Value]]]:
    """Yield child, parent and values of the parent of a condition, or of each part of a conjunction."""
    kind = type(condition).__name__
    if kind == "AndConjunction":
        for part in condition.components:
            yield from _read(part)
    elif kind in ("EqualsCondition", "InCondition"):
        values = [condition.value] if kind == "EqualsCondition" else condition.values
        yield condition.child.name, condition.parent.name, [_builtin_value(value) for value in values]
    else:
        raise OptionError(f"a parameter can depend on values of others, not on {condition}")


def _parameter(hyperparameter: Any, when: dict[str, list[Value]]) -> Parameter:
    kind = type(hyperparameter).__name__
    if kind == "UniformFloatHyperparameter":
        return Float(
            float(hyperparameter.lower), float(hyperparameter.upper), log=bool(hyperparameter.log), when=when
        )
    if kind == "UniformIntegerHyperparameter":
        return Int(
            int(hyperparameter.lower), int(hyperparameter.upper), log=bool(hyperparameter.log), when=when
        )
    if kind == "CategoricalHyperparameter" and hyperparameter.weights is None:
        return Categorical([_builtin_value(choice) for choice in hyperparameter.choices], when=when)
    if kind == "OrdinalHyperparameter":
        return Categorical([_builtin_value(choice) for choice in hyperparameter.sequence], when=when)
    if kind == "Constant":
        return Categorical([_builtin_value(hyperparameter.value)], when=when)
    raise OptionError(f"{hyperparameter.name}: a parameter is uniform; {hyperparameter} is not")


def _builtin_value(value: Any) -> Value:
    """Return a value of Python or NumPy as plain Python."""
    plain: Value = value.item() if hasattr(value, "item") else value
    return plain


def to_configspace(space: Space) -> Any:
    """Return a space as a `ConfigSpace.ConfigurationSpace`."""
    try:
        import ConfigSpace as Theirs
    except ImportError as error:
        raise OptionError(f"a ConfigSpace needs its package: {install_hint('configspace')}") from error
    configspace = Theirs.ConfigurationSpace()
    for name, parameter in space.parameters.items():
        if isinstance(parameter, Categorical):
            configspace.add(Theirs.CategoricalHyperparameter(name, list(parameter.values)))
        elif isinstance(parameter, Float | Int):
            if parameter.low == parameter.high:
                configspace.add(Theirs.Constant(name, parameter.low))
                continue
            if "step" in parameter.described():
                raise OptionError(f"{name}: step = {parameter.step} is not supported by ConfigSpace here")
            kind: Any = Theirs.Float if isinstance(parameter, Float) else Theirs.Integer
            configspace.add(kind(name, (parameter.low, parameter.high), log=parameter.log))
    for name in space.ordered:
        conditions = [
            Theirs.InCondition(configspace[name], configspace[parent], list(values))
            for parent, values in space.parameters[name].when.items()
        ]
        if conditions:
            configspace.add(conditions[0] if len(conditions) == 1 else Theirs.AndConjunction(*conditions))
    return configspace
