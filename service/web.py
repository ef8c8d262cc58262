"""The built web view, and the headers that keep a page from running what it shows."""

from __future__ import annotations

import gzip
import mimetypes
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.etags import is_held
from service.settings import Settings

# Nothing inline, nothing from elsewhere: names, logs and sources of a submission are text and stay text.
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_DATA_POLICY = "default-src 'none'; frame-ancestors 'none'"
# FastAPI's page of the API's documentation comes from a CDN and starts itself inline.
_DOCS_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' https://cdn.jsdelivr.net; "
    "style-src 'unsafe-inline' https://cdn.jsdelivr.net; img-src 'self' data: https://fastapi.tiangolo.com; "
    "connect-src 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_DOCS = "/api/v1/docs"
_ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
# Whose paths are never a page's. Their own routes answer, or the API's 404.
_NOT_PAGES = ("api", "badge", "webhooks", "healthz", "readyz")
# Vite names these by their content.
_HASHED = "assets"
_FOREVER = "public, max-age=31536000, immutable"
_MISSING = """The web view of this service is not built.

In a checkout of the repository:   make web
Built elsewhere:                   set KERNELGATE_WEB_DIR to the folder with its index.html

The API is at /api/v1, its documentation at /api/v1/docs.
"""
_COMPRESSED_FROM = 1024


class SecurityHeaders:
    """ASGI middleware: headers for every answer, where a route hasn't set its own. What the API says isn't kept."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path: str = scope["path"]

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _ALWAYS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Content-Security-Policy", _DOCS_POLICY if path == _DOCS else _DATA_POLICY)
                if path.startswith("/api/"):
                    headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self.app(scope, receive, guarded)


@dataclass(frozen=True, kw_only=True)
class _File:
    """`packed`: gzip, where that is smaller."""

    content: bytes
    packed: bytes | None
    media_type: str


def folder_of(settings: Settings) -> Path:
    return Path(settings.web_dir) if settings.web_dir else Path(__file__).parents[1] / "web" / "dist"


def install(app: FastAPI, *, folder: Path) -> None:
    """Answer GET and HEAD of every path that no route has: a file of `folder`, or its index.html, whose script knows
    the pages."""
    unknown = app.router.default

    async def pages(scope: Scope, receive: Receive, send: Send) -> None:
        parts = [part for part in scope.get("path", "").split("/") if part]
        is_page = scope["type"] == "http" and scope["method"] in {"GET", "HEAD"} and parts[:1] not in _RESERVED
        response = await run_in_threadpool(_respond, folder, parts, Headers(scope=scope)) if is_page else None
        await (response or unknown)(scope, receive, send)

    app.router.default = pages


_RESERVED = [[name] for name in _NOT_PAGES]


def _respond(folder: Path, parts: list[str], headers: Headers) -> Response | None:
    """None: there is no such page."""
    root = folder.resolve()
    index = root / "index.html"
    if not index.is_file():
        return PlainTextResponse(_MISSING, status_code=503, headers={"Cache-Control": "no-store"})
    asked = _inside(root, parts)
    hashed = parts[:1] == [_HASHED]
    if asked is None and (hashed or not _wants_page(parts, headers)):
        return None
    path = asked or index
    status = path.stat()
    file = _read(path, status.st_mtime_ns, status.st_size)
    tag = f'"{status.st_mtime_ns:x}-{status.st_size:x}"'
    answered = {
        "Cache-Control": _FOREVER if hashed else "no-cache",
        "Content-Security-Policy": PAGE_POLICY,
        "ETag": tag,
        "Vary": "Accept-Encoding",
    }
    if is_held(tag, headers.get("If-None-Match")):
        return Response(status_code=304, headers=answered)
    if file.packed is not None and "gzip" in headers.get("Accept-Encoding", ""):
        return Response(file.packed, media_type=file.media_type, headers={**answered, "Content-Encoding": "gzip"})
    return Response(file.content, media_type=file.media_type, headers=answered)


def _inside(root: Path, parts: list[str]) -> Path | None:
    """The file of that path, where there is one and it lies under `root` whatever links and dots say."""
    if not parts or any("\0" in part for part in parts):
        return None
    path = root.joinpath(*parts).resolve()
    return path if path.is_relative_to(root) and path.is_file() else None


def _wants_page(parts: list[str], headers: Headers) -> bool:
    """A label or a slug may have a dot, so that only what asks for no page and looks like a file is taken for one."""
    return "text/html" in headers.get("Accept", "") or not parts or "." not in parts[-1]


@lru_cache(maxsize=256)
def _read(path: Path, _changed_ns: int, _size: int) -> _File:
    content = path.read_bytes()
    media_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    squeezable = media_type.startswith("text/") or media_type in {
        "application/javascript",
        "application/json",
        "application/manifest+json",
        "image/svg+xml",
    }
    packed = gzip.compress(content, mtime=0) if squeezable and len(content) >= _COMPRESSED_FROM else None
    return _File(
        content=content,
        packed=packed if packed is not None and len(packed) < len(content) else None,
        media_type=media_type,
    )
