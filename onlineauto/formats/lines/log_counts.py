"""LogCounts: counts of the lines and events of a decision-service log."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, kw_only=True)
class LogCounts:
    """Counts of a log's lines, and its first and last event, named as in VW's metrics."""

    line_parse_error: int = 0  # Lines that were skipped because they are malformed.
    number_events_zero_actions: int = 0  # Lines without a ranking, such as late rewards.
    number_skipped_events: int = 0  # Events marked ``_skipLearn``.
    # Sum of ``_original_label_cost`` of all events, and of those whose ranking begins with the first action;
    # float32.
    dsjson_sum_cost_original: float = 0.0
    dsjson_sum_cost_original_baseline: float = 0.0
    first_event_id: str = ""  # ``EventId`` and ``Timestamp`` of the first event that has one.
    first_event_time: str = ""
    last_event_id: str = ""  # ``EventId`` and ``Timestamp`` of the last event, if there are several events.
    last_event_time: str = ""


@dataclass(slots=True, kw_only=True)
class SlotLogCounts:
    """Counts of a log of events with slots, which VW counts by their first slot."""

    # Events with ``_ba`` whose first slot got the first action of ``_ba``, and those whose first slot did
    # not.
    dsjson_number_label_equal_baseline_first_slot: int = 0
    dsjson_number_label_not_equal_baseline_first_slot: int = 0
    line_parse_error: int = 0  # As in `LogCounts`.
    number_events_zero_actions: int = 0
    number_skipped_events: int = 0
    # Sum of ``_original_label_cost`` of all slots, and of the first slots; float32.
    dsjson_sum_cost_original: float = 0.0
    dsjson_sum_cost_original_first_slot: float = 0.0
    # The latter sum, over events whose first slot got the first action of ``_ba``.
    dsjson_sum_cost_original_label_equal_baseline_first_slot: float = 0.0
    first_event_id: str = ""  # As in `LogCounts`.
    first_event_time: str = ""
    last_event_id: str = ""
    last_event_time: str = ""
