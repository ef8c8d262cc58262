"""`python -m tests.worker.cache_hammer FOLDER NUMBER`: puts, gets, evicts; fails on a wrong entry."""

import sys
from pathlib import Path

from worker.cache import Cache


def hammer(root: Path, worker: str) -> None:
    cache = Cache(root / "cache", max_bytes=20_000)
    for turn in range(60):
        key = f"k{turn % 7}"
        content = key.encode() * 1000
        with cache.lock("build", key, check=lambda: None):
            got = root / f"got-{worker}-{turn}"
            if cache.get("build", key, got):
                assert (got / "a").read_bytes() == content
            else:
                made = root / f"made-{worker}-{turn}"
                made.mkdir()
                (made / "a").write_bytes(content)
                cache.put("build", key, made)


if __name__ == "__main__":
    hammer(Path(sys.argv[1]), sys.argv[2])
