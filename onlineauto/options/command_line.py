"""Split a command line into options and their words, by Vowpal Wabbit's rules.

`argparse` cannot follow these rules. On Python 3.11 it takes ``-1e-3`` for a flag, it reads ``-tq ab`` as two
flags, and after ``--quadratic=ab cd`` it takes ``cd`` for the data file. The rules are shorter than the
exceptions would be:

* A flag of one value takes the next word, regardless of its form, or the text after ``=`` or the letter:
  ``--passes 3``, ``--passes=3``, ``-b18``.
* A flag that can be repeated takes every word up to the next flag: ``-q ab cd``.
* A switch takes no value; ``-tq`` is an error.
* ``-`` and negative numbers are not flags. After ``--`` there are no flags.
* A word that no flag takes names the data file.

There is one deviation. A value that is also a known flag is rejected, as in ``-p --quiet``, since most likely
a file name is missing. Write ``--predictions=--quiet`` to use such a value.

Source: Vowpal Wabbit, vowpalwabbit/config/src/options_cli.cc.
"""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING, Final

from onlineauto.errors import OptionError
from onlineauto.options.unknown import unknown_option

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from onlineauto.options.option import Option

_NEGATIVE: Final = re.compile(r"-(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf(inity)?|nan)", re.IGNORECASE)


def split(
    words: Sequence[str], *, options: Mapping[str, Option], positional: Option | None
) -> list[tuple[Option, list[str]]]:
    """Split a command line into options, each with its words."""
    left = deque(words)
    result = []
    while left:
        word = left.popleft()
        if word == "--":
            result += [(_positional(positional, rest), [rest]) for rest in left]
            break
        if not _is_flag(word):
            result.append((_positional(positional, word), [word]))
            continue
        flag, attached = _split_word(word)
        if flag not in options:
            raise unknown_option(flag, known=options)
        result.append((options[flag], _take_words(options[flag], flag, attached, left=left, options=options)))
    return result


def _is_flag(word: str) -> bool:
    return len(word) > 1 and word.startswith("-") and not _NEGATIVE.fullmatch(word)


def _split_word(word: str) -> tuple[str, str | None]:
    """Split ``--name=value`` or ``-nvalue`` into the flag and the value, None if there is none."""
    if not word.startswith("--"):
        return word[:2], word[2:] or None
    flag, sign, value = word.partition("=")
    if sign and not value:
        raise OptionError(f"{flag}= has nothing after the =")
    return flag, value or None


def _take_words(
    option: Option, flag: str, attached: str | None, *, left: deque[str], options: Mapping[str, Option]
) -> list[str]:
    """Remove the words of `option` from the front of `left` and return them."""
    if option.switch:
        if attached is not None:
            raise OptionError(f"{flag} is a switch and takes no value, but {attached!r} is attached to it")
        return []
    if attached is not None:
        words = [attached]
    elif left and not (_is_flag(left[0]) and _split_word(left[0])[0] in options):
        words = [left.popleft()]
    elif option.const is not None:
        words = [str(option.const)]
    else:
        problem = f"but the option {left[0]} follows it" if left else "but it is the last word"
        raise OptionError(f"{flag} takes a value, {problem}")
    while option.repeatable and left and not _is_flag(left[0]):
        words.append(left.popleft())
    return words


def _positional(option: Option | None, word: str) -> Option:
    if option is None:
        raise OptionError(f"unexpected word {word!r}: this command takes options only")
    return option
