"""How soon a chart is painted in a browser, against a database that `generate_history.py` filled.

    python scripts/bench_page.py sqlite:////tmp/large.db

Starts the service on a free port and opens pages in Debian's Chromium, each time with an empty cache. Milliseconds
from the start of the navigation: `first` text (First Contentful Paint), `largest` text (Largest Contentful Paint) and
`chart`, the first frame after its lines were drawn. Then what the page loaded over HTTP: requests, kilobytes of
scripts, kilobytes in all, as compressed.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from bench_api import reader, serving
from playwright.sync_api import Browser, sync_playwright

_KERNELS = "/projects/local/kernels"
_LONG = f"{_KERNELS}/long?class=h200&case=m%3D256%2Cn%3D256%2Ck%3D256&metric=throughput"
PAGES = {
    "Overview": ("/projects/local", "svg.sparkline"),
    "Kernel, 500 revisions": (f"{_KERNELS}/kernel_00", ".uplot canvas"),
    "Kernel, 5,000 revisions": (f"{_KERNELS}/long", ".uplot canvas"),
    "the same by its full address": (_LONG, ".uplot canvas"),
}
_FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")
# Two frames after the element is there: the first one has drawn it.
_WATCH = """selector => {
  window.largest = 0;
  new PerformanceObserver(list => { for (const entry of list.getEntries()) window.largest = entry.startTime; })
    .observe({ type: "largest-contentful-paint", buffered: true });
  window.painted = new Promise(resolve => {
    const look = () => {
      if (!document.querySelector(selector)) return requestAnimationFrame(look);
      requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now())));
    };
    look();
  });
}"""
_READ = """async () => {
  const chart = await window.painted;
  const loaded = performance.getEntriesByType("resource");
  const size = entries => entries.reduce((sum, entry) => sum + entry.encodedBodySize, 0) / 1000;
  return {
    first: performance.getEntriesByName("first-contentful-paint")[0].startTime,
    largest: window.largest,
    chart,
    requests: loaded.length + 1,
    scripts: size(loaded.filter(entry => entry.name.endsWith(".js"))),
    all: size([...performance.getEntriesByType("navigation"), ...loaded]),
  };
}"""


class Seen(NamedTuple):
    first: float
    largest: float
    chart: float
    requests: int
    scripts: float
    all: float


@contextmanager
def chromium() -> Iterator[Browser]:
    path = shutil.which("chromium")
    if path is None:
        sys.exit("there is no chromium here: scripts/system-packages installs it")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(_FLAGS))
        yield browser
        browser.close()


def look(browser: Browser, url: str, *, path: str, selector: str, token: str) -> Seen:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.request.post(f"{url}/api/v1/session", data={"token": token})
    page = context.new_page()
    page.add_init_script(f"({_WATCH})({selector!r})")
    page.goto(url + path)
    seen: dict[str, Any] = page.evaluate(_READ)
    context.close()
    return Seen(**seen)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("database_url")
    parser.add_argument("--count", type=int, default=20, help="visits to each page")
    given = parser.parse_args()
    secret = reader(given.database_url)
    with serving(given.database_url) as (url, _), chromium() as browser:
        columns = ("first", "largest", "chart", "p95", "requests", "scripts", "all")
        print(f"{'ms, median of the visits; kB':30}" + "".join(f"{column:>10}" for column in columns))
        for name, (path, selector) in PAGES.items():
            visits = [look(browser, url, path=path, selector=selector, token=secret) for _ in range(given.count + 1)]
            # The first visit also starts the browser's processes.
            visits = visits[1:]
            first, largest, chart = (statistics.median(each) for each in list(zip(*visits, strict=True))[:3])
            late = statistics.quantiles([one.chart for one in visits], n=20)[18]
            last = visits[-1]
            times = "".join(f"{value:10.0f}" for value in (first, largest, chart, late, last.requests))
            print(f"{name:30}{times}{last.scripts:10.1f}{last.all:10.1f}")


if __name__ == "__main__":
    main()
