"""Records: lines of JSON that end with their checksum. A decision is an unchanged line of dsjson.

::

    {"Type":"rank","EventId":"e1","Timestamp":"…","a":[2,1],"p":[0.9,0.1],…,"c":{…},"crc":"0b7e1d5a"}

A newline ends a record. JSON contains no raw newline, so it frames the record as well as a length would, and
people, ``jq`` and Vowpal Wabbit can read the file. The checksum is the CRC-32 of all bytes before its member.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

import msgspec

from onlineauto.errors import InputError
from onlineauto.formats.decisions.dsjson import LogRecord, stamp

_TAIL: Final = len(b',"crc":"00000000"}\n')


class RecordsAnswer(msgspec.Struct):
    """The answer to ``POST /v1/records``: the position from which more records are wanted."""

    position: int


_DECODER = msgspec.json.Decoder(LogRecord)


def sealed(record: bytes) -> bytes:
    r"""Return a JSON object as the line of a record, with its checksum.

    >>> sealed(b'{"Type":"tick"}')
    b'{"Type":"tick","crc":"53c100da"}\n'
    """
    body = record[:-1]
    return b'%b,"crc":"%08x"}\n' % (body, crc32(body))


def is_whole(line: bytes) -> bool:
    r"""Return whether a line is a record with the right checksum.

    >>> is_whole(sealed(b'{"Type":"tick"}')), is_whole(b'{"Type":"tock","crc":"53c100da"}\n')
    (True, False)
    """
    return line[-_TAIL:] == b',"crc":"%08x"}\n' % crc32(line[:-_TAIL])


def taken_over(line: bytes, *, source: str, behind: int, time: float, no_room: bool = False) -> bytes:
    """Return a record of another log as a line of this log, with its source and position."""
    origin = {
        "Source": source,
        "Behind": behind,
        "Taken": stamp(time),
        **({"NoRoom": True} if no_room else {}),
    }
    return sealed(line[:-_TAIL] + b"," + msgspec.json.encode(origin)[1:])


def read_record(line: bytes, *, where: str = "the log") -> LogRecord:
    """Return the members of a record that the join reads."""
    if not is_whole(line):
        raise InputError(f"{where}: the record is damaged: its checksum does not match its content")
    try:
        return _DECODER.decode(line)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"{where}: not a record of a service's log: {error}") from None
