"""``FolderIdentity``: whose files a folder has, and whether it is whole, in the file ``identity.json``."""

from __future__ import annotations

import fcntl
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from onlineauto.errors import InputError
from onlineauto.service.log.segment_log import SEGMENTS
from onlineauto.workspace.model_file import replace_file

if TYPE_CHECKING:
    from typing import Self

_NAME: Final = "identity.json"
_FORMAT: Final = 1
NAMED_FILES: Final = ("models/*.oam", "rounds", "tokens", "source", "model")
SERVICE_FILES: Final = ("snapshot.oam", f"log/{SEGMENTS}", "journals/*.jsonl", *NAMED_FILES)
"""The files of a service, in the order in which they can be copied while another process writes them."""


class FolderLock:
    """Locks a folder for this process, until `release` or the end of the process."""

    def __init__(self, folder: str | os.PathLike[str], *, use: str = "runs in") -> None:
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
            self._path = Path(folder) / "lock"
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise InputError(f"cannot use the folder {folder}: {error.strerror}") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            raise InputError(f"another service {use} {folder}; each needs its own folder") from None

    def is_in_place(self) -> bool:
        """Return whether the locked folder is still at its path; another disk may be there."""
        try:
            return os.path.samestat(self._path.stat(), os.fstat(self._file))
        except OSError:
            return False

    def release(self) -> None:
        """Release the lock."""
        os.close(self._file)


class FolderIdentity(msgspec.Struct, frozen=True):
    """The random id of a service, followed by the ids of those from whose copies it was restored."""

    ids: tuple[str, ...]
    kind: Literal["service", "copy"] = "service"
    whole: bool = True
    format: int = _FORMAT

    @classmethod
    def read(cls, folder: Path) -> Self | None:
        """Return the identity of a folder, or None if it has none; a damaged file is an `InputError`."""
        try:
            identity = msgspec.json.decode((folder / _NAME).read_bytes(), type=cls)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as error:
            raise InputError(f"{folder / _NAME} is not the identity of a service: {error}") from None
        if identity.format != _FORMAT or not identity.ids:
            raise InputError(f"{folder / _NAME} has another format: a later version has written it")
        return identity

    def write(self, folder: Path) -> None:
        """Replace the identity of a folder atomically, and wait for the disk."""
        replace_file(folder / _NAME, [msgspec.json.encode(self)])


def check_whole(folder: Path) -> FolderIdentity | None:
    """Return the identity of a folder; an unfinished copy or restore is an `InputError`."""
    identity = FolderIdentity.read(folder)
    if identity is not None and not identity.whole:
        is_copy = identity.kind == "copy"
        raise InputError(
            f"{folder} is not whole: {'the copy of a service' if is_copy else 'a restore'} to it has not "
            f"finished. Either {'let --ship or --backup finish' if is_copy else 'run the restore again'}; "
            f"or use what it has: onlineauto loop {folder} --fill_gaps"
        )
    return identity


def claim_folder(folder: Path) -> None:
    """Check that a service may use a locked folder, and identify it; a copy is an `InputError`."""
    identity = check_whole(folder)
    if identity is None:
        FolderIdentity((secrets.token_hex(8),)).write(folder)
    elif identity.kind == "copy":
        raise InputError(
            f"{folder} is the copy of a service, and stays as it is. Restore it to another folder, and serve "
            f"that: onlineauto loop NEW --restore {folder}"
        )


def service_file_in(folder: Path) -> str:
    """Return the name of a file or a folder as a service has it, or ""."""
    names = (*(pattern.partition("/")[0] for pattern in SERVICE_FILES), _NAME)
    return next((name for name in names if (folder / name).exists()), "")
