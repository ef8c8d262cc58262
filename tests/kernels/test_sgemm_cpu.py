"""sgemm_cpu's revisions are right on shapes that fit no tile, and the two bad ones are bad."""

import math
import time
from concurrent.futures import ThreadPoolExecutor
from ctypes import CDLL

import pytest

from tests.kernels.shipped import KERNELS, MANIFESTS, Gemm, build_cpp, manifest_of, suite_of

FOLDER = KERNELS / "sgemm_cpu"
NAMES = [file.parent.name for file in MANIFESTS if file.parent.parent == FOLDER]
HONEST = list(suite_of("sgemm_cpu").revisions)
SHAPES = [tuple(case.dims[d] for d in "mnk") for case in suite_of("sgemm_cpu").verify_cases] + [(33, 64, 257)]
# A running sum of k roundings, each at most half a unit in the last place of |A||B|: k 2^-24, and these k are small.
BOUND = 2e-5


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, CDLL]:
    out = tmp_path_factory.mktemp("sgemm")
    with ThreadPoolExecutor() as pool:
        return dict(zip(NAMES, pool.map(lambda name: build_cpp(FOLDER / name, out / f"{name}.so"), NAMES), strict=True))


def _supported(name: str, shape: tuple[int, int, int]) -> bool:
    return manifest_of(FOLDER / name).constraints.refusal(dict(zip("mnk", shape, strict=True))) is None


@pytest.mark.parametrize("name", [*HONEST, "demo_slow_stride"])
def test_odd_shapes_are_right_and_nothing_is_written_beside_them(libraries: dict[str, CDLL], name: str):
    shapes = [shape for shape in SHAPES if _supported(name, shape)]
    assert shapes
    for shape in shapes:
        call = Gemm(libraries[name], *shape)
        assert call.run() == 0
        assert call.error < BOUND, shape
        assert call.stayed_inside, shape


@pytest.mark.parametrize("name", ["v2_vectorised", "v3_packed_threads"])
def test_vectors_of_16_bytes_give_the_same_answer(tmp_path, name: str):
    library = build_cpp(FOLDER / name, tmp_path / "kernel.so", march="x86-64")
    for shape in SHAPES:
        call = Gemm(library, *shape)
        assert call.run() == 0
        assert call.error < BOUND, shape
        assert call.stayed_inside, shape


def test_a_workspace_too_small_for_one_thread_is_an_error_and_not_a_crash(libraries: dict[str, CDLL]):
    call = Gemm(libraries["v3_packed_threads"], 17, 31, 23)
    call._call.workspace_bytes = 1024
    assert call.run() != 0


def test_the_wrong_revision_is_right_on_every_timed_case_and_wrong_on_a_verify_case(libraries: dict[str, CDLL]):
    library = libraries["demo_wrong_tail"]
    for case in suite_of("sgemm_cpu").cases:
        call = Gemm(library, *(case.dims[d] for d in "mnk"))
        call.run()
        assert call.error < BOUND
    call = Gemm(library, 17, 31, 23)
    call.run()
    assert call.error > 100 * BOUND


def test_the_slow_revision_is_slow(libraries: dict[str, CDLL]):
    """The least times of calls in turn; other work on the machine asks for more turns and can't turn the ratio."""
    calls = [Gemm(libraries[name], 128, 128, 128) for name in ("demo_slow_stride", "v3_packed_threads")]
    slow, fast = math.inf, math.inf
    for turn in range(5000):
        times = []
        for call in calls:
            start = time.perf_counter()
            call.run()
            times.append(time.perf_counter() - start)
        slow, fast = min(slow, times[0]), min(fast, times[1])
        if turn >= 100 and slow > 1.2 * fast:
            break
    assert slow > 1.2 * fast
