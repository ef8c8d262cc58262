"""Machine code that is to hurt its reader: a result within its bounds or an ElfError, soon, in little memory."""

from __future__ import annotations

import contextlib
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contract.outcomes import OUTCOME_OF, Outcome, Reason, Stage
from contract.statics import FunctionStatics, InstructionCounts
from tests.worker import jobs
from tests.worker.elves import EXTREMES, SECTION, SYMBOL, Header, attribute, cubin, elf, with_field
from worker.inspect import Elf, ElfError, statics_of_cubin
from worker.inspect.cubin import MAX_FUNCTIONS
from worker.pipeline import evaluate

SIZES = st.one_of(st.sampled_from(EXTREMES), st.integers(0, 4096), st.integers(0, (1 << 64) - 1))
SMALL = st.one_of(st.sampled_from([0, 1, 2, 3, 8, 11]), st.integers(0, (1 << 32) - 1))
HEADERS = st.builds(Header, name=SMALL, type=SMALL, offset=SIZES, size=SIZES, link=SMALL)


def read(data: bytes) -> tuple[FunctionStatics, ...] | None:
    """What is said of it, within bounds; None where it is refused."""
    found: tuple[FunctionStatics, ...] | None = None
    said = ""
    try:
        found = statics_of_cubin(data, architecture="sm_90a")
    except ElfError as error:
        said = str(error)
    assert said.isprintable()
    assert len(said) < 200
    if found is None:
        return None
    assert len(found) <= MAX_FUNCTIONS
    for each in found:
        assert each.function.isprintable()
        assert each.function.isascii()
        assert 0 < len(each.function) <= 1000
        numbers = each.model_dump(exclude={"function", "architecture", "instructions"}, exclude_none=True)
        assert all(0 <= value < 1 << 31 for value in numbers.values()), each
        assert each.instructions is None or isinstance(each.instructions, InstructionCounts)
    return found


@contextlib.contextmanager
def within(*, seconds: float, megabytes: int) -> Iterator[None]:
    tracemalloc.start()
    began = time.monotonic()
    try:
        yield
        assert time.monotonic() - began < seconds
        assert tracemalloc.get_traced_memory()[1] < megabytes << 20
    finally:
        tracemalloc.stop()


@given(content=st.binary(max_size=2048), headers=st.lists(HEADERS, max_size=12), names=st.integers(0, 12))
@settings(max_examples=400, deadline=None)
def test_sections_anywhere_of_any_size_over_one_another(content: bytes, headers: list[Header], names: int) -> None:
    read(elf(content, headers, names=names))


@given(
    functions=st.lists(st.tuples(st.integers(0, 80), SIZES, SIZES), max_size=20),
    names=st.binary(max_size=64),
    code=st.binary(max_size=256),
    info=st.lists(st.builds(attribute, st.sampled_from([0x2F, 0x11, 0x04]), st.integers(0, 25), SMALL)),
)
@settings(max_examples=400, deadline=None)
def test_functions_of_any_name_and_place(
    functions: list[tuple[int, int, int]], names: bytes, code: bytes, info: list[bytes]
) -> None:
    read(cubin(functions, names, code=code, info=b"".join(info)))


@given(data=st.data())
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_real_one_cut_anywhere(cubin: Path, data: st.DataObject) -> None:
    whole = cubin.read_bytes()
    read(whole[: data.draw(st.integers(0, len(whole)))])


