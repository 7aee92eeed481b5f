"""Read numbers by regular expressions, fractions, and float32 step by step."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np

DECIMAL = re.compile(rb"([+-]?)(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))(?:[eE]([+-]?[0-9]+))?")
HEXADECIMAL = re.compile(
    rb"([+-]?)0[xX](?:([0-9a-fA-F]+)(?:\.([0-9a-fA-F]*))?|\.([0-9a-fA-F]+))(?:[pP]([+-]?[0-9]+))?"
)
NOT_FINITE = re.compile(rb"([+-]?)(?:(inf(?:inity)?)|nan(?:\([0-9a-z_]*\))?)", re.IGNORECASE)
VW = re.compile(rb" *(-?)([0-9]*)(?:\.([0-9]*))?(?:[eE](-?)([0-9]*))?")


def nearest_float32(x: Fraction) -> np.float32:
    """Return the float32 nearest to `x`, ties to even."""
    if x < 0:
        return -nearest_float32(-x)
    spacing = Fraction(1, 2**149)
    while x >= spacing * 2**24:
        spacing *= 2
    steps = round(x / spacing)  # Python's round is half-to-even and exact on fractions
    value = steps * spacing
    if value >= 2**128:
        return np.float32(np.inf)
    return np.float32(float(value))


def scaled(match: re.Match[bytes], digit_base: int, exponent_base: int) -> np.float32:
    sign, whole, decimals, only_decimals, exponent = match.groups()
    digits = (whole or b"") + (decimals or only_decimals or b"")
    power = int(exponent or 0)
    value = Fraction(int(digits, digit_base))
    # Beyond these bounds the result is 0 or infinite, and the fraction would be too large to make.
    bound = 4 * len(digits) + 500
    power = max(-bound, min(bound, power))
    value *= Fraction(exponent_base) ** power
    value /= digit_base ** len(decimals or only_decimals or b"")
    nearest = nearest_float32(value)
    return -nearest if sign == b"-" else nearest


def parse_decimal(text: bytes) -> tuple[np.float32, int]:
    match = DECIMAL.match(text)
    if match is None:
        return np.float32(0), 0
    return scaled(match, 10, 10), match.end()


def strtof(text: bytes) -> tuple[np.float32, int]:
    blanks = len(text) - len(text.lstrip(b" \t\n\v\f\r"))
    rest = text[blanks:]
    if match := NOT_FINITE.match(rest):
        value = np.float32(np.inf) if match[2] else np.float32(np.nan)
        return -value if match[1] == b"-" else value, blanks + match.end()
    if match := HEXADECIMAL.match(rest):
        return scaled(match, 16, 2), blanks + match.end()
    value, after = parse_decimal(rest)
    return value, blanks + after if after else 0


def vw_power_of_ten(exponent: int) -> np.float32:
    wrapped = (exponent + 128) % 256 - 128
    if wrapped > 38:
        return np.float32(np.inf)
    if wrapped < -37:
        return np.float32(0)
    power = np.float32(1)
    for _ in range(abs(wrapped)):
        power = power * np.float32(10) if wrapped > 0 else power / np.float32(10)
    return power


def parse_vw_float(text: bytes) -> tuple[np.float32, int]:
    if text.startswith(b"\0"):
        return np.float32(0), 0
    match = VW.match(text)
    assert match is not None
    if text[match.end() : match.end() + 1] not in (b"", b" ", b"\n", b"\t"):
        return strtof(text)
    sign, whole, decimals, exponent_sign, exponent = match.groups()
    decimals = (decimals or b"")[:35]
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        value = np.float32(0)
        for byte in whole:
            value = value * np.float32(10)
            value = value + np.float32(byte)
            value = value - np.float32(48)
        for byte in decimals:
            value = value * np.float32(10)
            value = value + np.float32(byte - 48)
        power = int(exponent or 0) * (-1 if exponent_sign == b"-" else 1)
        value = value * vw_power_of_ten(power - len(decimals))
    return -value if sign == b"-" else value, match.end()
