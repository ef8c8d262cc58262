"""A service with everything that the web view has pages for."""

from pathlib import Path
from typing import Any

from cli.bundles import read_suite
from tests.e2e import revisions
from tests.e2e.stack import Stack

ROOT = Path(__file__).parents[2]
MARKUP = "<img src=x onerror=window.hacked=1><script>window.hacked=1</script>"
BROKEN = f'#error "{MARKUP}"\n'


class Site:
    """A service with the histories of data/; a kernel with a revision that passed, one against it, and one that doesn't
    compile."""

    def __init__(self, folder: Path) -> None:
        self.stack = Stack(folder)
        self.stack.start()
        suite = read_suite(ROOT / "kernels" / "hgemm").model_dump(mode="json")
        self.stack.api.ok("PUT", "/projects/local/kernels/hgemm/suite", json=suite)
        for name in ("published_history.csv", "h200_ladders.csv"):
            imported = {"csv": (ROOT / "data" / name).read_text(), "provenance": f"{name}; {MARKUP}"}
            self.stack.api.ok("POST", "/projects/local/imports", json=imported)
        self.kernel = self.stack.kernel(summary=f"Small products {MARKUP}")
        self.passed = self.stack.passed(self.stack.submit(kernel=self.kernel))
        again = revisions.files(revisions.source("volatile int spare = 0; (void)spare;"), label="v2")
        self.compared = self.stack.ended(self.stack.submit(again, kernel=self.kernel))
        assert self.compared["cases"][0]["judgement"], self.compared
        broken = revisions.files(BROKEN, label="broken").copy()
        broken["kernel.toml"] = broken["kernel.toml"].replace('"a test"', f"'{MARKUP}'")
        self.broken = self.stack.ended(self.stack.submit(broken, kernel=self.kernel))
        assert self.broken["outcome"] == "build_failed", self.broken

    def revision(self, evaluation: Any) -> str:
        return f"/revisions/{evaluation['revision']['id']}"
