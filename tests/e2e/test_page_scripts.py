"""The scripts that look at pages: how soon they are painted, and README's picture."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PNG = b"\x89PNG\r\n\x1a\n"


def run(script: str, *given: str | Path) -> str:
    command = [sys.executable, ROOT / "scripts" / script, *given]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_how_soon_a_chart_is_painted_is_measured_and_the_first_page_needs_little_script(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'history.db'}"
    run("generate_history.py", url, "--kernels", "1", "--revisions", "20", "--long", "60", "--cases", "2")
    head, *rows = run("bench_page.py", url, "--count", "2").splitlines()
    assert head.split()[-2:] == ["scripts", "all"]
    assert len(rows) == 4
    for row in rows:
        first, _, chart, _, requests, scripts, everything = map(float, row.split()[-7:])
        assert 0 < first <= chart
        assert requests > 5
        # What a first visit may load, compressed, in kB.
        assert 0 < scripts < 150
        assert scripts < everything


def test_readmes_picture_is_drawn_in_light_and_dark_from_what_the_demo_imports(tmp_path: Path) -> None:
    run("picture.py", "--into", tmp_path)
    drawn = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert sorted(drawn) == ["overview-dark.png", "overview.png"]
    readme = (ROOT / "README.md").read_text()
    for name, content in drawn.items():
        assert content.startswith(PNG)
        assert int.from_bytes(content[16:20], "big") == 2400
        assert f"docs/{name}" in readme
    assert drawn["overview.png"] != drawn["overview-dark.png"]
