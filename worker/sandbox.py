"""The room in which submitted code runs: bubblewrap with an allow-list of mounts, and caps by cgroup or rlimits.

docs/operations.md says what is and isn't held; `kernelgate doctor` tries to break each property.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Protocol

from worker import cgroup
from worker.settings import WorkerSettings

# `--size` and `--disable-userns` came with 0.8.
OLDEST_BUBBLEWRAP = (0, 8)
TRIAL_LIMIT_S = 20.0
TMP_BYTES = 2 << 30
SHM_BYTES = 64 << 20
# What has no folder of its own writes to its stderr alone.
FILE_BLOCKS = (1 << 20) // 512
_NOBODY = "65534"
_ROOT = Path(__file__).resolve().parent.parent
_SYSTEM = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime")
_PACKAGES = ("contract", "verdict", "worker")
_SYS = ("/sys/devices/system/cpu", "/sys/devices/system/node")
# With a GPU /sys is there as a whole (libcuda wants it), but for what tells of or reaches the host's kernel.
_SYS_HIDDEN = ("/sys/kernel/debug", "/sys/kernel/tracing", "/sys/kernel/security", "/sys/firmware", "/sys/fs/bpf")
# A sandbox of root's is root to these files' own checks, whatever its namespaces.
_PROC_READ_ONLY = ("sys", "pressure", "sysrq-trigger", "mtrr", "irq", "bus", "fs", "scsi", "acpi", "asound")
_DEVICES = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")


class Sandbox(Protocol):
    """`isolates` goes into every result's environment, as `sandbox`; `caps` says what holds memory and processes."""

    @property
    def isolates(self) -> bool: ...

    @property
    def caps(self) -> str: ...

    @property
    def problem(self) -> str | None:
        """Why nothing at all may run here."""

    def refuses(self, digests: Iterable[str]) -> str | None:
        """Why bundles of these digests may not run here; None where they may."""

    def prefix(self, *, readable: Sequence[Path], writable: Sequence[Path], gpu: bool) -> tuple[str, ...]:
        """What goes before a command so that it sees these paths (beside the system's and the toolchains') and,
        with `gpu`, the node's device, and nothing else."""

    def close(self) -> str:
        """End what is left of the job and free what it held. Returns which caps were reached, for its log and for
        the message of its failure."""


class NoSandbox:
    """Runs commands as they are, with the worker's own rights: for code that is trusted, and it says so.

    `only`: digests of the bundles that are; None trusts all.
    """

    isolates = False
    caps = "none"

    def __init__(self, *, only: Iterable[str] | None = None, why: str = "") -> None:
        self._only = None if only is None else frozenset(only)
        self.problem = f"this node has no working sandbox: {why}" if self._only == frozenset() else None
        self._why = why

    def refuses(self, digests: Iterable[str]) -> str | None:
        foreign = sorted(set(digests) - self._only) if self._only is not None else []
        if not foreign:
            return None
        return self.problem or (
            f"this node has no working sandbox ({self._why}): only bundles that ship with the program run here, and"
            f" {foreign[0][:16]} is none"
        )

    def prefix(self, *, readable: Sequence[Path], writable: Sequence[Path], gpu: bool) -> tuple[str, ...]:
        del readable, writable, gpu
        return ()

    def close(self) -> str:
        return ""


