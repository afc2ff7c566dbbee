"""Soft geometries of a file, given in ``<custom>`` elements, which MuJoCo stores without using them.

``<numeric name="soft:GEOM" data="modulus dissipation hint thickness"/>`` gives the numbers of a
``Softness``; a zero means that the number is not given. The three texts ``<text name="soft:GEOM
vertices" data="x y z x y z ..."/>``, ``tetrahedra`` (indices) and ``pressure`` give a pressure field
in the frame of the geometry; then the numeric has no hint, or is absent.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from qdsim.description import Softness
from qdsim.description.references import unknown_name
from qdsim.formats.reading import Reading
from qdsim.pressure import PressureField

__all__ = ["read_softness"]

_PARTS = {"vertices": (3, float), "tetrahedra": (4, int), "pressure": (1, float)}
"""Count of numbers in a row of each text, and their type."""


def read_softness(reading: Reading) -> dict[str, Softness]:
    """Read the softness of each soft geometry, by name; elements that do not fit are refused."""
    numbers, fields = _numbers(reading), _fields(reading)
    found: dict[str, Softness] = {}
    for geom in {**numbers, **fields}:
        where = f"{'numeric' if geom in numbers else 'text'} 'soft:{geom}'"
        if geom not in reading.geom_names:
            reading.refusals.error(f"{where}: {unknown_name('geom', geom, reading.geom_names)}")
            continue
        try:
            found[geom] = _softness(numbers.get(geom), fields.get(geom))
        except ValueError as error:
            reading.refusals.error(f"{where}: {error}")
    return found


def _numbers(reading: Reading) -> dict[str, list[float]]:
    m, found = reading.m, {}
    for i, name in enumerate(reading.names("numeric", m.nnumeric, m.name_numericadr)):
        kind, _, geom = name.partition(":")
        if kind == "soft":
            begin, count = int(m.numeric_adr[i]), int(m.numeric_size[i])
            found[geom] = [float(x) for x in m.numeric_data[begin : begin + count]]
    return found


def _fields(reading: Reading) -> dict[str, dict[str, str]]:
    m = reading.m
    found: dict[str, dict[str, str]] = {}
    data = bytes(m.text_data) if m.ntext else b""
    for i, name in enumerate(reading.names("text", m.ntext, m.name_textadr)):
        kind, _, rest = name.partition(":")
        geom, _, part = rest.rpartition(" ")
        if kind == "soft" and part in _PARTS:
            begin, count = int(m.text_adr[i]), int(m.text_size[i])
            text = data[begin : begin + count].rstrip(b"\0").decode("utf-8", "replace")
            found.setdefault(geom, {})[part] = text
    return found


def _softness(numbers: list[float] | None, texts: dict[str, str] | None) -> Softness:
    given = [] if numbers is None else numbers
    if numbers is not None and not 1 <= len(given) <= 4:
        raise ValueError(f"expected 1 to 4 numbers, got {len(given)}")
    modulus, dissipation, hint, thickness = (*given, *(0.0,) * (4 - len(given)))
    field = None if texts is None else _field(texts)
    own = None if field is not None and numbers is None else modulus
    return Softness(own, dissipation, hint or None, thickness or None, field)


def _field(texts: dict[str, str]) -> PressureField:
    missing = [part for part in _PARTS if part not in texts]
    if missing:
        raise ValueError(
            f"a field needs texts of vertices, tetrahedra and pressure, there is none of "
            f"{', '.join(missing)}"
        )
    arrays: list[Any] = []
    for part, (width, kind) in _PARTS.items():
        try:
            values = np.array([kind(word) for word in texts[part].split()])
        except ValueError:
            raise ValueError(f"{part}: expected numbers in its text") from None
        if len(values) == 0 or len(values) % width:
            raise ValueError(f"{part}: expected rows of {width}, got {len(values)} numbers")
        arrays.append(values.reshape(-1, width) if width > 1 else values)
    return PressureField(*arrays)
