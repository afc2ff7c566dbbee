"""Colours for viser, whose page applies a tone curve that fades bright colours."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qdsim.array_type import Array

__all__ = ["LIGHT", "toned"]

LIGHT = 1.6
"""Light on a surface that faces the lights; with light 1 a surface shows its own colour. It is more than 1, because
the tone curve is flat for bright colours."""

_WHITE = 0.85
"""Linear brightness of what is shown as white; the curve reaches 1 only for infinite light."""

# three.js, ACESFilmicToneMapping (Stephen Hill's fit): out = _OUT curve(_IN light / 0.6), where curve(x) is the quotient
# of two polynomials.
_IN = np.array([[0.59719, 0.35458, 0.04823], [0.076, 0.90834, 0.01566], [0.0284, 0.13383, 0.83777]])
_OUT = np.array(
    [[1.60475, -0.53108, -0.07367], [-0.10208, 1.10813, -0.00605], [-0.00327, -0.07276, 1.07602]]
)
_CURVE = np.array([[1.0, 0.0245786, -0.000090537], [0.983729, 0.432951, 0.238081]])


def toned(
    colour: Sequence[float], light: float = 1.0, *, linear: bool = False
) -> tuple[int, int, int]:
    """Return the colour to request, 0 to 255, so that a lit surface appears in ``colour`` (0 to 255).

    Linear colours are for instances (arrows), whose colours viser does not convert.
    """
    wanted = _WHITE * _linear(np.asarray(colour, dtype=np.float64) / 255.0)
    y = np.maximum(np.linalg.solve(_OUT, wanted), 0.0)
    a, b, c = _CURVE[0, :, None] - _CURVE[1, :, None] * y
    x = (-b + np.sqrt(b * b - 4.0 * a * c)) / (2.0 * a)
    asked = np.clip(0.6 * np.linalg.solve(_IN, x) / light, 0.0, 1.0)
    kept = asked if linear else _stored(asked)
    red, green, blue = (round(255.0 * float(channel)) for channel in kept)
    return red, green, blue


def _linear(stored: Array) -> Array:
    """Convert stored colours (sRGB) to linear light."""
    return np.where(stored <= 0.04045, stored / 12.92, ((stored + 0.055) / 1.055) ** 2.4)


def _stored(linear: Array) -> Array:
    return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1.0 / 2.4) - 0.055)