class Bubblewrap:
    """One job's. Every command gets namespaces of its own (user, PID, network, IPC, UTS) and dies with its parent."""

    isolates = True
    problem = None
    _numbers = itertools.count()

    def __init__(self, program: str, settings: WorkerSettings, *, cgroups: cgroup.Cgroups | None) -> None:
        self._program = program
        self._memory_bytes = min(settings.sandbox_memory_bytes, _physical_bytes() * 3 // 4)
        self._processes = settings.sandbox_processes
        self._tools = _tools(settings)
        self._cgroups = cgroups
        self._job: cgroup.Job | None = None
        self._lock = threading.Lock()

    @property
    def caps(self) -> str:
        return f"bubblewrap, caps by {f'cgroup v{self._cgroups.version}' if self._cgroups else 'rlimits'}"

    def refuses(self, digests: Iterable[str]) -> str | None:
        del digests
        return None

    def prefix(self, *, readable: Sequence[Path], writable: Sequence[Path], gpu: bool) -> tuple[str, ...]:
        mounts = dict.fromkeys((*self._tools, *readable), "--ro-bind") | dict.fromkeys(writable, "--bind")
        argv = [self._program, *_NAMESPACES, *_fixed(gpu=gpu)]
        for path, how in sorted(mounts.items(), key=lambda mount: len(mount[0].parts)):
            argv += [how, str(path), str(path)]
        argv += ["--remount-ro", "/dev", "--remount-ro", "/"]
        for name, value in {"HOME": "/tmp", "TMPDIR": "/tmp", "TRITON_CACHE_DIR": "/tmp/triton"}.items():  # noqa: S108
            argv += ["--setenv", name, value]
        if gpu and (uuid := _only_gpu()[1]):
            argv += ["--setenv", "CUDA_VISIBLE_DEVICES", uuid]
        return (*self._capped(files=not writable, gpu=gpu), *argv, "--", *self._inside())

    def close(self) -> str:
        with self._lock:
            job, self._job = self._job, None
        if job is None:
            return ""
        reached = job.reached()
        job.close()
        said = {
            "memory": f"the sandbox: its memory limit of {self._memory_bytes >> 20} MiB was reached, and what ran was"
            " killed",
            "processes": f"the sandbox: its limit of {self._processes} processes was reached",
        }
        return "\n".join(said[cap] for cap in sorted(reached))

    def _capped(self, *, files: bool, gpu: bool) -> tuple[str, ...]:
        blocks = str(FILE_BLOCKS) if files else ""
        if self._cgroups is not None:
            with self._lock:
                self._job = self._job or self._cgroups.open(str(next(self._numbers)))
            caps = self._job.caps(memory_bytes=self._memory_bytes, processes=self._processes)
            return ("/bin/sh", "-c", cgroup.ENTER, "sh", " ".join(map(str, self._job.folders)), caps, blocks)
        # CUDA reserves terabytes of addresses.
        addresses = () if gpu else (f"--as={self._memory_bytes}",)
        size = (f"--fsize={FILE_BLOCKS * 512}",) if files else ()
        return ("prlimit", "--core=0", *addresses, *size, "--")

    def _inside(self) -> tuple[str, ...]:
        """From within, processes of this user outside don't count."""
        return () if self._cgroups is not None else ("prlimit", f"--nproc={self._processes}", "--")


_NAMESPACES = (
    *("--unshare-user", "--disable-userns", "--uid", _NOBODY, "--gid", _NOBODY),
    *("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"),
    *("--hostname", "sandbox", "--die-with-parent"),
)
# No --new-session: nanny and judge give each command a session of its own, without a terminal. In another session yet
# the scheduler would have a launcher wait for milliseconds before it stands still (its autogroups).


def choose(settings: WorkerSettings) -> Sandbox:
    """Bubblewrap where it works. Else nothing runs but `trusted_bundles`, unless the sandbox is switched off."""
    if settings.sandbox == "off":
        return NoSandbox()
    made, why = _tried(settings)
    return made or NoSandbox(only=settings.trusted_bundles, why=why)


def _program() -> tuple[str | None, str]:
    """(bubblewrap, why there is none that will do)"""
    program = shutil.which("bwrap")
    if program is None:
        return None, "bubblewrap is not installed"
    done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=TRIAL_LIMIT_S, check=False)
    found = re.search(r"(\d+)\.(\d+)", done.stdout)
    if not found or tuple(map(int, found.groups())) < OLDEST_BUBBLEWRAP:
        wanted = ".".join(map(str, OLDEST_BUBBLEWRAP))
        return None, f"{done.stdout.strip() or program}: {wanted} or later is needed"
    return program, ""


_working: dict[tuple[str, ...], str | None] = {}


def _tried(settings: WorkerSettings) -> tuple[Bubblewrap | None, str]:
    program, why = _program()
    if program is None:
        return None, why
    sandbox = Bubblewrap(program, settings, cgroups=cgroup.find())
    known = (program, *map(str, _tools(settings)))
    if known not in _working:
        _working[known] = _complaint(sandbox)
    said = _working[known]
    return (sandbox, "") if said is None else (None, said)


def _complaint(sandbox: Bubblewrap) -> str | None:
    """What an empty program ends with: a kernel that forbids namespaces shows only when asked for one."""
    argv = [*sandbox.prefix(readable=(), writable=(), gpu=False), sys.executable, "-I", "-S", "-c", ""]
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=TRIAL_LIMIT_S, check=False, start_new_session=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)[:300]
    finally:
        sandbox.close()
    if done.returncode == 0:
        return None
    return (done.stderr.strip().splitlines() or [f"bubblewrap ended with {done.returncode}"])[-1][:300]


