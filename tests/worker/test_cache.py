import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from worker.cache import Cache, key_of


@pytest.fixture
def cache(tmp_path) -> Cache:
    return Cache(tmp_path / "cache", max_bytes=1 << 20)


def entry(folder: Path, **files: bytes) -> Path:
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def test_what_is_put_comes_back_as_a_copy(cache, tmp_path):
    cache.put("build", "k", entry(tmp_path / "made", a=b"1", b=b"2"))
    assert cache.get("build", "k", tmp_path / "got")
    (tmp_path / "got" / "a").write_bytes(b"spoilt by its user")
    assert cache.get("build", "k", tmp_path / "again")
    assert (tmp_path / "again" / "a").read_bytes() == b"1"
    assert (tmp_path / "again" / "b").read_bytes() == b"2"


def test_a_missing_entry_makes_no_folder(cache, tmp_path):
    assert not cache.get("build", "unknown", tmp_path / "got")
    assert not (tmp_path / "got").exists()


@pytest.mark.parametrize("damage", ["content", "index", "file gone", "index gone", "index of another kind"])
def test_a_corrupt_entry_is_a_miss_and_can_be_put_again(cache, tmp_path, damage):
    cache.put("build", "k", entry(tmp_path / "made", a=b"1"))
    stored = tmp_path / "cache" / "build" / "k"
    match damage:
        case "content":
            (stored / "a").write_bytes(b"9")
        case "index":
            (stored / "entry.json").write_text('{"a": "3')
        case "file gone":
            (stored / "a").unlink()
        case "index gone":
            (stored / "entry.json").unlink()
        case _:
            (stored / "entry.json").write_text("[1]")
    assert not cache.get("build", "k", tmp_path / "got")
    assert not (tmp_path / "got").exists()
    cache.put("build", "k", tmp_path / "made")
    assert cache.get("build", "k", tmp_path / "got")


def test_an_index_can_not_name_files_outside_its_entry(cache, tmp_path):
    (tmp_path / "cache" / "secret").write_text("host file")
    cache.put("build", "k", entry(tmp_path / "made", a=b"1"))
    stored = tmp_path / "cache" / "build" / "k" / "entry.json"
    stored.write_text(json.dumps({"../../secret": key_of()}))
    assert not cache.get("build", "k", tmp_path / "got")
    assert not (tmp_path / "secret").exists()


def test_links_are_not_kept(cache, tmp_path):
    made = entry(tmp_path / "made", a=b"1")
    (made / "link").symlink_to("/etc/passwd")
    cache.put("build", "k", made)
    assert cache.get("build", "k", tmp_path / "got")
    assert [file.name for file in (tmp_path / "got").iterdir()] == ["a"]


def test_the_least_recently_used_goes_first(tmp_path):
    cache = Cache(tmp_path / "cache", max_bytes=2500)
    for age, key in enumerate(("old", "middle")):
        cache.put("build", key, entry(tmp_path / key, a=bytes(1000)))
        index = tmp_path / "cache" / "build" / key / "entry.json"
        os.utime(index, (time.time() - 100 + age, time.time() - 100 + age))
    assert cache.get("build", "old", tmp_path / "used")
    cache.put("record", "new", entry(tmp_path / "new", a=bytes(1000)))
    assert not cache.get("build", "middle", tmp_path / "got-middle")
    assert cache.get("build", "old", tmp_path / "got-old")
    assert cache.get("record", "new", tmp_path / "got-new")


def test_keys_tell_parts_apart():
    assert len({key_of(a="1", b="2"), key_of(a="12", b=""), key_of(a="1", b=None), key_of(a="1")}) == 4
    assert key_of(a="1", b="2") == key_of(b="2", a="1")


def test_processes_that_put_get_and_evict_at_once_never_read_a_wrong_entry(tmp_path):
    argv = [sys.executable, "-m", "tests.worker.cache_hammer", tmp_path]
    root = Path(__file__).parents[2]
    processes = [subprocess.Popen([*argv, str(number)], cwd=root) for number in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]


def test_whoever_waits_for_a_lock_can_be_called_off(cache):
    class CalledOffError(Exception):
        pass

    def call_off() -> None:
        raise CalledOffError

    with (
        cache.lock("build", "k", check=lambda: None),
        pytest.raises(CalledOffError),
        cache.lock("build", "k", check=call_off),
    ):
        pass
