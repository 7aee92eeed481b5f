"""``rank_many``: many decisions at once, each of which fails alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from onlineauto.errors import InputError, short_repr

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from onlineauto.api.decisions.choice import Choice
    from onlineauto.api.decisions.decisions import Decisions
    from onlineauto.api.decisions.events import Actions, Features
    from onlineauto.formats.mappings.encoded_event import EncodedEvent
    from onlineauto.workspace.workspace import Workspace

ManyDecisions: TypeAlias = "Iterable[tuple[Features, Actions] | tuple[Features, Actions, str | None]]"
"""Contexts and actions, as for `AutoML.rank`, with the ids of the decisions or without."""

EncodedDecision: TypeAlias = "tuple[EncodedEvent, Actions, str | None]"
"""An encoded event, its actions, and the id of the decision."""


def encode_many(
    decisions: ManyDecisions, encode: Callable[[Features, Actions], EncodedEvent]
) -> list[EncodedDecision | InputError]:
    """Return the encoded events with their actions and ids; an error in place of a malformed one."""
    return [_encoded(each, encode) for each in decisions]


def decide_many(
    found: Sequence[EncodedDecision | InputError], decisions: Decisions, workspace: Workspace
) -> list[Choice | InputError | OSError]:
    """Predict events, draw their actions in order, and return the decisions, or the error of each."""
    events = [each[0] for each in found if not isinstance(each, InputError)]
    pmfs = iter(workspace.predict_each(events))
    choices: list[Choice | InputError | OSError] = []
    for each in found:
        if isinstance(each, InputError):
            choices.append(each)
            continue
        pmf = next(pmfs)
        if isinstance(pmf, InputError):
            choices.append(pmf)
            continue
        try:
            choices.append(decisions.decide(each[0], each[1], pmf, each[2]))
        except (InputError, OSError) as error:
            choices.append(error)
    return choices


def _encoded(
    decision: object, encode: Callable[[Features, Actions], EncodedEvent]
) -> EncodedDecision | InputError:
    if not isinstance(decision, tuple | list) or not 2 <= len(decision) <= 3:
        return InputError(
            f"a decision is (context, actions) or (context, actions, event_id), not {short_repr(decision)}"
        )
    context, actions, *event_id = decision
    try:
        event = encode(context, actions)
    except InputError as error:
        return error
    return event, actions, event_id[0] if event_id else None
