"""Bundles and logs by digest, in a folder or wherever fsspec reaches."""

import hashlib
from uuid import uuid4

import fsspec


class Store:
    """`url`: a folder or an fsspec URL (`s3://bucket/prefix`). What is stored is immutable and named by its digest."""

    def __init__(self, url: str) -> None:
        self._fs, self._root = fsspec.core.url_to_fs(url)

    def put_bundle(self, digest: str, archive: bytes) -> None:
        self._put(f"bundles/{digest[:2]}/{digest}.tar.gz", archive)

    def bundle(self, digest: str) -> bytes | None:
        return self._get(f"bundles/{digest[:2]}/{digest}.tar.gz")

    def put_log(self, text: str) -> str:
        """Returns the log's digest."""
        data = text.encode(errors="replace")
        digest = hashlib.sha256(data).hexdigest()
        self._put(f"logs/{digest[:2]}/{digest}.txt", data)
        return digest

    def log(self, digest: str) -> str | None:
        data = self._get(f"logs/{digest[:2]}/{digest}.txt")
        return None if data is None else data.decode(errors="replace")

    def _put(self, name: str, data: bytes) -> None:
        path = f"{self._root}/{name}"
        if self._fs.exists(path):
            return
        # A reader, or a second writer of the same digest, never sees half a file.
        part = f"{path}.{uuid4().hex}.part"
        self._fs.makedirs(path.rpartition("/")[0], exist_ok=True)
        self._fs.pipe_file(part, data)
        self._fs.mv(part, path)

    def _get(self, name: str) -> bytes | None:
        try:
            return bytes(self._fs.cat_file(f"{self._root}/{name}"))
        except FileNotFoundError:
            return None
