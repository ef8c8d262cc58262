"""What is printed in a protocol's process never lands between its lines."""

from __future__ import annotations

import subprocess
import sys
import textwrap

PROGRAM = textwrap.dedent(
    """
    import ctypes, os, sys
    from worker.gpu.channel import private_channel
    from worker.protocol import LauncherReply
    channel = private_channel()
    line = channel.reader.readline().strip()
    print('{"ok": true, "elapsed_us": 0.001}')
    libc = ctypes.CDLL(None)
    libc.puts(b'{"ok": true}')
    libc.fflush(None)
    os.write(1, b'{"ok": true}' + bytes([10]))
    channel.send(LauncherReply(ok=False, message=f"{line}|{sys.stdin.read()}|"))
    """
)


def test_only_what_is_sent_reaches_the_other_end():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], input="one\ntwo\n", capture_output=True, text=True, timeout=60, check=True
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 1
    assert '"message":"one||"' in lines[0]
    assert done.stderr.count('{"ok": true') == 3
