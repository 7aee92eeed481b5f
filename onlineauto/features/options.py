"""Options of the features of an event: hashing, namespaces, interactions."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import ClassVar, Final

from onlineauto.errors import OptionError
from onlineauto.options import Configuration, option

_HEX: Final = re.compile(rb"\\x([0-9a-fA-F]{2})")
_GRAMS: Final = re.compile(r"(.*?)(\d+)", re.DOTALL)
_MOST_GRAMS: Final = 1000
"""Maximum number of kinds of n-grams of a namespace, each of which is one more feature for a word."""
GRAMS: Final = ("ngram", "skips")
"""Names of the options of n-grams."""
MOST_LAGS: Final = 20
"""Maximum number of lags: each is two of the 64 numbers that members of the ensemble may know."""
_GREEDY: Final = "every word up to the next option belongs to it; a data file goes before it or after -d"


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureOptions:
    """Options of hashing, namespaces and interactions."""

    title: ClassVar[str] = "Features"

    hash: str = option(
        "strings",
        "How a feature's name becomes a number: 'strings' reads a name of digits as a number and hashes all "
        "others, 'all' hashes every name.",
        keep=True,
        choices=("strings", "all"),
    )
    hash_seed: int = option(0, "Seed of the hash.", keep=True, minimum=0, maximum=2**32 - 1)
    names: str = option(
        "any",
        "How a string of JSON becomes a name: as in Vowpal Wabbit, usertom (vw), or as in dicts, frames and "
        "Parquet, user=tom (columns). With any, a model keeps the rule that it learns first.",
        vw=False,
        keep=True,
        choices=("any", "vw", "columns"),
    )
    name_columns: tuple[str, ...] = option(
        (),
        "Columns whose numbers are names, such as ids: with user^id, the id 7 of the namespace user is the "
        "feature id=7. Action columns, categories and the names of folders are added when they are learnt.",
        vw=False,
        keep=True,
        metavar="NAMESPACE^COLUMN",
    )
    ignore: tuple[str, ...] = option(
        (), "Drop the namespaces that begin with one of these characters.", keep=True, metavar="CHARS"
    )
    ignore_linear: tuple[str, ...] = option(
        (),
        "Use the namespaces that begin with one of these characters in interactions only, not by themselves.",
        keep=True,
        metavar="CHARS",
    )
    keep: tuple[str, ...] = option(
        (),
        "Drop all namespaces but those that begin with one of these characters.",
        keep=True,
        metavar="CHARS",
    )
    ngram: tuple[str, ...] = option(
        (),
        "Add a feature for each 2 to N words of a namespace that follow each other: 2 for all namespaces, a2 "
        "for those that begin with a. Lists of 16 numbers or more have none, except with --vw_exact.",
        keep=True,
        metavar="N",
    )
    skips: tuple[str, ...] = option(
        (),
        "Let the words of an n-gram leave out up to N words between them: 1, or a1 like --ngram.",
        keep=True,
        metavar="N",
    )
    lags: int = option(
        0,
        "Add the last K labels, and their differences, as numbers to each line of a regression: for lines in "
        "order of time.",
        vw=False,
        keep=True,
        minimum=0,
        maximum=MOST_LAGS,
        metavar="K",
    )
    bit_precision: int = option(
        18,
        "The weights are a table of 2^N rows; the more bits, the fewer features share a row.",
        short="b",
        keep=True,
        minimum=1,
        maximum=32,
        because="a feature's index has 32 bits",
        metavar="N",
        keyword="hash_bits",
    )
    noconstant: bool = option(False, "Do not add the constant feature.", keep=True)
    constant: float = option(0.0, "Initial weight of the constant feature.", short="C", keep=True)
    quadratic: tuple[str, ...] = option(
        (),
        "Interact two namespaces, each named by its first character; ':' stands for any namespace.",
        short="q",
        keep=True,
        metavar="AB",
    )
    cubic: tuple[str, ...] = option((), "Interact three namespaces, like -q.", keep=True, metavar="ABC")
    interactions: tuple[str, ...] = option(
        (), "Interact two namespaces or more, like -q.", keep=True, metavar="ABC..."
    )
    experimental_full_name_interactions: tuple[str, ...] = option(
        (),
        "Interact namespaces by their full names, with '|' between them.",
        keep=True,
        metavar="NAME|NAME...",
    )
    permutations: bool = option(
        False,
        "If a namespace interacts with itself, use every order of its features, and not every combination.",
        keep=True,
    )
    max_crossed: int = option(
        10_000_000,
        "Number of crossed features that an event may have, over all its actions. A wider event is learnt "
        "without its widest interactions and not by the ensemble, and is reported; --strict_parse stops "
        "there.",
        vw=False,
        keep=True,
        override=True,
        minimum=0,
        maximum=2**31,
        because="they are listed in memory",
        metavar="N",
    )
    leave_duplicate_interactions: bool = option(
        False, "Keep interactions that repeat the namespaces of another one, such as -q ab -q ba.", keep=True
    )


def unescape(text: str) -> bytes:
    r"""Return the bytes of a word, in which escapes such as ``\x20`` are replaced by bytes.

    >>> unescape(r"a\x20")
    b'a '
    """
    return _HEX.sub(lambda match: bytes([int(match[1], 16)]), text.encode("utf-8", "surrogateescape"))


def letters_of(text: str, *, bytewise: bool = False) -> tuple[bytes, ...]:
    r"""Return the letters of a word, each as the bytes with which the name of a namespace begins.

    A letter is a Unicode character, or a byte that belongs to none. If `bytewise`, every byte is a letter, as
    in Vowpal Wabbit.

    >>> letters_of("ив"), letters_of(r"a\xff"), letters_of("и", bytewise=True)
    ((b'\xd0\xb8', b'\xd0\xb2'), (b'a', b'\xff'), (b'\xd0', b'\xb8'))
    """
    data = unescape(text)
    if bytewise:
        return tuple(bytes([byte]) for byte in data)
    return tuple(
        letter.encode("utf-8", "surrogateescape") for letter in data.decode("utf-8", "surrogateescape")
    )


def first_letter(name: bytes) -> bytes:
    """Return the first character of a name, or the first byte if it belongs to no character."""
    return name[:4].decode("utf-8", "surrogateescape")[:1].encode("utf-8", "surrogateescape")


def check_interactions(configuration: Configuration) -> None:
    """Refuse interactions with a wrong number of namespaces or with malformed names."""
    options, bytewise = configuration[FeatureOptions], bool(configuration.first_result("bytewise_letters"))
    for flag, texts, least, most, needs in (
        ("--quadratic", options.quadratic, 2, 2, "two namespaces"),
        ("--cubic", options.cubic, 3, 3, "three namespaces"),
        ("--interactions", options.interactions, 2, math.inf, "two namespaces or more"),
    ):
        for text in texts:
            count = len(letters_of(text, bytewise=bytewise))
            if not least <= count <= most:
                unit = "bytes" if bytewise else "characters"
                raise OptionError(f"{flag} {text!r} has {count} {unit} and needs {needs} ({_GREEDY})")
    for text in options.experimental_full_name_interactions:
        _check_full_names(text)


def _check_full_names(text: str) -> None:
    flag = "--experimental_full_name_interactions"
    terms = text.split("|")
    if len(terms) < 2:
        raise OptionError(f"{flag} {text!r} needs two names or more with '|' between them ({_GREEDY})")
    for term in terms:
        if not term:
            raise OptionError(f"{flag} {text!r} has an empty name")
        if ":" in term and term != ":":
            raise OptionError(
                f"{flag} {text!r}: ':' stands for any namespace and cannot be part of the name {term!r}"
            )


def gram_offsets(size: int, skips: int) -> list[tuple[int, ...]]:
    """Return all n-grams of up to `size` words with up to `skips` words left out, in VW's order.

    >>> gram_offsets(3, 1)
    [(0, 1), (0, 2), (0, 1, 2), (0, 1, 3), (0, 2, 3)]
    """
    found: list[tuple[int, ...]] = []

    def add(left: int, skips_left: int, words: tuple[int, ...], skipped: int) -> None:
        if left == 0:
            found.append(words)
            return
        add(left - 1, skips_left, (*words, words[-1] + 1 + skipped), 0)
        if skips_left:
            add(left, skips_left - 1, words, skipped + 1)

    for words in range(1, size):
        add(words, skips, (0,), 0)
        if len(found) > _MOST_GRAMS:
            raise OptionError(
                f"--ngram {size} with --skips {skips} gives more than {_MOST_GRAMS} features per word"
            )
    return found


def gram_sizes(
    options: FeatureOptions, *, bytewise: bool
) -> tuple[list[tuple[bytes, int]], list[tuple[bytes, int]]]:
    """Return the words of ``--ngram`` and of ``--skips``: letter of a namespace, b"" for all, and number."""
    return (
        [_parsed(text, "--ngram", bytewise=bytewise) for text in options.ngram],
        [_parsed(text, "--skips", bytewise=bytewise) for text in options.skips],
    )


def number_for(name: bytes, words: list[tuple[bytes, int]]) -> int:
    """Return the number of the last word whose letter begins the name of a namespace, or 0."""
    return next((number for letter, number in reversed(words) if name.startswith(letter)), 0)


def check_grams(configuration: Configuration) -> None:
    """Reject malformed or too many n-grams."""
    options, bytewise = configuration[FeatureOptions], bool(configuration.first_result("bytewise_letters"))
    if options.skips and not options.ngram:
        raise OptionError("--skips leaves out words of n-grams: give --ngram, too")
    words = gram_sizes(options, bytewise=bytewise)
    for letter, _ in (*words[0], *words[1]):
        gram_offsets(*(number_for(letter, each) for each in words))


def _parsed(text: str, flag: str, *, bytewise: bool) -> tuple[bytes, int]:
    """Return the letter of a namespace, or b"" for all, and the number of words."""
    match = _GRAMS.fullmatch(text)
    letters = letters_of(match[1], bytewise=bytewise) if match else ()
    if match is None or match[1] == "-" or len(letters) > 1 or int(match[2]) > 99:
        raise OptionError(
            f"{flag} {text!r} is not a number up to 99, such as 2, or a2 for namespaces that begin with a"
        )
    return (letters[0] if letters else b""), int(match[2])
