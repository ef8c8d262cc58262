"""Draws README's picture from the data that `make demo` imports: the web view's own charts, in light and in dark.

    python scripts/picture.py

Starts a service on the defaults in a folder of its own, brings the suites and the histories of `data/`, and writes
overview.png and overview-dark.png into docs/ (or `--into` another folder) with Debian's Chromium. Text is set in
Inter where it is installed (Debian: fonts-inter), else in the system's font.
"""

from __future__ import annotations

import argparse
import base64
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from bench_page import chromium
from playwright.sync_api import Browser, BrowserContext, Page
from rich.console import Console

from cli.client import Client
from cli.demo.plan import Plan, plan
from cli.demo.play import MARGIN, running_service
from cli.local.home import Home
from cli.submission import import_csv, push_suite
from contract.devices import DeviceClass
from contract.names import LOCAL_PROJECT

ROOT = Path(__file__).parent.parent
Scheme = Literal["light", "dark"]
PICTURES: dict[Scheme, str] = {"light": "overview.png", "dark": "overview-dark.png"}
HISTORY = "attention_b300?class=b300"
LADDERS = ("hgemm?class=h200&earlier=1", "attention_prefill?class=h200&earlier=1")
WIDTH = 1200
SCALE = 2
# A page's policy allows no style sheet but its own; a property set by a script is none.
_FONT = """document.addEventListener("DOMContentLoaded", () => {
  document.body.style.fontFamily = "Inter, system-ui, sans-serif";
});"""
_COLOURS = """() => {
  const style = getComputedStyle(document.body);
  return [style.backgroundColor, style.color];
}"""


def fill(url: str, home: Home, planned: Plan) -> None:
    with Client(url, home.token()) as client:
        for suite in planned.suites:
            push_suite(client, LOCAL_PROJECT, suite)
        for history in planned.histories:
            import_csv(client, history.file, project=LOCAL_PROJECT, provenance=history.provenance, margin=MARGIN)


def draw(browser: Browser, url: str, token: str, *, scheme: Scheme) -> bytes:
    context = browser.new_context(
        viewport={"width": WIDTH, "height": 900}, color_scheme=scheme, device_scale_factor=SCALE
    )
    context.add_init_script(_FONT)
    context.request.post(f"{url}/api/v1/session", data={"token": token})
    page = _kernel(context, url, HISTORY)
    page.locator(".uplot canvas").wait_for()
    colours: tuple[str, str] = tuple(page.evaluate(_COLOURS))
    history = _down_to(page, ".readout")
    ladders = []
    for address in LADDERS:
        page = _kernel(context, url, address)
        page.locator(".curve .earlier").first.wait_for()
        page.wait_for_load_state("networkidle")
        ladders.append((f"{address.partition('?')[0]} on h200", page.locator(".curve").first.screenshot()))
    return _together(context, history, ladders, colours=colours)


def _kernel(context: BrowserContext, url: str, address: str) -> Page:
    page = context.new_page()
    page.goto(f"{url}/projects/{LOCAL_PROJECT}/kernels/{address}")
    page.wait_for_load_state("networkidle")
    return page


def _down_to(page: Page, selector: str) -> bytes:
    """The page from its top to the end of that element."""
    box = page.locator(selector).bounding_box()
    assert box is not None, selector  # noqa: S101
    return page.screenshot(clip={"x": 0, "y": 0, "width": WIDTH, "height": box["y"] + box["height"] + 8})


def _together(
    context: BrowserContext, history: bytes, ladders: Sequence[tuple[str, bytes]], *, colours: tuple[str, str]
) -> bytes:
    page = context.new_page()
    background, text = colours
    below = "".join(f"<figure><figcaption>{name}</figcaption>{_image(picture)}</figure>" for name, picture in ladders)
    page.set_content(
        f"""<style>
          body {{ margin: 0; background: {background}; color: {text}; font: 600 16px/24px Inter, system-ui; }}
          img {{ display: block; width: 100%; }}
          div {{ display: grid; grid-template-columns: 1fr 1fr; gap: 32px; padding: 24px 24px 16px; }}
          figure {{ margin: 0; }}
          figcaption {{ padding-bottom: 8px; }}
        </style>{_image(history)}<div>{below}</div>"""
    )
    return page.screenshot(full_page=True)


def _image(picture: bytes) -> str:
    return f'<img src="data:image/png;base64,{base64.b64encode(picture).decode()}">'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, default=ROOT / "docs", metavar="FOLDER")
    into: Path = parser.parse_args().into
    planned = plan(ROOT, compiles=dict.fromkeys(("cpp", "cuda", "triton"), True))
    with TemporaryDirectory() as folder:
        home = Home(Path(folder))
        with running_service(home, DeviceClass.CPU, Console(stderr=True)) as url, chromium() as browser:
            fill(url, home, planned)
            token = home.token()
            if token is None:
                sys.exit("the service made no token")
            for scheme, name in PICTURES.items():
                drawn = draw(browser, url, token, scheme=scheme)
                (into / name).write_bytes(drawn)
                print(f"{into / name}: {len(drawn) / 1000:.0f} kB")


if __name__ == "__main__":
    main()
