"""Uploaded archives, read without trusting their sizes."""

import zlib

from contract import bundle
from contract.bundle import MAX_BYTES, MAX_FILES, BundleError, Files
from service.submitting import bundle_problem

# Files, their headers and padding, and a tar's trailing blocks; a thousand headers of folders are no bundle.
_MAX_TAR_BYTES = MAX_BYTES + MAX_FILES * 8192 + (1 << 16)
_GZIP = 16 + zlib.MAX_WBITS


def read_archive(data: bytes) -> Files:
    """The files of a tar.gz. Raises ProblemError `bundle-…`."""
    try:
        _check_size(data)
        return bundle.unpack(data)
    except BundleError as error:
        raise bundle_problem(error) from error


def _check_size(data: bytes) -> None:
    """Inflate no more than a bundle may be: a small archive can say that it holds gigabytes."""
    inflater = zlib.decompressobj(_GZIP)
    try:
        inflated = len(inflater.decompress(data, _MAX_TAR_BYTES + 1))
    except zlib.error as error:
        raise BundleError("bad_archive", f"not a readable tar.gz: {error}") from error
    if inflated > _MAX_TAR_BYTES or inflater.unused_data:
        raise BundleError("too_large", f"at most {MAX_FILES} files and {MAX_BYTES} bytes are allowed, in one archive")
