"""The verb ``loop``: inspect the folder of a service, and verify its decisions."""

from __future__ import annotations

import json
import sys
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from onlineauto.cli.verb import Verb, VerbOptions
from onlineauto.errors import InputError, OptionError
from onlineauto.options import Registry, option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.options import Configuration
    from onlineauto.service.join.join import Skipped
    from onlineauto.service.log.segment_log import SegmentLog


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopOptions(VerbOptions):
    """Options of the verb ``loop``."""

    folder: tuple[str, ...] = option(
        (), "The folder of a service; several with --erase.", metavar="FOLDER", positional=True
    )
    export: str | None = option(
        None,
        "Write the decisions that have ended, with their rewards, as dsjson; - is standard output.",
        metavar="FILE",
    )
    event: str | None = option(
        None, "Print the records of an event, and draw its action again.", metavar="ID"
    )
    find: str | None = option(
        None,
        "Print the ids of the events whose context or actions have this name or value, such as the id of a "
        "user. Their features can then be removed by --erase.",
        metavar="TEXT",
    )
    erase: str | None = option(
        None,
        "Remove the context and the features of these events from the log for good, and from the logs of "
        "rank servers whose folders follow. Stop the services first. Models keep what they have learnt.",
        metavar="IDS",
        listed=True,
    )
    fill_gaps: bool = option(
        False,
        "Write blanks in place of segments of the log that are missing or too short, and print the lost "
        "positions. Stop the service first; it skips the blanks at its next start. A folder that is not "
        "whole is used as it is from then on.",
    )
    backup: str | None = option(
        None,
        "Copy the log, the models and the snapshot to this folder, while the service runs, and its named "
        "loops to COPY/NAME; a later backup to the same folder copies what is new.",
        metavar="COPY",
    )
    restore: str | None = option(
        None,
        "Copy a backup, or what serve --ship has copied, to FOLDER, from where a service continues; each "
        "record is checked, and what is lost is printed with its positions.",
        metavar="COPY",
    )
    app: str = option("default", "Name of the service, as it was served; by default that of its loop.json.")
    new_token: str | None = option(
        None,
        "Make a token for some of rank, reward, read and admin, and print it; its hash goes into the folder.",
        metavar="SCOPES",
        listed=True,
    )
    token_loops: str | None = option(
        None,
        "Names of loops, separated by commas, for which alone the token of --new_token is.",
        metavar="NAMES",
        listed=True,
    )


_MOST_SKIPPED: Final = 20


def run(configuration: Configuration) -> int:
    """Perform the requested action, and return 0."""
    options = configuration[LoopOptions]
    if options.erase is not None and options.folder:
        return _erase([Path(each) for each in options.folder], options.erase.split(","))
    if len(options.folder) != 1:
        raise OptionError("loop takes the folder of a service: onlineauto loop ./loop")
    folder = Path(options.folder[0])
    if options.new_token is not None:
        from onlineauto.service.http.tokens import add_token

        if not folder.exists():
            folder.mkdir(parents=True)
            print(f"{folder.absolute()} is a new folder", file=sys.stderr)
        loops = () if options.token_loops is None else options.token_loops.split(",")
        print(add_token(folder / "tokens", options.new_token.split(","), loops))
        return 0
    if options.token_loops is not None:
        raise OptionError("--token_loops is for --new_token: onlineauto loop FOLDER --new_token rank,reward")
    if options.restore is not None:
        return _restore_all(Path(options.restore), folder)
    if options.fill_gaps:
        return _fill_gaps(folder)
    log = _log_of(folder)
    if options.backup is not None:
        _back_up_all(folder, log, Path(options.backup))
    elif options.export is not None:
        _export(log, options.export)
    elif options.find is not None:
        _print_all_found(folder, log, options.find)
    elif options.event is not None:
        app = options.app if "app" in configuration.supplied else _app_of(folder)
        _print_event(log, options.event, app=app)
    else:
        _print_counts(log)
    return 0


def _log_of(folder: Path) -> SegmentLog:
    """Return the log in the folder of a service, to read it."""
    from onlineauto.service.log.segment_log import SegmentLog
    from onlineauto.service.loop.folder import check_whole

    _check_folder(folder)
    check_whole(folder)
    return SegmentLog(folder / "log", read_only=True, keep_damaged=True)


def _check_folder(folder: Path) -> None:
    if not (folder / "log").is_dir():
        raise InputError(f"{folder} is not the folder of a service: it has no log")


def _export(log: SegmentLog, target: str) -> None:
    from onlineauto.service.learning.evaluate import join_log_lines

    if target == "-":
        sys.stdout.buffer.writelines(join_log_lines(log))
        return
    from onlineauto.workspace.model_file import replace_file

    replace_file(target, join_log_lines(log))


