"""Plants for executions, by name: MuJoCo, the package's own step, a user's robot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, Union

from qdsim.arguments import instance, one_of
from qdsim.dynamics import DynamicOptions
from qdsim.model import Model
from qdsim.planning.execution.own_plant import judging_options
from qdsim.planning.execution.plant import second_order
from qdsim.planning.execution.robot_interface import Robot
from qdsim.planning.task.transfer_options import TransferOptions
from qdsim.step import Options

if TYPE_CHECKING:
    import mujoco

__all__ = ["Simulator", "contacts_of", "in_mujoco", "simulator_of", "stepped", "world_in_words"]

Simulator: TypeAlias = Union["mujoco.MjModel", DynamicOptions, Robot]
Word = Literal["mujoco", "qdsim"]


def simulator_of(
    model: Model,
    object_name: str,
    options: TransferOptions,
    given: object,
    argument: str = "simulator",
) -> Simulator:
    """Return the model in MuJoCo (given or converted), options of the own step, or a robot.

    Raises:
        TypeError, ValueError: ``given`` is none of these; the message names the argument.
    """
    if isinstance(given, Robot):
        return given
    if isinstance(given, DynamicOptions):
        return judging_options(options, given)
    if isinstance(given, str):
        if one_of(argument, given, ("mujoco", "qdsim")) == "qdsim":
            return judging_options(options, None)
        given = None
    import mujoco

    known = instance(argument, given, mujoco.MjModel, or_none=True)
    mj = second_order(model, object_name, options) if known is None else known
    if (mj.nq, mj.nv, mj.nu) != (model.nq, model.nv, model.nu):
        raise ValueError(
            f"{argument}: has nq, nv, nu = {mj.nq}, {mj.nv}, {mj.nu}, the model "
            f"{model.nq}, {model.nv}, {model.nu}"
        )
    return mj


def stepped(options: TransferOptions, given: object) -> TransferOptions:
    """Return the options with the time step of a robot, which fixes it; other options are not changed."""
    if not isinstance(given, Robot):
        return options
    period = max(options.control_period, given.period)
    return options.replace(timestep=given.period, control_period=period)


def in_mujoco(simulator: object) -> bool:
    """Return whether a given simulator is MuJoCo, with the model of `second_order` or with the user's."""
    return simulator is None or simulator == "mujoco" or type(simulator).__name__ == "MjModel"


def contacts_of(options: TransferOptions, simulator: object, model_options: Options) -> Options:
    """Return options of steps that predict the world.

    In MuJoCo with default contacts, which creep, the predicting steps have MuJoCo's contacts if the
    friction law of the model's options allows them.
    """
    creeps = in_mujoco(simulator) and options.contacts == "default"
    rigid = model_options.contact_stiffness is None
    can = model_options.friction == "cone" and model_options.law == "convex" and rigid
    return model_options.replace(contacts="mujoco") if creeps and can else model_options


def world_in_words(options: TransferOptions, simulator: object) -> str:
    """Describe the simulator and its contacts in words."""
    if simulator is None or simulator == "mujoco":
        return f"MuJoCo with {options.contacts} contacts"
    if isinstance(simulator, DynamicOptions) or simulator == "qdsim":
        law = simulator.law if isinstance(simulator, DynamicOptions) else DynamicOptions().law
        return f"qdsim's second-order step with rigid contacts, {law} law"
    return "the robot given" if isinstance(simulator, Robot) else "the MuJoCo model given"
