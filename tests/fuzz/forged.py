"""Use forged files: load, predict, learn and save; no file is written but the named ones."""

from __future__ import annotations

import copy
import io
import os
import random
import shlex
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlineauto import AutoMLClassifier
from onlineauto.cli.main import main
from onlineauto.engine.stream.source import rules_of
from onlineauto.errors import InputError, OptionError
from onlineauto.formats.blocks.file import write_blocks
from onlineauto.interop import read_vw_model, write_vw_model
from onlineauto.jit import cache_directory
from onlineauto.options import Configuration
from onlineauto.workspace.options import REGISTRY
from onlineauto.workspace.predict_only import PredictOnly
from onlineauto.workspace.workspace import Workspace
from tests.forging import blocks_bytes, blocks_parts, model_bytes, model_parts, vw_model_bytes
from tests.property.model_draws import draw_configuration, draw_stream

_VERBS = (
    "-i forged -d events.txt -f out.model -p p.txt",
    "-t -i forged -d events.txt",
    "-i forged -d events.txt --preserve_performance_counters --extra_metrics p.txt",
    "-d events.txt -f forged --resume -p p.txt",
    "-d events.txt -f forged --resume -p p.txt --extra_metrics out.model",
    "inspect forged",
    "inspect forged --format markdown",
    "inspect forged events.txt --format json",
    "convert forged out.model",
    "merge forged whole.model -f out.model",
    "merge whole.model forged --base forged -f out.model",
    "evaluate events.txt --policy forged",
)
_OFTEN = 0.2
"""How often a command is run over a file."""
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_CHANGING = ("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "os.symlink")
_RUNNING = ("os.system", "subprocess.Popen", "os.exec", "os.posix_spawn")
_NAMED = {"forged", "whole.model", "events.txt", "out.model", "out.txt", "p.txt"}

NUMBERS = (0, 1, -1, 2, 3, 64, 2**31, 2**32 - 1, 2**53 + 1, 2**61, 2**63 - 1, 2**63, 2**64 - 1, -(2**63))
_FLOATS = (0.0, -0.0, 0.5, -1.0, 1.5, 1e-320, 1e39, 1e300, float("nan"), float("inf"), float("-inf"))
_OTHERS: tuple[Any, ...] = (
    None,
    True,
    False,
    "",
    "x",
    "a b",
    "-p stolen",
    b"",
    b"a",
    b"\x8b",
    b"a" * 300,
    [],
    {},
    [1],
    [[]],
)
_DTYPES = ("<f4", "<f8", "<i8", "<u4", "<u8", "|u1", "|b1", ">f4", "<i4", "|O", "|V8", "<M8[s]", "f4,f4", "")
_ARRAY = {"dtype", "shape", "at"}
_WORDS = (
    *(
        "--cb 4",
        "--cb_adf",
        "--ccb_explore_adf",
        "--automl 2",
        "--automl 7",
        "--bag 2",
        "--cover 3",
        "--rnd 2",
    ),
    *("--epsilon_decay", "--vw_exact", "--bit_precision 5", "--bit_precision 13", "--cb_type dr", "-q ::"),
    *("--loss_function logistic", "--first 3", "--squarecb", "--oracle_type rand", "--ccb_no_slot_index"),
    *(
        "--search l1,cb_type",
        "--estimator robust",
        "--initial_weight 0.5",
        "--ignore u",
        "--keep u",
        "-q uuu",
    ),
    *("--power_t 1e30", "--learning_rate 1e30", "--l1 1e30", "'", "--", "x", "--hash_seed 3", "--testonly"),
)
"""What may be added to the options of a model; none takes much memory or time."""


def _places(tree: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of each value in a tree, except the tree itself."""
    found = []
    keys = list(tree) if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    for key in keys:
        found.append((*place, key))
        found += _places(tree[key], (*place, key))
    return found


def _at(tree: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        tree = tree[key]
    return tree


def _odd(draw: random.Random, value: Any) -> Any:
    """Another value, mostly of the same type."""
    if draw.random() < 0.25:
        return copy.deepcopy(draw.choice((*NUMBERS, *_FLOATS, *_OTHERS)))
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return draw.choice((*NUMBERS, value + 1, value - 1, 2 * value, -value))
    if isinstance(value, float):
        return draw.choice((*_FLOATS, -value, value * 1e30, value + 1))
    if isinstance(value, str | bytes) and value:
        text: Any = value
        odd: Any = "\0é'-,|\n" if isinstance(value, str) else b"\0\x8b\xff a"
        at, i = draw.randrange(len(text)), draw.randrange(len(odd))
        turned = text[:at] + odd[i : i + 1] + text[at + 1 :]
        return draw.choice((text[:at], text[at:], text + text, turned))
    if isinstance(value, list):
        return draw.choice((value[::-1], value[:-1], value + value, [*value, None], [value]))
    return draw.choice(_OTHERS)


def _mutate_array(draw: random.Random, array: dict[str, Any]) -> None:
    """Change the type, the shape or the offset of an array."""
    kind, shape = draw.randrange(5), array["shape"]
    if not isinstance(shape, list) or not isinstance(array["at"], int):
        return  # it was mutated before
    if kind == 0:
        array["dtype"] = draw.choice(_DTYPES)
    elif kind == 1 and shape:
        at = draw.randrange(len(shape))
        shape[at] = draw.choice((*NUMBERS, shape[at] + 1, shape[at] - 1))
    elif kind == 2:
        array["shape"] = draw.choice(
            (shape[::-1], [1, *shape], shape[1:], [*shape, 0], [], "x", {}, [1] * 70)
        )
    elif kind == 3:
        array["at"] += draw.choice((-64, -8, 1, 64, 4096))
    else:
        array["at"] = draw.choice((*NUMBERS, None, 1.5))


def mutated_options(draw: random.Random, options: str) -> str:
    """Add options to a command line, among them those that no model keeps; or take some away."""
    words = options.split()
    kind = draw.randrange(4)
    if kind == 0 and words:
        del words[draw.randrange(len(words)) :]
    elif kind == 1:
        option = draw.choice([each for each in REGISTRY.options if not each.keep])
        words += [option.flag] if option.switch else [option.flag, "3" if option.kind is int else "stolen"]
    else:
        words.append(draw.choice(_WORDS))
    return " ".join(words)


def mutated_tree(draw: random.Random, tree: Any) -> Any:
    """Return another tree: with odd values and arrays, more or fewer keys and items, parts exchanged."""
    tree = copy.deepcopy(tree)
    for _ in range(draw.choice((1, 1, 1, 2, 5))):
        places = _places(tree)
        if not places:
            return _odd(draw, tree)
        place = draw.choice(places)
        parent, key, value = _at(tree, place[:-1]), place[-1], _at(tree, place)
        kind = draw.randrange(10)
        if key == "options" and isinstance(value, str):
            parent[key] = mutated_options(draw, value)
        elif isinstance(value, dict) and value.keys() == _ARRAY and kind < 7:
            _mutate_array(draw, value)
        elif kind == 0:
            del parent[key]
        elif kind == 1:
            parent[key] = copy.deepcopy(_at(tree, draw.choice(places)))
        elif kind == 2 and isinstance(parent, list):
            parent.insert(key, copy.deepcopy(value))
        elif kind == 3 and isinstance(value, dict):
            value[draw.choice(("", "x", "cell", 7))] = draw.choice(_OTHERS)
        elif kind == 4:
            for _ in range(draw.choice((2, 30, 200))):
                value = [value] if draw.random() < 0.7 else {"x": value}
            parent[key] = value
        else:
            parent[key] = _odd(draw, value)
    return tree


def _put_odd(draw: random.Random, column: NDArray[Any]) -> None:
    """Replace some items of a column."""
    if not column.size:
        return
    kind = column.dtype.kind
    flat = column.reshape(-1) if column.flags.c_contiguous else column
    for _ in range(draw.choice((1, 1, 3, 50))):
        at = draw.randrange(len(flat))
        if kind == "f":
            with np.errstate(all="ignore"):
                flat[at] = draw.choice((*_FLOATS, -float(flat[at]), float(flat[at]) + 1))
        elif kind == "b":
            flat.view(np.uint8)[at] = draw.choice((0, 1, 2, 255))
        else:
            number = draw.choice((*NUMBERS, int(flat[at]) + 1, int(flat[at]) - 1, 2 * int(flat[at])))
            bits = 8 * column.dtype.itemsize
            wrapped = number % 2**bits
            signed = kind == "i" and wrapped >= 2 ** (bits - 1)
            flat[at] = wrapped - 2**bits if signed else wrapped


def mutated_arrays(draw: random.Random, tree: Any, arrays: bytearray) -> bytearray:
    """Return the bytes of arrays, with odd numbers in one or some of those that a tree describes."""
    arrays = bytearray(arrays)
    found = [_at(tree, place) for place in _places(tree)]
    found = [
        each for each in found if isinstance(each, dict) and each.keys() == _ARRAY and 0 not in each["shape"]
    ]
    for array in draw.sample(found, min(len(found), draw.choice((1, 1, 2, 4)))):
        count = int(np.prod(array["shape"]))
        _put_odd(draw, np.frombuffer(arrays, array["dtype"], count, array["at"]))
    return arrays


def mutated_records(draw: random.Random, records: NDArray[Any]) -> NDArray[Any]:
    """Return other records: with odd fields, more of them, fewer, or in another order."""
    records, kind = records.copy(), draw.randrange(8)
    if kind == 0:
        return records[: draw.randrange(len(records) + 1)]
    if kind == 1:
        return np.concatenate([records, records[: draw.randrange(len(records) + 1)]])
    if kind == 2:
        return np.ascontiguousarray(records[::-1])
    names = records.dtype.names
    column = records if names is None else records[draw.choice(names)]
    if column.dtype.kind == "b" and len(column):
        column[draw.randrange(len(column))] ^= True
        if draw.random() < 0.5:
            records.view(np.uint8)[:] = _with_odd_bytes(draw, records, column)
    else:
        _put_odd(draw, column)
    return records


def _with_odd_bytes(draw: random.Random, records: NDArray[Any], column: NDArray[Any]) -> NDArray[np.uint8]:
    """Set a truth value of some records to a byte that is neither 0 nor 1."""
    data = records.view(np.uint8).copy()
    offset = column.__array_interface__["data"][0] - records.__array_interface__["data"][0]
    data[offset + draw.randrange(len(records)) * records.itemsize] = draw.choice((2, 7, 128, 255))
    return data


@dataclass
class Writes:
    """Files that the process opened to write, renamed, made or removed outside of some directories."""

    allowed: tuple[str, ...]
    found: list[str] = field(default_factory=list)
    looks: bool = False  # Python keeps an audit hook for ever

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Take note of an event of Python's audit."""
        if not self.looks:
            return
        if event == "open":
            path, _, flags = arguments
            if isinstance(path, str | bytes | os.PathLike) and flags & _WRITING:
                self._note(path)
        elif event in _CHANGING:
            self._note(arguments[0])
        elif event in _RUNNING:
            self.found.append(event)

    def _note(self, path: Any) -> None:
        if isinstance(path, int):
            return
        absolute = os.path.realpath(os.fsdecode(path))
        if not absolute.startswith(self.allowed):
            self.found.append(absolute)


@dataclass
class Base:
    """A model or a file of blocks to forge, of such options; and events that it can go on with."""

    configuration: Configuration
    data: bytes
    events: str


class Forger:
    """Makes forged files by a seed, and uses them."""

    def __init__(self, directory: Path, *, seed: int, bases: int) -> None:
        self._directory, self._draw = directory, random.Random(seed)
        self.refused = self.used = 0
        self.writes = Writes((os.path.realpath(directory), os.path.realpath(cache_directory()), os.devnull))
        self._models = [self._model(seed + number) for number in range(bases)]
        self._blocks = [self._block_file(seed + number) for number in range(bases)]
        self._vw = self._vw_models(bases // 2)
        self._classifiers = [self._classifier(n_classes) for n_classes in (2, 2, 4)]
        model, blocks = (self._forged_model, self._use_model), (self._forged_blocks, self._use_blocks)
        vw, classifier = (
            (self._forged_vw_model, self._use_vw_model),
            (self._forged_classifier, self._use_classifier),
        )
        self._kinds = (model, blocks, model, blocks, vw, classifier)
        sys.addaudithook(self.writes)

    def _model(self, seed: int) -> Base:
        """Learn with drawn options, and stop somewhere; of some models only the champion is saved."""
        draw = random.Random(seed)
        configuration = draw_configuration(draw)
        many = bool(configuration.get("automl")) and seed % 4 == 0  # enough for a window of drift
        events = draw_stream(draw, configuration, n=3000 if many else draw.choice([40, 120, 300]))
        path, log = self._directory / "whole.model", self._directory / "events.txt"
        log.write_text("".join(events[:-6]))
        words = f"-d {log} -f {path} --quiet --save_every 20 -p {self._directory}/p.txt"
        assert main([*shlex.split(configuration.command()), *words.split()]) == 0
        if seed % 5 < 2:
            self._save_to_predict(path, "ensemble" if seed % 5 else "champion")
        return Base(configuration, path.read_bytes(), "".join(events[-6:]))

    def _classifier(self, n_classes: int) -> bytes:
        """Learn classes until the ensemble has trees."""
        classifier, file = AutoMLClassifier(hash_bits=8), io.BytesIO()
        for row, label in class_rows(self._draw, n_classes, 300):
            classifier.learn(row, label)
        classifier.save(file)
        return file.getvalue()

    def _save_to_predict(self, path: Path, what: PredictOnly) -> None:
        try:
            Workspace.load(path).save(path, predict_only=what)
        except OptionError:  # which then has no champion that could be alone
            return

    def _block_file(self, seed: int) -> Base:
        draw = random.Random(seed)
        configuration = draw_configuration(draw)
        events = draw_stream(draw, configuration, n=30)
        path = self._directory / "whole.blocks"
        reader = Workspace(configuration=configuration).read("".join(events).encode())
        write_blocks(path, reader, rules=rules_of(configuration), frame_bytes=draw.choice([0, 1 << 20]))
        return Base(configuration, path.read_bytes(), "".join(events[-6:]))

    def _vw_models(self, n: int) -> list[Base]:
        """Write the champions of models of exact mode as Vowpal Wabbit's models."""
        found: list[Base] = []
        while len(found) < n:
            draw = random.Random(self._draw.random())
            configuration = draw_configuration(draw)
            if not configuration.get("vw_exact"):
                continue
            events = draw_stream(draw, configuration, n=60)
            workspace = Workspace(configuration=configuration).fit("".join(events[:-6]).encode())
            with suppress(OptionError):  # which Vowpal Wabbit does not have
                write_vw_model(workspace, self._directory / "whole.model")
                data = (self._directory / "whole.model").read_bytes()
                found.append(Base(configuration, data, "".join(events[-6:])))
        return found

    def run(self, n: int) -> None:
        """Forge and use files; an exception that is no refusal leaves the file in the directory."""
        with chdir(self._directory):
            self.writes.looks = True
            for number in range(n):
                self.run_one(number)
            self.writes.looks = False

    def run_one(self, number: int) -> None:
        """Forge and use a file in the working directory, of one kind or the other."""
        forge, use = self._kinds[number % len(self._kinds)]
        data = forge()
        Path("forged").write_bytes(data)
        use(data)
        assert not self.writes.found, self.writes.found

    def _forged_model(self) -> bytes:
        self._base = self._draw.choice(self._models)
        return self._forged_tree(self._base.data)

    def _forged_classifier(self) -> bytes:
        return self._forged_tree(self._draw.choice(self._classifiers))

    def _forged_tree(self, data: bytes) -> bytes:
        tree, arrays = model_parts(data)
        kind = self._draw.randrange(5)
        if kind < 2:
            arrays = mutated_arrays(self._draw, tree, arrays)
        if kind > 0:
            tree = mutated_tree(self._draw, tree)
        if kind == 4 and self._draw.random() < 0.1:
            deep, noise = b"\x91" * 3000, self._draw.randbytes(self._draw.randrange(300))
            return model_bytes(self._draw.choice((deep, noise)), arrays)
        try:
            return model_bytes(tree, arrays)
        except (OverflowError, TypeError):  # MessagePack does not have such numbers or keys
            return model_bytes(b"", arrays)

    def _forged_blocks(self) -> bytes:
        draw = self._draw
        self._base = draw.choice(self._blocks)
        header, frames = blocks_parts(self._base.data)
        kind = draw.randrange(8)
        if kind == 0:
            header = mutated_tree(draw, header)
        elif kind == 1:
            head = draw.choice(frames).head
            name = draw.choice([each for each in head.dtype.names if "checksum" not in each])
            if name != "reserved":
                head[name] = np.array(draw.choice((-1, 0, 1, 2, 7, 2**31 - 1)), np.int64).astype(
                    head[name].dtype
                )
        elif kind == 2:
            frames.insert(draw.randrange(len(frames)), draw.choice(frames))
        for _ in range(draw.choice((1, 1, 2, 4)) if kind > 2 else 0):
            frame = draw.choice(frames[:-1])
            name = draw.choice(list(frame.sections))
            before = frame.sections[name]
            frame.sections[name] = after = mutated_records(draw, before)
            if draw.random() < 0.9:
                frame.head[name] += len(after) - len(before)
        return blocks_bytes(header if _is_json(header) else b"{", frames)

    def _forged_vw_model(self) -> bytes:
        """Change the options, and seal them; or numbers behind them, of which there is no checksum."""
        draw = self._draw
        self._base = draw.choice(self._vw)
        data = bytearray(self._base.data)
        if draw.random() < 0.3:
            return vw_model_bytes(self._base.data, lambda options: mutated_options(draw, options))
        begin = data.index(b" --") if b" --" in data else 60
        for _ in range(draw.choice((1, 1, 4))):
            at = draw.randrange(data.index(b"\0", begin) + 9, len(data) - 8)
            size = draw.choice((1, 4, 8))
            data[at : at + size] = draw.choice(
                (draw.randbytes(size), (draw.choice(NUMBERS) % 2**64).to_bytes(8, "little")[:size])
            )
        return bytes(data)

    def _use_vw_model(self, data: bytes) -> None:
        try:
            workspace = read_vw_model(data)
        except (InputError, OptionError) as error:
            self._refuse(error)
        else:
            self._work_on(workspace)
        if self._draw.random() < _OFTEN:
            self._command("convert forged out.model")

    def _use_model(self, data: bytes) -> None:
        given: dict[str, Any] = {"testonly": True} if self._draw.random() < 0.3 else {}
        try:
            workspace = Workspace.load(data, **given)
        except (InputError, OptionError) as error:
            self._refuse(error)
        else:
            self._work_on(workspace)
        if self._draw.random() < _OFTEN:
            self._command(self._draw.choice(_VERBS))

    def _use_classifier(self, data: bytes) -> None:
        rows = class_rows(self._draw, 2, 12)
        try:
            classifier = AutoMLClassifier.load(data)
            for row, label in rows:
                classifier.predict(row)
                classifier.learn(row, label)
            file = io.BytesIO()
            classifier.save(file)
        except (InputError, OptionError) as error:
            self._refuse(error)
            return
        self.used += 1
        AutoMLClassifier.load(file.getvalue()).predict(rows[0][0])

    def _work_on(self, workspace: Workspace) -> None:
        """Predict and learn, save, and load what was saved."""
        self.used += 1
        events = self._base.events
        if workspace.kind != Workspace(configuration=self._base.configuration).kind:
            events = "1 |user a |late b\n"
        try:
            for _, outcomes in workspace.stream(events.encode()):
                assert len(outcomes)
            for block in workspace.read(events.encode()):
                workspace.predict_block(block)
            file = io.BytesIO()
            workspace.save(file)
        except (InputError, OptionError) as error:
            self._refuse(error)
            return
        Workspace.load(file.getvalue(), testonly=True)

    def _use_blocks(self, data: bytes) -> None:
        for configuration in (self._base.configuration, _reading(self._base.configuration)):
            workspace = Workspace(configuration=configuration)
            try:
                for block, _ in workspace.stream(data if self._draw.random() < 0.5 else Path("forged")):
                    workspace.predict_block(block)
                self.used += 1
            except (InputError, OptionError) as error:
                self._refuse(error)
        if self._draw.random() < _OFTEN:
            words = _reading(self._base.configuration).command()
            self._command(f"convert forged out.txt {words}")
            Path("out.txt").unlink(missing_ok=True)
        if self._draw.random() < _OFTEN:
            self._command(f"-d forged -f out.model -p p.txt {self._base.configuration.command()}")

    def _command(self, words: str) -> None:
        """Run a command over the forged file: it ends with a message of one line, or as it should."""
        Path("whole.model").write_bytes(self._base.data)
        Path("events.txt").write_text(self._base.events)
        Path("p.txt").write_bytes(b"0" * 500)
        before = _names()
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as said:
            code = main([*shlex.split(words), "--quiet"])
        assert code in (0, 1, 2), (code, said.getvalue())
        if code:
            assert said.getvalue().count("\n") == 1, said.getvalue()
        assert _names() <= before | _NAMED, _names()

    def _refuse(self, error: Exception) -> None:
        self.refused += 1
        assert "\n" not in str(error), error


def class_rows(draw: random.Random, n_classes: int, n: int) -> list[tuple[dict[str, Any], int]]:
    """Draw rows with a number and a word, and the classes that follow from both."""
    drawn = [(draw.random(), draw.choice("abc")) for _ in range(n)]
    return [({"x": x, "word": word}, (int(x * 4) + (word == "a")) % n_classes) for x, word in drawn]


def _names() -> set[str]:
    """Names of the files in the working directory."""
    return {path.name for path in Path().iterdir()}


def _is_json(header: Any) -> bool:
    """Return whether JSON can represent the value."""
    try:
        blocks_bytes(header, [])
    except (OverflowError, RecursionError, TypeError, ValueError):
        return False
    return True


def _reading(configuration: Configuration) -> Configuration:
    """Return the options by which events are read, and no more."""
    kinds = ("cb", "cb_adf", "cb_explore", "cb_explore_adf", "ccb_explore_adf")
    names = {*kinds, "vw_exact", "hash", "hash_seed", "rnd", "bit_precision"} & configuration.supplied
    return REGISTRY.from_keywords(**{name: configuration.get(name) for name in names})