def _fixed(*, gpu: bool) -> list[str]:
    argv = []
    for folder in (Path("/") / name for name in _SYSTEM):
        if folder.is_symlink():
            argv += ["--symlink", str(folder.readlink()), str(folder)]
        elif folder.is_dir():
            argv += ["--ro-bind", str(folder), str(folder)]
    for name in _ETC:
        argv += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    argv += ["--proc", "/proc"]
    for name in _PROC_READ_ONLY:
        argv += ["--ro-bind-try", f"/proc/{name}", f"/proc/{name}"]
    argv += ["--dev", "/dev", "--size", str(SHM_BYTES), "--tmpfs", "/dev/shm"]  # noqa: S108
    argv += _with_gpu() if gpu else _without_gpu()
    # Last: rooms, environments and toolchains may lie below it.
    return [*argv, "--perms", "1777", "--size", str(TMP_BYTES), "--tmpfs", "/tmp"]  # noqa: S108


def _with_gpu() -> list[str]:
    argv = ["--ro-bind", "/sys", "/sys"]
    for path in filter(os.path.isdir, _SYS_HIDDEN):
        argv += _empty(path)
    for device in (*_DEVICES, *map(str, _only_gpu()[0])):
        argv += ["--dev-bind-try", device, device]
    return argv


def _without_gpu() -> list[str]:
    argv = []
    for path in _SYS:
        argv += ["--ro-bind-try", path, path]
    return argv + (_empty("/proc/driver") if Path("/proc/driver").is_dir() else [])


def _empty(path: str) -> list[str]:
    return ["--size", "4096", "--tmpfs", path, "--remount-ro", path]


def _only_gpu() -> tuple[tuple[Path, ...], str | None]:
    """(device files, UUID) of the GPU that CUDA_VISIBLE_DEVICES names; all of them and None where that isn't told.

    A sandbox with one device file counts its GPU as 0, whatever the host calls it: there the UUID names it.
    """
    devices = tuple(sorted(Path("/dev").glob("nvidia[0-9]*")))
    known = []
    for file in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):  # in the order of NVML's indices
        with contextlib.suppress(OSError):
            fields = re.findall(r"^([^:\n]+):\s*(.*?)\s*$", file.read_text(errors="replace"), re.MULTILINE)
            known.append(dict(fields))
    if len(devices) < 2 or len(known) != len(devices):
        return devices, None
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip()
    # CUDA's own order is NVML's where all are of one model.
    alike = len({gpu.get("Model") for gpu in known}) == 1
    for index, gpu in enumerate(known):
        device, uuid = Path(f"/dev/nvidia{gpu.get('Device Minor')}"), gpu.get("GPU UUID")
        if uuid and device in devices and (visible == uuid or (alike and visible == str(index))):
            return (device,), uuid
    return devices, None


@cache
def _tools(settings: WorkerSettings) -> tuple[Path, ...]:
    """Interpreter, environment, compilers and this program's own packages, as far as the system's folders lack them."""
    prefixes = (Path(sys.prefix), Path(sys.base_prefix))
    places = [*prefixes, *(_ROOT / name for name in _PACKAGES)]
    places += [Path(entry) for entry in sys.path if Path(entry).name in ("site-packages", "dist-packages")]
    places += [Path(entry) for entry in os.environ.get("LD_LIBRARY_PATH", "").split(":") if entry.startswith("/")]
    for program in (settings.gxx, settings.nvcc or "nvcc"):
        found = shutil.which(program)
        if found:
            places += [Path(found).parent.parent, Path(found).resolve().parent.parent]
    places += [place.resolve() for place in places]
    chosen: list[Path] = []
    for place in sorted({*places, *_links(Path(sys.executable))}, key=lambda path: len(path.parts)):
        covered = ((Path("/") / name).resolve() for name in _SYSTEM)
        private = place in (Path.home(), _ROOT, *Path.home().parents, *({*_ROOT.parents} - {*prefixes}))
        if place.exists() and not private and not any(place.is_relative_to(have) for have in (*covered, *chosen)):
            chosen.append(place)
    return tuple(chosen)


def _links(program: Path) -> Iterator[Path]:
    """Each link on the way to a program: an environment's interpreter may be a link to a link elsewhere."""
    for _ in range(10):
        if not program.is_symlink():
            return
        program = Path(os.path.normpath(program.parent / program.readlink()))
        yield program


def _physical_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
