"""LogCounts: counts of the lines and events of a decision-service log."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, kw_only=True)
class LogCounts:
    """Counts of a log's lines, and its first and last event, named as in VW's metrics.

    Attributes
    ----------
    line_parse_error : int
        Lines that were skipped because they are malformed.
    number_events_zero_actions : int
        Lines without a ranking, such as late rewards.
    number_skipped_events : int
        Events marked ``_skipLearn``.
    dsjson_sum_cost_original, dsjson_sum_cost_original_baseline : float
        Sum of ``_original_label_cost`` of all events, and of those whose ranking begins with the first
        action; float32.
    first_event_id, first_event_time : str
        ``EventId`` and ``Timestamp`` of the first event that has one.
    last_event_id, last_event_time : str
        ``EventId`` and ``Timestamp`` of the last event, if there are several events.
    """

    line_parse_error: int = 0
    number_events_zero_actions: int = 0
    number_skipped_events: int = 0
    dsjson_sum_cost_original: float = 0.0
    dsjson_sum_cost_original_baseline: float = 0.0
    first_event_id: str = ""
    first_event_time: str = ""
    last_event_id: str = ""
    last_event_time: str = ""


@dataclass(slots=True, kw_only=True)
class SlotLogCounts:
    """Counts of a log of events with slots, which VW counts by their first slot.

    Attributes
    ----------
    dsjson_number_label_equal_baseline_first_slot, dsjson_number_label_not_equal_baseline_first_slot : int
        Events with ``_ba`` whose first slot got the first action of ``_ba``, and those whose first slot did
        not.
    line_parse_error, number_events_zero_actions, number_skipped_events : int
        As in `LogCounts`.
    dsjson_sum_cost_original, dsjson_sum_cost_original_first_slot : float
        Sum of ``_original_label_cost`` of all slots, and of the first slots; float32.
    dsjson_sum_cost_original_label_equal_baseline_first_slot : float
        The latter sum, over events whose first slot got the first action of ``_ba``.
    first_event_id, first_event_time, last_event_id, last_event_time : str
        As in `LogCounts`.
    """

    dsjson_number_label_equal_baseline_first_slot: int = 0
    dsjson_number_label_not_equal_baseline_first_slot: int = 0
    line_parse_error: int = 0
    number_events_zero_actions: int = 0
    number_skipped_events: int = 0
    dsjson_sum_cost_original: float = 0.0
    dsjson_sum_cost_original_first_slot: float = 0.0
    dsjson_sum_cost_original_label_equal_baseline_first_slot: float = 0.0
    first_event_id: str = ""
    first_event_time: str = ""
    last_event_id: str = ""
    last_event_time: str = ""
