"""Linking without LLVM: what kernels need is linked, and everything else is left to LLVM."""

from __future__ import annotations

import ctypes
import math
import platform
import struct
from typing import Any

import pytest
from llvmlite import binding

from onlineauto.jit import loading
from onlineauto.jit.loading import UnsupportedCodeError, link, object_code

pytestmark = [
    pytest.mark.skipif(
        (platform.system(), platform.machine()) != ("Linux", "x86_64"), reason="it is for Linux on x86-64"
    ),
    pytest.mark.skipif(binding.llvm_version_info[0] < 17, reason="its LLVM reads other text than CODE"),
]

CODE = """
@numbers = internal constant [4 x double] [double 1.5, double 2.5, double 3.5, double 4.5]
@table = internal constant [2 x ptr] [ptr @numbers, ptr @counter]
@counter = internal global i64 7
@zeros = internal global [1000 x i64] zeroinitializer

declare double @exp(double)
declare double @pow(double, double)

define internal double @inner(double %x, i64 %i) noinline {
  %at = getelementptr double, ptr @numbers, i64 %i
  %number = load double, ptr %at
  %power = call double @pow(double %x, double %number)
  ret double %power
}

define double @outer(double %x, i64 %i) {
  %power = call double @inner(double %x, i64 %i)
  %e = call double @exp(double %power)
  %sum = fadd double %e, 0.1
  ret double %sum
}

define i64 @count(i64 %i) {
  %slot = getelementptr ptr, ptr @table, i64 1
  %where = load ptr, ptr %slot
  %n = load i64, ptr %where
  %zero = getelementptr i64, ptr @zeros, i64 %i
  %before = load i64, ptr %zero
  store i64 %n, ptr %zero
  %next = add i64 %n, 1
  store i64 %next, ptr %where
  %sum = add i64 %before, %next
  ret i64 %sum
}
"""


def compiled(text: str) -> bytes:
    module: Any = binding.parse_assembly(text, binding.create_context())
    module.triple = binding.get_process_triple()
    return object_code(module.as_bitcode())


@pytest.fixture(scope="module")
def code() -> bytes:
    return compiled(CODE)


def test_code_calls_itself_and_the_c_library_and_reads_constants(code: bytes) -> None:
    outer = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_int64)(link(code, "outer"))
    for i, number in enumerate((1.5, 2.5, 3.5, 4.5)):
        assert outer(1.25, i) == math.exp(1.25**number) + 0.1


def test_each_link_has_separate_variables(code: bytes) -> None:
    for _ in range(2):
        count = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(link(code, "count"))
        assert [count(999), count(999), count(0)] == [8, 9 + 7, 10]


def test_code_cannot_be_written_and_variables_cannot_be_executed(code: bytes) -> None:
    address = link(code, "count")
    with open("/proc/self/maps", encoding="ascii") as maps:  # noqa: PTH123 - no file
        lines = [line.replace("-", " ", 1).split() for line in maps]
    spans = [(int(begin, 16), int(end, 16), mode) for begin, end, mode, *_ in lines]
    index = next(i for i, (begin, end, _) in enumerate(spans) if begin <= address < end)
    (_, end, mode), (begin, _, next_mode) = spans[index : index + 2]
    assert (mode, begin, next_mode) == ("r-xp", end, "rw-p")


UNSUPPORTED = {
    "unknown variable": "@other = external global i64\n"
    "define i64 @outer() {\n %x = load i64, ptr @other\n ret i64 %x\n}",
    "unknown function": "declare i64 @no_such_function()\n"
    "define i64 @outer() {\n %x = call i64 @no_such_function()\n ret i64 %x\n}",
    "thread's own variable": "@own = internal thread_local global i64 3\n"
    "define i64 @outer() {\n %x = load i64, ptr @own\n ret i64 %x\n}",
    "no such symbol": "define i64 @inner() {\n ret i64 3\n}",
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_other_code_is_not_linked(name: str) -> None:
    with pytest.raises(UnsupportedCodeError, match="the file has an unknown part: "):
        link(compiled(UNSUPPORTED[name]), "outer")


def test_unsupported_code_is_linked_by_llvm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "_addresses", {})
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    text = CODE.replace("@count", "@count_of_llvm")
    with pytest.raises(UnsupportedCodeError, match="the system is not Linux on x86-64"):
        link(compiled(text), "count_of_llvm")
    count = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(loading.load(compiled(text), "count_of_llvm"))
    assert [count(999), count(999)] == [8, 9 + 7]


def test_a_function_is_linked_once(code: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "_addresses", {})
    assert loading.load(code, "outer") == loading.load(code, "outer")


def test_a_truncated_file_is_not_linked(code: bytes) -> None:
    for size in range(0, len(code), 7):
        with pytest.raises(UnsupportedCodeError):
            link(code[:size], "outer")


def test_memory_that_may_not_be_executed_is_left_to_llvm(
    code: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(address: int, size: int) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(loading, "_make_executable", refused)
    with pytest.raises(UnsupportedCodeError, match=r"the memory is not available: .*Permission denied"):
        link(code, "outer")


def test_code_of_other_machines_is_not_linked(code: bytes) -> None:
    arm = code[:18] + struct.pack("<H", 183) + code[20:]
    with pytest.raises(UnsupportedCodeError, match="it is not object code for x86-64"):
        link(arm, "outer")
