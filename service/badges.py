"""A badge: `hgemm on h200 | 0.82 of cuBLAS`, in a colour that says no more than the words."""

import hashlib
from xml.sax.saxutils import escape

from contract.outcomes import Outcome
from contract.views import Standing

_GOOD, _BAD, _UNKNOWN = "#1a7f37", "#cf222e", "#57606a"
# Widths of Verdana 11 px, near enough for names and numbers.
_NARROW, _USUAL, _WIDE = 4.2, 6.9, 9.6
_PADDING = 6


def badge_svg(kernel: str, device_class: str, standing: Standing | None) -> tuple[str, str]:
    """(the picture, its ETag)."""
    label, (message, colour) = f"{kernel} on {device_class}", _message(standing)
    left, right = _width(label) + 2 * _PADDING, _width(message) + 2 * _PADDING
    width = left + right
    title = escape(f"{label}: {message}", {'"': "&quot;"})
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label="{title}">'
        f"<title>{title}</title>"
        f'<path fill="#3c444d" d="M3 0h{left - 3}v20H3a3 3 0 0 1-3-3V3a3 3 0 0 1 3-3z"/>'
        f'<path fill="{colour}" d="M{left} 0h{right - 3}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3h-{right - 3}z"/>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
        f'<text x="{_PADDING}" y="14" textLength="{left - 2 * _PADDING}">{escape(label)}</text>'
        f'<text x="{left + _PADDING}" y="14" textLength="{right - 2 * _PADDING}">{escape(message)}</text>'
        "</g></svg>"
    )
    return svg, f'"{hashlib.sha256(svg.encode()).hexdigest()[:32]}"'


def _message(standing: Standing | None) -> tuple[str, str]:
    if standing is None:
        return "no result yet", _UNKNOWN
    if standing.outcome is Outcome.SLOWER:
        ratio = standing.worst_ratio
        return (f"{(ratio - 1) * 100:.2g} % slower" if ratio and ratio > 1 else "slower"), _BAD
    if standing.bad:
        return standing.outcome.value.replace("_", " "), _BAD
    if standing.over_baseline is not None:
        # `cuBLAS 13.0`, `torch 2.13.0, MKL`: its first word names it.
        named = (standing.baseline or "the baseline").split(",")[0].strip() or "the baseline"
        name = named if standing.baseline is None else named.split(" ")[0]
        return f"{standing.over_baseline:.2f} of {name[:40]}", _GOOD
    if standing.value is not None:
        return f"{standing.value:.4g} {standing.unit or ''}".strip(), _GOOD
    return standing.outcome.value.replace("_", " "), _UNKNOWN if standing.outcome is Outcome.BUILT else _GOOD


def _width(text: str) -> int:
    narrow, wide = set("fijlrt.,:;|!'()[] "), set("mwMW%@")
    return round(sum(_NARROW if each in narrow else _WIDE if each in wide else _USUAL for each in text))
