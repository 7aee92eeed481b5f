"""Codes by which the reading kernels report problems.

They are in a kernel file because kernels have them compiled in, and the cache of kernels depends on such
files.
"""

from __future__ import annotations

from enum import IntEnum

__all__ = ["Code"]


class Code(IntEnum):
    """Kind of a problem with a line; 0 is none.

    Names that begin with ``VW_`` are problems that VW warns of or stops at.
    """

    FINE = 0
    CONTROL_BYTE = 1
    NO_BAR = 2
    LABEL_NOT_A_NUMBER = 3
    LABEL_NOT_FINITE = 4
    WEIGHT_NOT_A_NUMBER = 5
    WEIGHT_NOT_FINITE = 6
    WEIGHT_NEGATIVE = 7
    INITIAL_NOT_A_NUMBER = 8
    INITIAL_NOT_FINITE = 9
    TOO_MANY_NUMBERS = 10
    ACTION_NOT_A_NUMBER = 11
    NO_ACTION_NAME = 12
    NO_COST = 13
    COST_NOT_A_NUMBER = 14
    COST_NOT_FINITE = 15
    NO_PROBABILITY = 16
    PROBABILITY_NOT_A_NUMBER = 17
    PROBABILITY_NOT_FINITE = 18
    PROBABILITY_NEGATIVE = 19
    PROBABILITY_ZERO = 20
    PROBABILITY_ABOVE_ONE = 21
    TOO_MANY_PARTS = 22
    SECOND_COST = 23
    SECOND_LABEL = 24
    LATE_SHARED = 25
    SHARED_WITH_MORE = 26
    NO_ACTIONS = 27
    NO_NAMESPACE_NAME = 28
    NO_NAMESPACE_WEIGHT = 29
    NAMESPACE_WEIGHT_NOT_A_NUMBER = 30
    NAMESPACE_WEIGHT_NOT_FINITE = 31
    NO_VALUE = 32
    VALUE_NOT_FINITE = 33
    BAR_IN_VALUE = 34
    VALUE_PARTLY_A_NUMBER = 35
    TAG_LIKE_LABEL = 36
    VW_NAMESPACE = 37
    VW_NAMESPACE_FLOAT = 38
    VW_NAMESPACE_NAN = 39
    VW_VALUE_NAN = 40
    VW_FEATURES = 41
    VW_END = 42
    VW_FLOAT = 43
    VW_TOO_MANY_TOKENS = 44
    VW_WEIGHT = 45
    VW_PROBABILITY_ABOVE_ONE = 46
    VW_PROBABILITY_NEGATIVE = 47
    VW_SHARED_WITH_COST = 48
    VW_MALFORMED_COST = 49
    VW_GRAPH = 50
    VW_SAVE = 51
    TAKEN_AS_UNIFORM = 52
    JSON_VALUE = 53
    JSON_STRING = 54
    JSON_MEMBER = 55
    JSON_ELEMENT = 56
    JSON_COLON = 57
    JSON_END = 58
    JSON_NO_OBJECT = 59
    JSON_TOO_DEEP = 60
    JSON_UNEXPECTED = 61
    JSON_KEY = 62
    JSON_LABEL_INDEX = 63
    JSON_NO_LABEL_INDEX = 64
    JSON_NO_MULTI = 65
    JSON_SINGLE_LINE = 66
    JSON_DROP_ONE = 67
    JSON_TWO_CONTEXTS = 68
    JSON_LABEL = 69
    SLOT_LABEL = 70
    SLOT_OUTCOME = 71
    SLOT_SUM = 72
    SLOT_ORDER = 73
    TOO_MANY_SLOTS = 74
    SLOT_ACTION = 75
    VW_INT = 76
    JSON_OUTCOMES = 77
    SLOT_LISTS = 78
    SLOT_LABELLED = 79
    LABEL_FAR_OUT = 80
    ACTION_OUT_OF_RANGE = 81
    NO_LABEL = 82
