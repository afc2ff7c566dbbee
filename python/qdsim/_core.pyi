"""Types of the C extension. What is private here is for qdsim's own modules and benchmarks."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NoReturn, Protocol, TypeAlias, TypedDict, final

import numpy as np
import numpy.typing as npt
from typing_extensions import disjoint_base

from .trace import TraceRow

_Vector = npt.NDArray[np.float64]
_Contacts = npt.NDArray[np.void]
_WarmStart: TypeAlias = "Step | DynamicStep | Linearization"
_Wrench = npt.ArrayLike | Mapping[str, npt.ArrayLike]  # (body_count, 6), or (6) per body
_Mocap = npt.ArrayLike | Mapping[str, npt.ArrayLike]  # (mocap_count, 7), or (7) per body

CONTACT_DTYPE: Final[np.dtype[np.void]]
STATUS_NAMES: Final[tuple[str, ...]]
ARGUMENT_NAMES: Final[tuple[str, ...]]
PARAMETER_NAMES: Final[tuple[str, ...]]

class _Failure(TypedDict):
    sample: int
    step: int  # of a rollout
    info: SolverInfo
    culprits: tuple[str, ...]

class _OptionsLike(Protocol):  # qdsim.Options, which lives a floor higher
    @property
    def _native(self) -> StepOptions: ...

class SolverError(RuntimeError):
    info: SolverInfo
    culprits: tuple[str, ...]

@disjoint_base
class Model:
    def __init__(self, spec: dict[str, Any]) -> None: ...
    @property
    def nq(self) -> int: ...
    @property
    def nv(self) -> int: ...
    @property
    def nu(self) -> int: ...
    @property
    def body_count(self) -> int: ...
    @property
    def joint_count(self) -> int: ...
    @property
    def geom_count(self) -> int: ...
    @property
    def pair_count(self) -> int: ...
    @property
    def constraint_count(self) -> int: ...
    @property
    def tendon_count(self) -> int: ...
    @property
    def mocap_count(self) -> int: ...
    @property
    def soft_pair_count(self) -> int: ...
    @property
    def planar_normal(self) -> tuple[float, float, float] | None: ...
    @property
    def body_invweight(self) -> npt.NDArray[np.float64]: ...
    def integrate(self, q: npt.ArrayLike, v: npt.ArrayLike) -> _Vector: ...
    def difference(self, q1: npt.ArrayLike, q0: npt.ArrayLike) -> _Vector: ...
    def normalize(self, q: npt.ArrayLike, /) -> _Vector: ...
    def body_poses(self, q: npt.ArrayLike, /) -> tuple[_Vector, _Vector]: ...
    def point_jacobian(
        self, q: npt.ArrayLike, body_index: int, point: npt.ArrayLike
    ) -> _Vector: ...
    def mass_matrix(self, q: npt.ArrayLike, /) -> _Vector: ...
    def _tendons(
        self, q: _Vector, jacobians: bool, moments: bool
    ) -> tuple[_Vector, _Vector | None]: ...
    def contacts(self, q: npt.ArrayLike, margin: float) -> _Contacts: ...
    def bias_force(self, q: npt.ArrayLike, v: npt.ArrayLike) -> _Vector: ...
    def energy(self, q: npt.ArrayLike, v: npt.ArrayLike) -> tuple[float, float]: ...

@final
class StepOptions:
    def __new__(
        cls,
        *,
        h: float = ...,
        friction_model: int = ...,
        rays: int = ...,
        kappa: float = ...,
        epsilon: float = ...,
        mass_ratio: float = ...,
        margin: float = ...,
        add_missed_pairs: bool = ...,
        joint_limits: bool = ...,
        gravity_on_actuated: bool = ...,
        damping: bool = ...,
        soft_constraints: int = ...,
        contact_compliance: float = ...,
        contacts: int = ...,
        force_limits: bool = ...,
        patch_friction: int = ...,
        patch_law: int = ...,
        slip_speed: float = ...,
        bristle_stiffness: float = ...,
        bristle_time: float = ...,
        held: tuple[str, ...] = ...,
        soften: bool = ...,
        tolerance: float = ...,
        iteration_limit: int = ...,
        dynamic: bool = ...,
        restitution: float = ...,
        bounce_speed: float = ...,
        recovery_speed: float = ...,
        law: int = ...,
        stop_after: int = ...,
        gyroscopic: int = ...,
        trace: bool = ...,
    ) -> StepOptions: ...
    @property
    def h(self) -> float: ...
    @property
    def friction_model(self) -> int: ...
    @property
    def rays(self) -> int: ...
    @property
    def kappa(self) -> float: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def mass_ratio(self) -> float: ...
    @property
    def margin(self) -> float: ...
    @property
    def add_missed_pairs(self) -> int: ...
    @property
    def joint_limits(self) -> int: ...
    @property
    def gravity_on_actuated(self) -> int: ...
    @property
    def damping(self) -> int: ...
    @property
    def soft_constraints(self) -> int: ...
    @property
    def contact_compliance(self) -> float: ...
    @property
    def contacts(self) -> int: ...
    @property
    def force_limits(self) -> int: ...
    @property
    def patch_friction(self) -> int: ...
    @property
    def patch_law(self) -> int: ...
    @property
    def slip_speed(self) -> float: ...
    @property
    def bristle_stiffness(self) -> float: ...
    @property
    def bristle_time(self) -> float: ...
    @property
    def gyroscopic(self) -> int: ...
    @property
    def held(self) -> tuple[str, ...]: ...
    @property
    def soften(self) -> int: ...
    @property
    def tolerance(self) -> float: ...
    @property
    def iteration_limit(self) -> int: ...
    @property
    def dynamic(self) -> int: ...
    @property
    def restitution(self) -> float: ...
    @property
    def bounce_speed(self) -> float: ...
    @property
    def recovery_speed(self) -> float: ...
    @property
    def law(self) -> int: ...
    @property
    def stop_after(self) -> int: ...
    @property
    def trace(self) -> int: ...

@final
class SolverInfo:
    @property
    def status(self) -> str: ...
    @property
    def iterations(self) -> int: ...
    @property
    def method(self) -> str: ...
    @property
    def trace(self) -> tuple[TraceRow, ...]: ...
    @property
    def tries(self) -> int: ...
    @property
    def polished(self) -> bool: ...
    @property
    def factorizations(self) -> int: ...
    @property
    def primal_residual(self) -> float: ...
    @property
    def dual_residual(self) -> float: ...
    @property
    def complementarity(self) -> float: ...
    @property
    def objective(self) -> float: ...
    @property
    def row_count(self) -> int: ...
    @property
    def contact_count(self) -> int: ...
    @property
    def missed_pairs(self) -> int: ...
    @property
    def dropped_pairs(self) -> int: ...
    @property
    def relaxed_contacts(self) -> int: ...
    @property
    def softened(self) -> int: ...
    @property
    def bounces(self) -> int: ...
    @property
    def bounce_share(self) -> float: ...
    @property
    def deep_contacts(self) -> int: ...
    @property
    def capped_rows(self) -> int: ...
    @property
    def convex_programs(self) -> int: ...
    @property
    def law_residual(self) -> float: ...
    @property
    def unique(self) -> bool | None: ...
    @property
    def soft_programs(self) -> int: ...
    @property
    def soft_converged(self) -> bool: ...
    @property
    def derivative_exact(self) -> bool | None: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Step:
    @property
    def q_next(self) -> _Vector: ...
    @property
    def delta(self) -> _Vector: ...
    @property
    def limit_force(self) -> _Vector: ...
    @property
    def constraint_force(self) -> _Vector: ...
    @property
    def tendon_force(self) -> _Vector: ...
    @property
    def actuator_force(self) -> _Vector: ...
    @property
    def actuator_limited(self) -> npt.NDArray[np.bool_]: ...
    @property
    def contacts(self) -> _Contacts: ...
    @property
    def info(self) -> SolverInfo: ...
    def show(self, model: Model, *, height: int = 520) -> Any: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class DynamicStep:
    @property
    def h(self) -> float: ...
    @property
    def v_next(self) -> _Vector: ...
    @property
    def impulse(self) -> _Vector: ...
    @property
    def bristles(self) -> _Vector: ...
    @property
    def energy(self) -> _Vector: ...
    @property
    def kinetic_energy(self) -> _Vector: ...
    @property
    def potential_energy(self) -> _Vector: ...
    def __getattribute__(self, name: str, /) -> Any: ...  # what a Step has
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Linearization:
    # None where not in wrt; typed as arrays, since whoever reads one has asked for it.
    @property
    def A(self) -> _Vector: ...
    @property
    def B(self) -> _Vector: ...
    @property
    def derivatives(self) -> Mapping[str, _Vector]: ...
    @property
    def q_next(self) -> _Vector: ...
    @property
    def step(self) -> Step: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

def step(
    model: Model,
    q: npt.ArrayLike,
    u: npt.ArrayLike,
    options: _OptionsLike | StepOptions | None = None,
    *,
    tau: npt.ArrayLike | None = None,
    wrench: _Wrench | None = None,
    mocap: _Mocap | None = None,
    warm_start: _WarmStart | None = None,
) -> Step: ...
def step_dynamic(
    model: Model,
    q: npt.ArrayLike,
    v: npt.ArrayLike,
    u: npt.ArrayLike,
    options: _OptionsLike | StepOptions | None = None,
    *,
    tau: npt.ArrayLike | None = None,
    wrench: _Wrench | None = None,
    mocap: _Mocap | None = None,
    warm_start: _WarmStart | None = None,
    bristles: npt.ArrayLike | None = None,
) -> DynamicStep: ...
def linearize(
    model: Model,
    q: npt.ArrayLike,
    u: npt.ArrayLike,
    options: _OptionsLike | StepOptions | None = None,
    *,
    tau: npt.ArrayLike | None = None,
    wrench: _Wrench | None = None,
    mocap: _Mocap | None = None,
    wrt: Iterable[str] = ("q", "u"),
    warm_start: _WarmStart | None = None,
) -> Linearization: ...

@final
class StepDifferential:
    @property
    def step(self) -> Any: ...  # a Step or a DynamicStep
    @property
    def model(self) -> Model: ...
    def jvp(self, tangents: tuple[_Vector | None, ...], /) -> _Vector | tuple[_Vector, _Vector]: ...
    def vjp(
        self, cotangent: _Vector | None, wanted: int, v_cotangent: _Vector | None = None, /
    ) -> tuple[_Vector | None, ...]: ...
    def jacobians(
        self, wanted: int, /
    ) -> tuple[tuple[_Vector | None, ...], tuple[_Vector | None, ...]]: ...
    def shape(self, argument: str, /) -> tuple[int, ...]: ...

def _linearize_dynamic(
    model: Model,
    q: npt.ArrayLike,
    v: npt.ArrayLike,
    u: npt.ArrayLike,
    options: _OptionsLike | StepOptions | None = None,
    *,
    tau: npt.ArrayLike | None = None,
    wrench: _Wrench | None = None,
    mocap: _Mocap | None = None,
    wrt: Iterable[str] = ("q", "v", "u"),
    warm_start: _WarmStart | None = None,
) -> tuple[DynamicStep, Mapping[str, _Vector], Mapping[str, _Vector]]: ...
def _differentiate(
    model: Model,
    q: npt.ArrayLike,
    u: npt.ArrayLike,
    options: _OptionsLike | StepOptions | None = None,
    *,
    tau: npt.ArrayLike | None = None,
    wrench: _Wrench | None = None,
    mocap: _Mocap | None = None,
    warm_start: _WarmStart | None = None,
    v: npt.ArrayLike | None = None,
) -> StepDifferential: ...
def _batch(
    model: Model,
    options: _OptionsLike | StepOptions | None,
    *,
    q: _Vector,
    v: _Vector | None,
    u: _Vector,
    tau: _Vector | None,
    wrench: _Vector | None,
    mocap: _Vector | None,
    parameters: tuple[_Vector | None, ...] | None,
    out: dict[str, npt.NDArray[Any]] | None,
    threads: int,
    wrt: int,
    contacts: bool,
    warm_start: _WarmStart | tuple[npt.NDArray[Any], ...] | None,
    bristles: _Vector | None,
) -> dict[str, Any]: ...
def _rollout(
    model: Model,
    options: _OptionsLike | StepOptions | None,
    *,
    q: _Vector,
    v: _Vector | None,
    u: _Vector,
    tau: _Vector | None,
    wrench: _Vector | None,
    mocap: _Vector | None,
    parameters: tuple[_Vector | None, ...] | None,
    out: dict[str, npt.NDArray[Any]] | None,
    threads: int,
    warm_start: bool,
    start: _WarmStart | tuple[npt.NDArray[Any], ...] | None,
    feedback: dict[str, _Vector] | None,
    bristles: _Vector | None,
) -> dict[str, Any]: ...
def _rollout_derivative(
    model: Model,
    options: _OptionsLike | StepOptions | None,
    *,
    q: _Vector,
    v: _Vector | None,
    u: _Vector,
    tau: _Vector | None,
    wrench: _Vector | None,
    mocap: _Vector | None,
    parameters: tuple[_Vector | None, ...] | None,
    threads: int,
    start: _WarmStart | tuple[npt.NDArray[Any], ...] | None,
    feedback: dict[str, _Vector] | None,
    way_options: _OptionsLike | StepOptions | None,
    ambient: bool,
    kept: int,
    path: tuple[npt.NDArray[Any], ...] | None,
    wrt: int,
    rows: tuple[_Vector | None, ...],
) -> dict[str, Any]: ...
def _body_poses(model: Model, q: _Vector, threads: int, /) -> dict[str, npt.NDArray[Any]]: ...
def _view_create(
    model: Model,
    body: int,
    home: npt.ArrayLike,
    coordinate: npt.ArrayLike,
    turns: npt.ArrayLike,
    tip: npt.ArrayLike,
    joint: npt.ArrayLike,
    column: npt.ArrayLike,
    half: npt.ArrayLike,
    middle: npt.ArrayLike,
    with_world: bool,
    more_count: int,
    length: float,
    position_tolerance: float,
    rotation_tolerance: float,
    reach: float,
    /,
) -> object: ...
def _observe(
    model: Model,
    view: object,
    q: _Vector,
    goal: _Vector,
    pose: _Vector,
    more: _Vector,
    threads: int,
    /,
) -> tuple[_Vector, _Vector]: ...
def _judge(
    measure: _Vector,
    before: _Vector,
    failed: npt.NDArray[np.bool_],
    done: npt.NDArray[np.int64],
    success: float,
    failure: float,
    cost: float,
    lost: float,
    horizon: int,
    /,
) -> tuple[
    _Vector,
    npt.NDArray[np.bool_],
    npt.NDArray[np.bool_],
    npt.NDArray[np.bool_],
    npt.NDArray[np.bool_],
]: ...
def _field_create(
    kind: int,
    vertices: npt.ArrayLike,
    elements: npt.ArrayLike,
    pressure: npt.ArrayLike,
    slope: float,
    /,
) -> object: ...
def _field_energy(
    a: object, b: object, pose_a: npt.ArrayLike | None, pose_b: npt.ArrayLike | None, /
) -> float: ...
def _field_patch(
    a: object,
    b: object,
    pose_a: npt.ArrayLike | None,
    pose_b: npt.ArrayLike | None,
    filter_angle: float,
    with_polygons: bool,
    with_tangent: bool,
    /,
) -> tuple[_Vector, _Vector, _Vector, _Vector, float, float, int, bytearray, bytearray]: ...
def _pressure_surface(
    model: Model, q: npt.ArrayLike, soft_pair: int, with_polygons: bool, /
) -> tuple[
    int, tuple[_Vector, _Vector, _Vector, _Vector, float, float, int, bytearray, bytearray]
]: ...
def _jax_handle(
    model: Model,
    options: _OptionsLike | StepOptions | None,
    way_options: _OptionsLike | StepOptions | None,
    threads: int,
    marks: bool,
    /,
) -> int: ...
def _jax_targets() -> tuple[Any, Any]: ...
def _pair_distances(
    model: Model, q: _Vector, margin: float, threads: int
) -> dict[str, npt.NDArray[Any]]: ...
def _parameter_fault(
    model: Model, parameter: int, rows: _Vector, /
) -> tuple[int, int, str] | None: ...
def _raise_batch_failure(
    caller: str, info: SolverInfo, culprits: tuple[str, ...], /
) -> NoReturn: ...
def _solve_cone_program(
    Q: npt.ArrayLike,
    b: npt.ArrayLike,
    G: npt.ArrayLike,
    g: npt.ArrayLike,
    cones: Sequence[tuple[str, int]],
    C: npt.ArrayLike | None,
    c: npt.ArrayLike | None,
    target_mu: float | npt.ArrayLike,
    tolerance: float,
    iteration_limit: int,
    polish: bool,
    warm_start: tuple[_Vector, _Vector, _Vector] | None,
    compliance: npt.ArrayLike | None,
    compliance_eq: npt.ArrayLike | None,
    lower: npt.ArrayLike | None,
    upper: npt.ArrayLike | None,
    /,
) -> tuple[_Vector, _Vector, _Vector, _Vector, SolverInfo]: ...
def _mujoco_plan(
    model: object,
    vertex_count: npt.ArrayLike,
    vertex: npt.ArrayLike,
    face_count: npt.ArrayLike,
    face: npt.ArrayLike,
    /,
) -> object: ...
def _mujoco_view(data: object, /) -> object: ...
def _mujoco_linearize(
    plan: object,
    view: object,
    model: object,
    data: object,
    sparse: bool,
    changes: dict[int, npt.NDArray[np.float64]] | None,
    /,
) -> tuple[_Vector, _Vector] | list[int]: ...
def _solve_lcp(
    M: _Vector, q: _Vector, tolerance: float, pivot_limit: int, /
) -> tuple[_Vector, _Vector, tuple[str, int, int, int, bool, float, float]]: ...
def _solve_mlcp(
    A: _Vector,
    C: _Vector,
    D: _Vector,
    B: _Vector,
    a: _Vector,
    b: _Vector,
    tolerance: float,
    pivot_limit: int,
    /,
) -> tuple[_Vector, _Vector, _Vector, tuple[str, int, int, int, bool, float, float]]: ...
def _solve_coulomb(
    dims: npt.NDArray[np.int32],
    kinds: npt.NDArray[np.int32],
    row_start: npt.NDArray[np.int32],
    column: npt.NDArray[np.int32],
    value: _Vector,
    q: _Vector,
    weight: _Vector,
    tolerance: float,
    iteration_limit: int,
    stop_after: int,
    repeat: int,
    /,
) -> tuple[
    _Vector,
    _Vector,
    tuple[
        str,
        str,
        bool,
        int,
        int,
        float,
        float,
        float,
        float,
        float,
        float,
        int,
        int,
        float,
    ],
]: ...
def _solve_ocp_qp(
    A: _Vector,
    B: _Vector,
    c: _Vector | None,
    x_first: _Vector | None,
    u_before: _Vector | None,
    Q: _Vector | None,
    q: _Vector | None,
    R: _Vector | None,
    r: _Vector | None,
    S: _Vector | None,
    s: _Vector | None,
    x_lower: _Vector | None,
    x_upper: _Vector | None,
    u_lower: _Vector | None,
    u_upper: _Vector | None,
    d_lower: _Vector | None,
    d_upper: _Vector | None,
    gains: bool,
    repeat: int,
    tolerance: float,
    iteration_limit: int,
) -> tuple[
    _Vector,
    _Vector,
    _Vector,
    _Vector,
    _Vector,
    _Vector,
    _Vector | None,
    _Vector | None,
    SolverInfo,
    float,
]: ...
def _cone_benchmark(
    Q: npt.ArrayLike,
    b: npt.ArrayLike,
    G: npt.ArrayLike,
    g: npt.ArrayLike,
    cones: Sequence[tuple[str, int]],
    target_mu: npt.ArrayLike | None,
    repeat: int,
    tolerance: float = 1e-9,
    polish: bool = True,
) -> float: ...
def _step_benchmark(
    model: Model,
    q: npt.ArrayLike,
    u: npt.ArrayLike,
    options: _OptionsLike | StepOptions | None,
    repeat: int,
    linearize: bool,
    warm_start: _WarmStart | None = None,
    v: npt.ArrayLike | None = None,
) -> float: ...
def _workspace_bytes(
    model: Model,
    q: npt.ArrayLike,
    u: npt.ArrayLike,
    options: _OptionsLike | StepOptions | None,
    linearize: bool,
) -> int: ...
def _restore_info(*fields: Any) -> SolverInfo: ...
def _restore_step(
    q_next: _Vector,
    delta: _Vector,
    limit_force: _Vector,
    constraint_force: _Vector,
    tendon_force: _Vector,
    actuator_force: _Vector,
    actuator_limited: npt.NDArray[np.bool_],
    contacts: _Contacts,
    info: SolverInfo,
    /,
) -> Step: ...
def _restore_dynamic_step(
    step: Step,
    v_next: _Vector,
    h: float,
    energies: tuple[float, float, float, float],
    bristles: _Vector,
    /,
) -> DynamicStep: ...
def _restore_linearization(
    step: Step,
    A: _Vector | None,
    B: _Vector | None,
    derivatives: dict[str, _Vector] = ...,
    /,
) -> Linearization: ...