def _app_of(folder: Path) -> str:
    """Return the name of the app in the ``loop.json`` of a folder, or the default."""
    from onlineauto.service.loop.loops import NamedLoop

    if not (folder / "loop.json").exists():
        return LoopOptions().app
    named = NamedLoop(folder.absolute())
    named.read()
    if named.error:
        raise InputError(f"{named.error}; give --app NAME")
    return named.options[1].app


def _print_event(log: SegmentLog, event_id: str, *, app: str) -> None:
    """Print the records of an event, and whether its action follows from its id and its pmf."""
    from onlineauto.service.ranking import has_seed, is_drawn

    lines = [line for _, line in log.lines(log.begin) if _is_of(line, event_id)]
    if not lines:
        raise InputError(f"the log has no event {event_id!r}")
    for line in lines:
        print(line.decode().rstrip())
        if line.startswith(b'{"Type":"rank"'):
            try:
                if not has_seed(line, app=app):
                    print(f"the seed is not that of app {app!r}: give --app NAME, as it was served")
                    continue
                drawn = is_drawn(line, app=app)
            except (LookupError, ValueError) as error:
                print(f"the action cannot be drawn again: {error}")
            else:
                print(
                    f"the action is {'' if drawn else 'not '}the one that its id and its probabilities give"
                )


def _print_all_found(folder: Path, log: SegmentLog, text: str) -> None:
    """Print the ids of the events with a name or a value; with the loops if a service has several."""
    from onlineauto.service.loop.loops import loop_names

    names = loop_names(folder)
    _print_found(log, text, "default " if names else "")
    for name in names:
        if (folder / name / "log").is_dir():  # else it was never opened
            _print_found(_log_of(folder / name), text, f"{name} ")


def _print_found(log: SegmentLog, text: str, before: str) -> None:
    """Print the ids of the events that have a name or a value among their features."""
    from onlineauto.service.log.segment_log import read_record

    try:
        number = json.loads(text)
    except ValueError:
        number = None

    wanted, is_number = msgspec.json.encode(text), type(number) in (int, float)

    def has(part: object) -> bool:
        if isinstance(part, list | tuple):
            return any(map(has, part))
        return part == text or (is_number and type(part) in (int, float) and part == number)

    for position, line in log.lines(log.begin):
        if is_number or wanted in line or b"\\" in line:  # a string without escapes has no other bytes
            try:
                record = read_record(line)
                # names in pairs, so that each of two equal ones is found
                if record.kind == "rank" and has(json.loads(bytes(record.context), object_pairs_hook=list)):
                    print(f"{before}{record.event_id}")
            except (InputError, ValueError, RecursionError):
                print(f"the record at {position} is damaged, and may belong to {text!r}", file=sys.stderr)


def _erase(folders: Sequence[Path], event_ids: Sequence[str]) -> int:
    """Remove the features of events from the logs in some folders, print a count of each, and return 0."""
    from onlineauto.service.join.join import skipped_at
    from onlineauto.service.log.erase import erase

    for folder in folders:
        _log_of(folder)
    found, without = Counter[str](), []
    with ExitStack() as stack:
        for folder in folders:
            _lock(folder, stack)
        logs = [_log_of(folder) for folder in folders]
        for folder, log in zip(folders, logs, strict=True):
            skipped: list[Skipped] = []
            erased, already = erase(
                log,
                event_ids,
                skipped=lambda *why, log=log, skipped=skipped: skipped.append(skipped_at(log, *why)),
            )
            counts = f"{erased.total()} decisions have no features now, {already.total()} had none already"
            print(f"{folder}: {counts}")
            found += erased + already
            if not erased and not already:
                without.append(str(folder))
            if skipped:
                print(f"{folder}: {len(skipped)} records cannot be read; a feature may be left in them")
            for each in skipped[-_MOST_SKIPPED:]:
                print(each)
    if missing := sorted(set(event_ids) - set(found)):
        raise InputError(
            f"there is no decision {', '.join(missing[:5])}; the features of the others are removed"
        )
    if without:
        raise InputError(
            f"none of these decisions is in {', '.join(without)}: a loop FOLDER/NAME is a folder of its own"
        )
    return 0


def _fill_gaps(folder: Path) -> int:
    """Write blanks in place of missing parts of the log in a folder, and return 0."""
    from onlineauto.service.log.segment_log import fill_gaps
    from onlineauto.service.loop.folder import FolderIdentity

    _check_folder(folder)
    with ExitStack() as stack:
        _lock(folder, stack)
        gaps = fill_gaps(folder / "log")
        identity = FolderIdentity.read(folder)
        if identity is not None and not identity.whole:
            msgspec.structs.replace(identity, whole=True).write(folder)
            print(f"{folder} was not whole: what it has is used from now on")
    for begin, end in gaps:
        print(f"the positions {begin} to {end} of the log are lost: {end - begin} bytes")
    if not gaps:
        print("nothing is missing between the segments of the log")
    return 0


