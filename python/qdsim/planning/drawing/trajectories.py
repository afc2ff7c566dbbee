"""A picture of the convergence of trajectory optimisation; needs Matplotlib when called."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from qdsim.planning.drawing.planar import new_figure, save_figure
from qdsim.planning.drawing.style import GRID, INK, LIMBS, PAPER, STYLE

if TYPE_CHECKING:
    from qdsim.planning.tracking.impc import ImpcResult

__all__ = ["draw_convergence"]


def draw_convergence(results: Mapping[str, ImpcResult], path: str | os.PathLike[str]) -> None:
    """Draw cost over the iterations, and the object's distance from its goal along the best
    trajectories.

    Args:
        results: runs by their names in the legend; at least one.
        path: file to write.

    Raises:
        ValueError: if there are none.
        ImportError: without Matplotlib.
    """
    if not results:
        raise ValueError("results: expected at least one")
    figure = new_figure(12.0, 5.0)
    axes = [figure.add_axes((x, 0.13, 0.26, 0.72)) for x in (0.06, 0.395, 0.73)]
    for index, (name, result) in enumerate(results.items()):
        colour = (*LIMBS, INK)[index % (len(LIMBS) + 1)]
        records = result.records
        axes[0].plot(records["iteration"], records["cost"], ".", color=colour, markersize=4)
        axes[0].step(
            records["iteration"], records["best_cost"], where="post", color=colour, label=name
        )
        errors = np.array([result.task.errors(q) for q in result.q])
        time = np.arange(len(errors)) * result.step_options.h
        axes[1].plot(time, errors[:, 0], color=colour)
        axes[2].plot(time, errors[:, 1], color=colour)
    axes[0].set_yscale("log")
    axes[0].legend(frameon=False, fontsize=9)
    titles = ("Cost; line: the best so far", "Distance to the goal (m)", "Angle to the goal (rad)")
    for k, axis in enumerate(axes):
        axis.set_title(titles[k], fontsize=11, color=INK)
        axis.set_xlabel("iteration" if k == 0 else "time (s)", color=INK)
        axis.grid(True, color=GRID, linewidth=STYLE.line)
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
    save_figure(figure, path, dpi=110, facecolor=PAPER)