def test_a_real_one_with_every_field_of_its_tables_gone_wrong(cubin: Path) -> None:
    whole = cubin.read_bytes()
    file = Elf(whole)
    at_sections = int.from_bytes(whole[40:48], "little")
    symbols = next(section for section in file.sections if section.type == 2)
    fields = [
        *((at, form) for at, form in ((40, "Q"), (58, "H"), (60, "H"), (62, "H"))),
        *(
            (at_sections + SECTION * place + at, form)
            for place in range(len(file.sections))
            for at, form in ((0, "I"), (4, "I"), (24, "Q"), (32, "Q"), (40, "I"))
        ),
        *(
            (symbols.offset + SYMBOL * place + at, form)
            for place in range(symbols.size // SYMBOL)
            for at, form in ((0, "I"), (4, "B"), (6, "H"), (8, "Q"), (16, "Q"))
        ),
    ]
    outcomes = {read(with_field(whole, at, form, value)) is None for at, form in fields for value in EXTREMES}
    assert outcomes == {True, False}


def refused(make: Callable[[], bytes], why: str, *, megabytes: int = 64) -> None:
    data = make()
    with within(seconds=20.0, megabytes=megabytes), pytest.raises(ElfError, match=why):
        statics_of_cubin(data, architecture="sm_90a")


def test_symbols_that_share_one_long_name_do_not_fill_the_memory() -> None:
    """Their names alone would be 6 GB."""
    refused(lambda: cubin([(0, 0, 0)] * 100_000, b"n" * 60_000 + b"\0"), "names are longer than the file")


def test_sections_that_share_one_long_name_do_not_fill_the_memory() -> None:
    names = b"n" * 60_000 + b"\0"
    headers = [Header(type=3, size=len(names)), *[Header()] * 19_000]
    refused(lambda: elf(names, headers, names=0), "names are longer than the file")


def test_more_symbols_than_anything_has_are_not_read() -> None:
    refused(lambda: cubin([(0, 0, 0)] * 600_000, b"f\0"), "symtab is not in order")


def test_attributes_without_an_end_are_not_read() -> None:
    refused(lambda: cubin([(0, 0, 0)], b"f\0", info=bytes(8 << 20)), "bytes of attributes")


@pytest.mark.parametrize("count", [MAX_FUNCTIONS, 5000])
def test_all_functions_of_one_large_section_are_told_of_or_none(count: int) -> None:
    """What a suite limits could otherwise stand behind hundreds of small functions."""
    names = b"".join(b"f%d\0" % number for number in range(count))
    starts = [names.index(b"f%d\0" % number) for number in range(count)]
    info = b"".join(attribute(0x2F, number, 32) for number in range(count))
    data = cubin([(start, 16 * at, 16) for at, start in enumerate(starts)], names, code=bytes(32 << 20), info=info)
    with within(seconds=20.0, megabytes=64):
        found = read(data)
    assert (found and len(found)) == (MAX_FUNCTIONS if count == MAX_FUNCTIONS else None)


@pytest.mark.parametrize(
    "name", [b"two words", b'"quoted"', b"\x1b[2Jpainted", b"a\nline", "größe".encode(), b"\xff", b""]
)
def test_a_name_that_no_compiler_gives_is_refused(name: bytes) -> None:
    data = cubin([(0, 0, 0)], name + b"\0", info=attribute(0x2F, 0, 32))
    refused(lambda: data, "a name that no compiler gives")


def test_names_that_differ_late_are_told_apart_when_they_are_shortened() -> None:
    long = [b"_Z" + b"x" * 6000 + bytes([last]) + b"\0" for last in b"ab"]
    info = attribute(0x2F, 0, 32) + attribute(0x2F, 1, 32)
    found = read(cubin([(0, 0, 0), (len(long[0]), 0, 0)], b"".join(long), info=info))
    assert found is not None
    assert len({each.function for each in found}) == 2


def test_of_two_counts_of_registers_the_larger_holds() -> None:
    found = read(cubin([(0, 0, 0)], b"f\0", info=attribute(0x2F, 0, 8), registers=255))
    assert found is not None
    assert found[0].registers == 255


@pytest.mark.parametrize(("number", "value"), [(0x2F, 1 << 31), (0x11, (1 << 32) - 1)])
def test_more_than_anything_has_is_no_metric(number: int, value: int) -> None:
    info = attribute(0x2F, 0, 32) + attribute(number, 0, value)
    refused(lambda: cubin([(0, 0, 0)], b"f\0", info=info), f"{value} is told of a function")


@pytest.mark.usefixtures("_an_h200")
@pytest.mark.parametrize(
    ("code", "words"),
    [
        (b"", "not a 64-bit"),
        (cubin([(0, 0, 1 << 62)], b"spilled\0", info=attribute(0x2F, 0, 32)), "larger than the file"),
        (cubin([(0, 0, 0)], b"\x1b[2J\0", info=attribute(0x2F, 0, 32)), "a name that no compiler gives"),
        (cubin([(0, 0, 0)] * 20_000, b"n" * 60_000 + b"\0"), "names are longer than the file"),
    ],
    ids=["empty", "huge", "escapes", "names"],
)
def test_a_revision_that_records_such_code_fails_to_build_with_a_reason(
    tmp_path: Path, code: bytes, words: str
) -> None:
    file = tmp_path / "hostile.cubin"
    file.write_bytes(code)
    head = jobs.bundle("copy_triton")
    report = evaluate(
        jobs.job(head, device_class="h200", suite=jobs.suite("fp16")),
        jobs.bundles(head),
        settings=jobs.settings(tmp_path, recorder=(jobs.FAKE_RECORDER, "fine", str(file))),
        on_progress=lambda _: None,
        cancelled=lambda: False,
    )
    assert report.failure is not None
    assert report.failure.reason is Reason.NOT_RECORDABLE
    assert report.failure.stage in {Stage.RECORD, Stage.INSPECT}
    assert OUTCOME_OF[report.failure.reason] is Outcome.BUILD_FAILED
    assert words in report.failure.message
