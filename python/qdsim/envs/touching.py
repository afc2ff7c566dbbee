"""Sensors of forces in observations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from qdsim.array_type import Array
from qdsim.batches.dynamics import step_dynamic_batch
from qdsim.batches.steps import BatchSteps, step_batch
from qdsim.description.references import check_sensor, unknown_name
from qdsim.description.sensors import Sensor
from qdsim.dynamics import DynamicOptions
from qdsim.envs.laws import Law
from qdsim.envs.moves import Drawn, Moves
from qdsim.model import Model
from qdsim.sensors import read_sensors

__all__ = ["Touching"]


class Touching:
    """Values of sensors while commands are held, computed from a step that is not taken.

    Args:
        model: the task's.
        moves: its laws compute the steps.
        sensors: names of sensors of the model, or sensors.
        threads: of the core.

    Attributes:
        size: number of values of all sensors.

    Raises:
        ValueError: if the model does not have a sensor, or an element that a sensor refers to.
    """

    def __init__(
        self, model: Model, moves: Moves, sensors: Sequence[str | Sensor], threads: int
    ) -> None:
        self._laws, self._threads = moves.laws, threads
        self._sensors = tuple(_found(model, sensor) for sensor in sensors)
        q = np.asarray(model.default_q)[None]
        self.size = 0
        if self._sensors:
            at_rest = np.zeros((1, model.nv))
            self.size = self._by(self._laws[0], q, at_rest, moves.holding(q), {}).shape[1]

    def __call__(
        self,
        q: Array,
        v: Array,
        command: Array,
        parameters: Mapping[str, Array],
        drawn: Drawn | None,
    ) -> Array:
        """Return sensor values (n, size) at configurations (n, nq), velocities (n, nv) and commands (n, nu).

        ``parameters`` (n, ...) are those of the model. ``drawn`` (n,) are indices into the laws;
        None is the first. Values are zero if a step fails.
        """
        values = np.empty((len(q), self.size))
        if not self._sensors:
            return values
        laws = np.zeros(len(q), np.intp) if drawn is None else drawn
        for i in np.unique(laws).tolist():
            rows = np.flatnonzero(laws == i)
            own = {name: numbers[rows] for name, numbers in parameters.items()}
            values[rows] = self._by(self._laws[i], q[rows], v[rows], command[rows], own)
        return values

    def _by(
        self, law: Law, q: Array, v: Array, command: Array, parameters: Mapping[str, Array]
    ) -> Array:
        more: dict[str, Any] = {
            "parameters": parameters or None,
            "errors": "mark",
            "threads": self._threads,
        }
        result: BatchSteps
        if isinstance(law.options, DynamicOptions):
            result = step_dynamic_batch(law.model, q, v, command, law.options, **more)
        else:
            result = step_batch(law.model, q, command, law.options, **more)
        values = read_sensors(law.model, q, result, v=v, sensors=self._sensors)
        columns = np.concatenate([x.reshape(len(q), -1) for x in values.values()], axis=1)
        return np.where(result.ok[:, None], columns, 0.0)


def _found(model: Model, sensor: object) -> Sensor:
    own = {item.name: item for item in model.description.sensors}
    if isinstance(sensor, str):
        if sensor not in own:
            raise ValueError(f"sensors: {unknown_name('sensor', sensor, own)}")
        return own[sensor]
    check_sensor(model.description, sensor)  # type: ignore[arg-type]  # the options have checked it
    return sensor  # type: ignore[return-value]
