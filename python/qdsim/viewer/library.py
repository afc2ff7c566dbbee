"""The library three.js (MIT), taken from the installed trimesh."""

from __future__ import annotations

import functools
import io
import re
import zipfile

from qdsim.viewer.needs import need

__all__ = ["three"]

_PLACE, _FILE = "templates/viewer.zip", "viewer.html.template"

_BEGIN = re.compile(r"<script>\s*(?=/\*\*\s*\* @license\s*\* Copyright [\d-]+ Three\.js Authors)")
_END = re.compile(r'Object\.defineProperty\(\w,"__esModule",\{value:!0\}\)\}\)+;?')


@functools.cache
def three() -> str:
    """Return the library as a script that defines ``THREE``, with its licence.

    Raises:
        ImportError: trimesh is not installed, or its version does not contain three.js.
    """
    resources = need("trimesh.resources")
    try:
        archive = zipfile.ZipFile(io.BytesIO(resources.get_bytes(_PLACE)))
        page = archive.read(_FILE).decode("utf-8")
    except (AttributeError, KeyError, OSError, ValueError):
        page = ""
    begin = _BEGIN.search(page)
    end = _END.search(page, begin.end()) if begin else None
    if begin is None or end is None:
        version = need("trimesh").__version__
        raise ImportError(
            f"trimesh {version} does not contain three.js: pip install 'qdsim[viewer]' brings one that does"
        )
    return page[begin.end() : end.end()]
