"""Tries to get out of the sandbox that it runs in: `escape.py GOAL`, what it needs to know as JSON on stdin.

Standard library only, by an isolated interpreter. Prints what it achieved, a line each; nothing where all failed.
"""

import contextlib
import ctypes
import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWNET = 0x10000000, 0x00020000, 0x40000000
Known = dict[str, Any]


def files(known: Known) -> Iterator[str]:
    """Read what belongs to the host, to its users or to another job."""
    for path in ("/etc/shadow", "/etc/passwd", "/var/log", "/proc/1/root/etc/passwd", *known["secrets"]):
        if _readable(Path(path)):
            yield f"read {path}"
    for place in known["hidden"]:
        if Path("/", place).exists():
            yield f"saw /{place}"


def writing(known: Known) -> Iterator[str]:
    """Leave something anywhere but in the folders given for it."""
    for folder in ("/", "/usr/lib", "/etc", "/dev", "/sys", *known["read_only"]):
        with contextlib.suppress(OSError):
            Path(folder, "kernelgate-was-here").write_text("")
            yield f"wrote to {folder}"
    for mount in Path("/proc/mounts").read_text().splitlines():
        _, at, kind, options, *_ = mount.split()
        size = os.statvfs(at)
        if kind == "tmpfs" and options.startswith("rw") and size.f_blocks * size.f_frsize > known["tmpfs_bytes"]:
            yield f"may write {size.f_blocks * size.f_frsize} bytes to {at}"


def network(known: Known) -> Iterator[str]:
    """Reach anything outside, this machine's own services included."""
    for family, address in (
        (socket.AF_INET, ("127.0.0.1", known["port"])),
        (socket.AF_INET, ("1.1.1.1", 53)),
        (socket.AF_UNIX, known["socket"]),
        (socket.AF_UNIX, "\0" + known["abstract"]),
        (socket.AF_UNIX, "/run/docker.sock"),
        (socket.AF_UNIX, "/run/dbus/system_bus_socket"),
    ):
        with socket.socket(family, socket.SOCK_STREAM) as client, contextlib.suppress(OSError):
            client.settimeout(2.0)
            client.connect(address)
            yield f"connected to {address}"
    for _, name in socket.if_nameindex():
        if name != "lo":
            yield f"has the interface {name}"


def processes(known: Known) -> Iterator[str]:
    """See or signal a process of the host's, or share a namespace with one."""
    seen = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    if len(seen) > 4:
        yield f"saw {len(seen)} processes"
    with contextlib.suppress(ProcessLookupError):
        os.kill(known["pid"], 0)
        if known["pid"] not in seen[:4]:
            yield f"reached process {known['pid']}"
    for name, host in known["namespaces"].items():
        if str(Path(f"/proc/self/ns/{name}").readlink()) == host:
            yield f"is in the host's {name} namespace"


def privileges(known: Known) -> Iterator[str]:
    """Have rights, or get some: capabilities, another user, a namespace of one's own, the host's environment."""
    status = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line)
    if int(status["CapEff"], 16):
        yield f"has capabilities {status['CapEff']}"
    if status["NoNewPrivs"] != "1":
        yield "may gain privileges by set-uid programs"
    with contextlib.suppress(OSError):
        os.close(os.open("/dev/tty", os.O_RDWR))
        yield "has a terminal, and may type there"
    if os.getuid() == 0:
        yield "is root"
    libc = ctypes.CDLL(None)
    for flag, name in ((CLONE_NEWUSER, "user"), (CLONE_NEWUSER | CLONE_NEWNS, "mount"), (CLONE_NEWNET, "network")):
        child = os.fork()
        if child == 0:
            os._exit(0 if libc.unshare(flag) == 0 else 1)
        if os.waitpid(child, 0)[1] == 0:
            yield f"made a {name} namespace"
    yield from (f"knows the worker's {name}" for name in known["variables"] if name in os.environ)


def kernel(known: Known) -> Iterator[str]:
    """Open a setting of the kernel for writing, or a device that isn't harmless."""
    for root, folders, names in os.walk("/proc"):
        folders[:] = [name for name in folders if not name.isdigit() and name not in ("self", "thread-self")]
        for name in names:
            with contextlib.suppress(OSError):
                os.close(os.open(f"{root}/{name}", os.O_WRONLY | os.O_NONBLOCK))
                yield f"may write {root}/{name}"
    for device in sorted({entry.name for entry in Path("/dev").iterdir()} - set(known["devices"])):
        yield f"has /dev/{device}"
    if _readable(Path("/proc/driver/nvidia")):
        yield "read /proc/driver/nvidia"


def forking(known: Known) -> Iterator[str]:
    """Start more processes than allowed."""
    for count in range(known["processes"] + 8):
        try:
            child = os.fork()
        except OSError:
            return
        if child == 0:
            signal.pause()
        if count > known["processes"]:
            yield f"started {count} processes"
            return


def allocating(known: Known) -> Iterator[str]:
    """Hold more memory than allowed. Being killed for it is the answer that is hoped for."""
    held: list[bytearray] = []
    try:
        held.extend(bytearray(b"x") * (1 << 20) for _ in range(known["memory_bytes"] * 5 // 4 >> 20))
    except MemoryError:
        return
    yield f"held {len(held)} MiB"


def outliving(known: Known) -> Iterator[str]:
    """Leave a process behind that keeps our stdout open."""
    del known
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.pause()
        os._exit(0)
    yield from ()


def _readable(path: Path) -> bool:
    try:
        return any(path.iterdir()) if path.is_dir() else bool(path.read_bytes())
    except OSError:
        return False


GOALS: dict[str, Callable[[Known], Iterator[str]]] = {
    goal.__name__: goal
    for goal in (files, writing, network, processes, privileges, kernel, forking, allocating, outliving)
}

if __name__ == "__main__":
    for achieved in GOALS[sys.argv[1]](json.load(sys.stdin)):
        print(achieved, flush=True)
