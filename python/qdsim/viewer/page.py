"""One self-contained page that shows a scene, without network, server or Python."""

from __future__ import annotations

import base64
import gzip
import html
import json
import re
from importlib import resources
from typing import Any

from qdsim.viewer.library import three

__all__ = ["framed_page", "page_of"]

_FRAME = (
    '<iframe srcdoc="{page}" width="100%" height="{height}" allow="fullscreen" '
    'style="border:none;display:block"></iframe>'
)


def page_of(stage: dict[str, Any], *, dark: bool = False) -> str:
    """Return the page of a scene (:func:`qdsim.viewer.stage.stage_of`). Names are escaped.

    Args:
        stage: The scene.
        dark: Whether the background is dark.
    """
    parts = {
        "TITLE": html.escape(str(stage["title"])),
        "CAPTION": html.escape(str(stage["caption"])),
        "THEME": "dark" if dark else "light",
        "STYLE": _text("page.css"),
        "SCRIPT": _text("page.js"),
        "LIBRARY": _packed(three()),
        "DATA": _packed(json.dumps(stage, separators=(",", ":"))),
    }
    return re.sub(r"@([A-Z]+)@", lambda found: parts[found.group(1)], _text("page.html"))


def framed_page(page: str, height: int) -> str:
    """Return a frame that contains the whole page, so that a notebook stores it."""
    return _FRAME.format(page=html.escape(page, quote=True), height=height)


def _text(name: str) -> str:
    return (resources.files("qdsim.viewer") / "web" / name).read_text(encoding="utf-8")


def _packed(text: str) -> str:
    """Compress a text and encode it as ASCII letters; the same text gives the same result."""
    return base64.b64encode(gzip.compress(text.encode("utf-8"), 9, mtime=0)).decode("ascii")
