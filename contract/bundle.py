"""A bundle: the files of one revision, named by a digest over length-framed names and contents."""

import gzip
import hashlib
import io
import re
import tarfile
import zlib
from pathlib import PurePosixPath

from contract.manifest import Manifest, ManifestError, parse_manifest

MAX_FILES = 64
MAX_BYTES = 1 << 20
MAX_ARCHIVE_BYTES = 2 * MAX_BYTES  # tar's headers and padding included
MANIFEST = "kernel.toml"
_PATH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*(/[A-Za-z0-9_][A-Za-z0-9_.+-]*){0,7}")

Files = dict[str, bytes]


class BundleError(ValueError):
    """Files that make no bundle. `kind` is stable: no_files, too_large, bad_path, bad_archive, bad_manifest."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def digest(files: Files) -> str:
    """SHA-256 over each file's name and content, both framed by their length, in the order of the names."""
    state = hashlib.sha256()
    for name in sorted(files):
        for part in (name.encode(), files[name]):
            state.update(len(part).to_bytes(8, "big"))
            state.update(part)
    return state.hexdigest()


def check(files: Files) -> Manifest:
    """The bundle's manifest, once its paths, size and manifest are in order; raises BundleError."""
    if not files:
        raise BundleError("no_files", "a revision needs files: kernel.toml and its source")
    if len(files) > MAX_FILES:
        raise BundleError("too_large", f"{len(files)} files; at most {MAX_FILES} are allowed")
    size = sum(map(len, files.values()))
    if size > MAX_BYTES:
        raise BundleError("too_large", f"{size} bytes; at most {MAX_BYTES} are allowed")
    for name in files:
        check_path(name)
        if above := [str(folder) for folder in PurePosixPath(name).parents if str(folder) in files]:
            raise BundleError("bad_path", f"{above[0]!r} is a file, and a folder of {name!r}")
    if MANIFEST not in files:
        raise BundleError("bad_manifest", "kernel.toml is missing")
    try:
        manifest = parse_manifest(files[MANIFEST].decode())
    except (ManifestError, UnicodeDecodeError) as error:
        raise BundleError("bad_manifest", str(error)) from error
    if manifest.source not in files:
        raise BundleError("bad_manifest", f"kernel.toml: source {manifest.source} is not in the bundle")
    return manifest


def check_path(name: str) -> None:
    if len(name) > 200 or not _PATH.fullmatch(name):
        raise BundleError(
            "bad_path",
            f"{name[:200]!r}: a path is relative, without '..', of letters, digits, '_', '.', '+' and '-'",
        )


def pack(files: Files) -> bytes:
    """A tar.gz with the same bytes for the same files."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for name in sorted(files):
            info = tarfile.TarInfo(name)
            info.size = len(files[name])
            archive.addfile(info, io.BytesIO(files[name]))
    return gzip.compress(raw.getvalue(), mtime=0)


def unpack(data: bytes) -> Files:
    """The files of a tar.gz from anywhere: regular files only, sizes capped before they are read."""
    try:
        with tarfile.open(fileobj=io.BytesIO(_inflate(data)), mode="r:") as archive:
            return _regular_files(archive)
    except BundleError:
        raise
    except (tarfile.TarError, zlib.error, EOFError, OSError, ValueError) as error:
        raise BundleError("bad_archive", f"not a readable tar.gz: {error}") from error


def _regular_files(archive: tarfile.TarFile) -> Files:
    files: Files = {}
    size = 0
    for member in archive:
        if member.isdir():
            continue
        name = member.name.removeprefix("./")
        check_path(name)
        if not member.isfile():
            raise BundleError("bad_path", f"{name!r}: only regular files are allowed, no links or devices")
        size += member.size
        if size > MAX_BYTES or len(files) >= MAX_FILES:
            raise BundleError("too_large", f"at most {MAX_FILES} files and {MAX_BYTES} bytes are allowed")
        if name in files:
            raise BundleError("bad_archive", f"{name!r} is in the archive twice")
        content = archive.extractfile(member)
        files[name] = content.read() if content else b""
    return files


def _inflate(data: bytes) -> bytes:
    """gzip's content, read no further than an honest archive can be."""
    inflater = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    content = inflater.decompress(data, MAX_ARCHIVE_BYTES + 1)
    if len(content) > MAX_ARCHIVE_BYTES:
        raise BundleError("too_large", f"the archive holds over {MAX_ARCHIVE_BYTES} bytes")
    if not inflater.eof:
        raise EOFError("the archive ends early")
    return content
