import gzip
import io
import tarfile

import pytest

from contract import bundle

MANIFEST = b'label = "v1"\nsummary = "one"\nlanguage = "cpp"\nsource = "kernel.cpp"\n'
FILES = {"kernel.toml": MANIFEST, "kernel.cpp": b"int x;"}


def archive_of(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as archive:
        for info, content in members:
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return raw.getvalue()


def test_a_file_is_no_folder_of_another() -> None:
    with pytest.raises(bundle.BundleError, match="is a file, and a folder of 'a/b/c") as refused:
        bundle.check({**FILES, "a/b": b"", "a/b/c.h": b""})
    assert refused.value.kind == "bad_path"
    assert bundle.check({**FILES, "a/b.h": b"", "a/c/b.h": b""}).label == "v1"


def link(name: str, kind: bytes) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = "/etc/passwd"
    return info, b""


def test_the_digest_depends_on_names_contents_and_their_borders() -> None:
    first = bundle.digest({"ab": b"c"})
    assert first == bundle.digest({"ab": b"c"})
    assert len({first, bundle.digest({"a": b"bc"}), bundle.digest({"ab": b"d"}), bundle.digest({"ab": b""})}) == 4


def test_packing_is_reproducible_and_unpacks_to_the_same_files() -> None:
    reversed_files = dict(reversed(FILES.items()))
    assert bundle.pack(FILES) == bundle.pack(reversed_files)
    assert bundle.unpack(bundle.pack(FILES)) == FILES


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../b", "a//b", ".hidden", "a\nb", "x" * 201, "é"])
def test_a_path_that_leaves_the_bundle_is_refused(name: str) -> None:
    with pytest.raises(bundle.BundleError) as refused:
        bundle.unpack(archive_of((tarfile.TarInfo(name), b"x")))
    assert refused.value.kind == "bad_path"
    with pytest.raises(bundle.BundleError):
        bundle.check({**FILES, name: b""})


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_are_refused(kind: bytes) -> None:
    with pytest.raises(bundle.BundleError) as refused:
        bundle.unpack(archive_of(link("kernel.cpp", kind)))
    assert refused.value.kind == "bad_path"


def test_a_compression_bomb_is_refused_before_it_is_inflated() -> None:
    bomb = gzip.compress(bytes(64 << 20))
    assert len(bomb) < 100_000
    with pytest.raises(bundle.BundleError) as refused:
        bundle.unpack(bomb)
    assert refused.value.kind == "too_large"


@pytest.mark.parametrize(
    "data",
    [b"", b"not gzip", bundle.pack(FILES)[:-20], gzip.compress(b"not tar" * 200)],
    ids=["nothing", "not gzip", "cut off", "not tar"],
)
def test_what_is_no_archive_is_refused(data: bytes) -> None:
    with pytest.raises(bundle.BundleError) as refused:
        bundle.unpack(data)
    assert refused.value.kind == "bad_archive"


def test_a_file_that_is_in_the_archive_twice_is_refused() -> None:
    with pytest.raises(bundle.BundleError) as refused:
        bundle.unpack(archive_of((tarfile.TarInfo("a"), b"1"), (tarfile.TarInfo("a"), b"2")))
    assert refused.value.kind == "bad_archive"


@pytest.mark.parametrize(
    ("files", "kind", "says"),
    [
        ({}, "no_files", "kernel.toml and its source"),
        ({"kernel.cpp": b""}, "bad_manifest", "kernel.toml is missing"),
        ({"kernel.toml": MANIFEST}, "bad_manifest", "kernel.cpp is not in the bundle"),
        ({"kernel.toml": b"\xff"}, "bad_manifest", "utf-8"),
        ({**FILES, "big": bytes(bundle.MAX_BYTES)}, "too_large", "at most"),
        ({**FILES, **{f"f{i}": b"" for i in range(bundle.MAX_FILES)}}, "too_large", "files"),
    ],
)
def test_a_bundle_that_is_not_in_order_says_what_is_wrong(files: bundle.Files, kind: str, says: str) -> None:
    with pytest.raises(bundle.BundleError, match=says) as refused:
        bundle.check(files)
    assert refused.value.kind == kind