def _back_up_all(folder: Path, log: SegmentLog, target: Path) -> None:
    """Copy the folder of a service and those of its named loops; name the loops that cannot be copied."""
    from onlineauto.service.loop.loops import loop_names

    _back_up(folder, log, target)
    failed = []
    for name in loop_names(folder):
        try:
            _back_up(folder / name, _log_of(folder / name), target / name)
        except InputError as error:
            print(error, file=sys.stderr)
            failed.append(name)
    if failed:
        raise InputError(f"these loops of {folder} are not in the backup: {', '.join(failed)}")


def _back_up(folder: Path, log: SegmentLog, target: Path) -> None:
    """Copy the folder of a service, which may run."""
    from onlineauto.service.loop.folder import FolderCopy

    try:
        target.mkdir(parents=True, exist_ok=True)
        copy = FolderCopy(folder, log, target)
        copy.step()
        copy.close()
    except OSError as error:
        raise InputError(f"cannot back up {folder} to {target}: {error}; run it again") from None
    print(f"{target} has the log up to position {copy.position}")


def _restore_all(source: Path, folder: Path) -> int:
    """Copy a backup and those of its named loops to an empty folder, and return 0."""
    from onlineauto.service.loop.folder import FolderIdentity, check_unused
    from onlineauto.service.loop.loops import loop_names

    check_unused(folder)
    for name in loop_names(source):  # the default comes last, so that a repeated call restores the rest
        identity = FolderIdentity.read(folder / name)
        if identity is not None and identity.whole:
            print(f"the loop {name} was restored before")
        else:
            print(f"the loop {name}:")
            _restore(source / name, folder / name)
    return _restore(source, folder)


def _restore(source: Path, folder: Path) -> int:
    """Copy a backup to an empty folder, print what it has and what is lost, and return 0."""
    from onlineauto.service.loop.folder import restore_folder

    try:
        restored = restore_folder(source, folder)
    except OSError as error:
        raise InputError(f"cannot restore {folder} from {source}: {error}; run it again") from None
    print(f"the log has the positions {restored.begin} to {restored.end}; its last record: {restored.latest}")
    if restored.torn:
        print(f"the last {restored.torn} bytes were an incomplete record, and are cut off")
    for what, parts in (("missing", restored.gaps), ("damaged", restored.damaged)):
        for begin, end in parts:
            print(f"the positions {begin} to {end} of the log are {what}: {end - begin} bytes are not learnt")
    if restored.learnt > restored.end:
        print(f"the snapshot continued at {restored.learnt}, behind the end: a service learns from the log")
    return 0


def _lock(folder: Path, stack: ExitStack) -> None:
    """Lock the folder of a service until a stack is closed."""
    from onlineauto.service.loop.folder import FolderLock

    try:
        stack.callback(FolderLock(folder).release)
    except InputError:
        raise InputError(f"a service runs in {folder}: stop it before its log is changed") from None


def _is_of(line: bytes, event_id: str) -> bool:
    from onlineauto.service.log.segment_log import read_record

    if msgspec.json.encode(event_id) not in line:
        return False
    try:
        return read_record(line).event_id == event_id
    except InputError:  # it is not a record, so it does not belong to the event
        return False


def _print_counts(log: SegmentLog) -> None:
    from onlineauto.service.join.join import Join, JoinSettings, replay

    join = Join(JoinSettings())
    skipped = [each.skipped for each in replay(join, log, log.begin) if each.skipped is not None]
    print(f"log        {log.begin} to {log.end} bytes")
    rows = msgspec.structs.asdict(join.settings) | msgspec.structs.asdict(join.counts)
    rows |= {"waiting": join.waiting, "finished": join.finished, "skipped": len(skipped)}
    for name, value in rows.items():
        print(f"{name:18} {value}")
    for each in skipped[-_MOST_SKIPPED:]:
        print(each)


VERB: Final = Verb(
    Registry((LoopOptions,)),
    run,
    "Usage: onlineauto loop [options] FOLDER",
    "Inspect the folder of a service: count the records of its log, export learnt decisions, verify the draw "
    "of an action, erase events, or create a token. Only --erase and --fill_gaps need a stopped service.",
    """\
Examples:
  onlineauto loop ./loop
  onlineauto loop ./loop --export - | onlineauto --dsjson --cb_explore_adf -q ::
  onlineauto loop ./loop --event e1
  onlineauto loop ./loop --find user-17
  onlineauto loop ./loop --erase e1,e2
  onlineauto loop ./learner ./rank1 ./rank2 --erase e1,e2
  onlineauto loop ./loop --fill_gaps
  onlineauto loop ./loop --backup /disk2/loop
  onlineauto loop ./loop --restore /disk2/loop
  onlineauto loop ./loop --new_token rank,reward""",
)
