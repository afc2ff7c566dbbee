"""Types of the C extension. What is private here is for qdsim's own modules and benchmarks."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NoReturn, Protocol, TypeAlias, TypedDict, final

import numpy as np
import numpy.typing as npt
from typing_extensions import disjoint_base

from qdsim.array_type import Array
from qdsim.trace import TraceRow

_Contacts = npt.NDArray[np.void]
_WarmStart: TypeAlias = "Step | DynamicStep | Linearization"
_Wrench = npt.ArrayLike | Mapping[str, npt.ArrayLike]  # (body_count, 6), or (6) per body
_Mocap = npt.ArrayLike | Mapping[str, npt.ArrayLike]  # (mocap_count, 7), or (7) per body

CONTACT_DTYPE: Final[np.dtype[np.void]]
CONTACTS_PER_PAIR_MAX: Final[int]
HFIELD_POINTS_MAX: Final[int]
LARGEST: Final[float]  # the square of a larger number may overflow
RAYS_MAX: Final[int]
THREADS_MAX: Final[int]
STATUS_NAMES: Final[tuple[str, ...]]
ARGUMENT_NAMES: Final[tuple[str, ...]]
DYNAMIC_DEFAULTS: Final[StepOptions]
PARAMETER_NAMES: Final[tuple[str, ...]]

class _Failure(TypedDict):
    sample: int
    step: int  # of a rollout
    info: SolverInfo
    culprits: tuple[str, ...]

class _OptionsLike(Protocol):  # qdsim.Options, which lives a floor higher
    @property
    def _native(self) -> StepOptions: ...
    @property
    def h(self) -> float: ...

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
    def integrate(self, q: npt.ArrayLike, v: npt.ArrayLike) -> Array: ...
    def difference(self, q1: npt.ArrayLike, q0: npt.ArrayLike) -> Array: ...
    def normalize(self, q: npt.ArrayLike, /) -> Array: ...
    def body_poses(self, q: npt.ArrayLike, /) -> tuple[Array, Array]: ...
    def point_jacobian(self, q: npt.ArrayLike, body_index: int, point: npt.ArrayLike) -> Array: ...
    def mass_matrix(self, q: npt.ArrayLike, /) -> Array: ...
    def _tendons(self, q: Array, jacobians: bool, moments: bool) -> tuple[Array, Array | None]: ...
    def contacts(self, q: npt.ArrayLike, margin: float) -> _Contacts: ...
    def bias_force(self, q: npt.ArrayLike, v: npt.ArrayLike) -> Array: ...
    def inertial_wrenches(self, q: npt.ArrayLike, v: npt.ArrayLike, a: npt.ArrayLike) -> Array: ...
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
    def q_next(self) -> Array: ...
    @property
    def delta(self) -> Array: ...
    @property
    def limit_force(self) -> Array: ...
    @property
    def constraint_force(self) -> Array: ...
    @property
    def tendon_force(self) -> Array: ...
    @property
    def actuator_force(self) -> Array: ...
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
    def v_next(self) -> Array: ...
    @property
    def impulse(self) -> Array: ...
    @property
    def bristles(self) -> Array: ...
    @property
    def energy(self) -> Array: ...
    @property
    def kinetic_energy(self) -> Array: ...
    @property
    def potential_energy(self) -> Array: ...
    def __getattribute__(self, name: str, /) -> Any: ...  # what a Step has
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Linearization:
    # None where not in wrt; typed as arrays, since whoever reads one has asked for it.
    @property
    def A(self) -> Array: ...
    @property
    def B(self) -> Array: ...
    @property
    def derivatives(self) -> Mapping[str, Array]: ...
    @property
    def q_next(self) -> Array: ...
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
    def jvp(self, tangents: tuple[Array | None, ...], /) -> Array | tuple[Array, Array]: ...
    def vjp(
        self, cotangent: Array | None, wanted: int, v_cotangent: Array | None = None, /
    ) -> tuple[Array | None, ...]: ...
    def jacobians(
        self, wanted: int, /
    ) -> tuple[tuple[Array | None, ...], tuple[Array | None, ...]]: ...
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
) -> tuple[DynamicStep, Mapping[str, Array], Mapping[str, Array]]: ...
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
    q: Array,
    v: Array | None,
    u: Array,
    tau: Array | None,
    wrench: Array | None,
    mocap: Array | None,
    parameters: tuple[Array | None, ...] | None,
    out: dict[str, npt.NDArray[Any]] | None,
    threads: int,
    wrt: int,
    contacts: bool,
    warm_start: _WarmStart | tuple[npt.NDArray[Any], ...] | None,
    bristles: Array | None,
) -> dict[str, Any]: ...
def _rollout(
    model: Model,
    options: _OptionsLike | StepOptions | None,
    *,
    q: Array,
    v: Array | None,
    u: Array,
    tau: Array | None,
    wrench: Array | None,
    mocap: Array | None,
    parameters: tuple[Array | None, ...] | None,
    out: dict[str, npt.NDArray[Any]] | None,
    threads: int,
    warm_start: bool,
    start: _WarmStart | tuple[npt.NDArray[Any], ...] | None,
    feedback: dict[str, Array] | None,
    bristles: Array | None,
) -> dict[str, Any]: ...
def _rollout_derivative(
    model: Model,
    options: _OptionsLike | StepOptions | None,
    *,
    q: Array,
    v: Array | None,
    u: Array,
    tau: Array | None,
    wrench: Array | None,
    mocap: Array | None,
    parameters: tuple[Array | None, ...] | None,
    threads: int,
    start: _WarmStart | tuple[npt.NDArray[Any], ...] | None,
    feedback: dict[str, Array] | None,
    way_options: _OptionsLike | StepOptions | None,
    ambient: bool,
    kept: int,
    path: tuple[npt.NDArray[Any], ...] | None,
    wrt: int,
    rows: tuple[Array | None, ...],
) -> dict[str, Any]: ...
def _body_poses(model: Model, q: Array, threads: int, /) -> dict[str, npt.NDArray[Any]]: ...
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
    q: Array,
    goal: Array,
    pose: Array,
    more: Array,
    threads: int,
    /,
) -> tuple[Array, Array]: ...
def _judge(
    measure: Array,
    before: Array,
    failed: npt.NDArray[np.bool_],
    done: npt.NDArray[np.int64],
    success: float,
    failure: float,
    cost: float,
    lost: float,
    horizon: int,
    /,
) -> tuple[
    Array,
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
) -> tuple[Array, Array, Array, Array, float, float, int, bytearray, bytearray]: ...
def _pressure_surface(
    model: Model, q: npt.ArrayLike, soft_pair: int, with_polygons: bool, /
) -> tuple[int, tuple[Array, Array, Array, Array, float, float, int, bytearray, bytearray]]: ...
def _jax_handle(
    model: Model,
    options: _OptionsLike | StepOptions | None,
    way_options: _OptionsLike | StepOptions | None,
    threads: int,
    marks: bool,
    dynamic: bool,
    /,
) -> int: ...
def _jax_targets() -> tuple[Any, Any]: ...
def _meetings(
    model: Model, q: Array, rate: Array, way: Array, gap: Array
) -> dict[str, npt.NDArray[Any]]: ...
def _pair_distances(
    model: Model, q: Array, margin: float, threads: int
) -> dict[str, npt.NDArray[Any]]: ...
def _parameter_fault(
    model: Model, parameter: int, rows: Array, /
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
    warm_start: tuple[Array, Array, Array] | None,
    compliance: npt.ArrayLike | None,
    compliance_eq: npt.ArrayLike | None,
    lower: npt.ArrayLike | None,
    upper: npt.ArrayLike | None,
    /,
) -> tuple[Array, Array, Array, Array, SolverInfo]: ...
def _mujoco_plan(
    model: object,
    vertex_count: npt.ArrayLike,
    vertex: npt.ArrayLike,
    face_count: npt.ArrayLike,
    face: npt.ArrayLike,
    /,
) -> object: ...
def _mujoco_view(data: object, /) -> object: ...
def _mujoco_fits(plan: object, view: object, /) -> None: ...
def _mujoco_linearize(
    plan: object,
    view: object,
    model: object,
    data: object,
    sparse: bool,
    changes: dict[int, npt.NDArray[np.float64]] | None,
    /,
) -> tuple[Array, Array] | list[int]: ...
def _solve_lcp(
    M: Array, q: Array, tolerance: float, pivot_limit: int, /
) -> tuple[Array, Array, tuple[str, int, int, int, bool, float, float]]: ...
def _solve_mlcp(
    A: Array,
    C: Array,
    D: Array,
    B: Array,
    a: Array,
    b: Array,
    tolerance: float,
    pivot_limit: int,
    /,
) -> tuple[Array, Array, Array, tuple[str, int, int, int, bool, float, float]]: ...
def _solve_coulomb(
    dims: npt.NDArray[np.int32],
    kinds: npt.NDArray[np.int32],
    row_start: npt.NDArray[np.int32],
    column: npt.NDArray[np.int32],
    value: Array,
    q: Array,
    weight: Array,
    tolerance: float,
    iteration_limit: int,
    stop_after: int,
    repeat: int,
    /,
) -> tuple[
    Array,
    Array,
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
    A: Array,
    B: Array,
    c: Array | None,
    x_first: Array | None,
    u_before: Array | None,
    Q: Array | None,
    q: Array | None,
    R: Array | None,
    r: Array | None,
    S: Array | None,
    s: Array | None,
    x_lower: Array | None,
    x_upper: Array | None,
    u_lower: Array | None,
    u_upper: Array | None,
    d_lower: Array | None,
    d_upper: Array | None,
    gains: bool,
    repeat: int,
    tolerance: float,
    iteration_limit: int,
) -> tuple[
    Array,
    Array,
    Array,
    Array,
    Array,
    Array,
    Array | None,
    Array | None,
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
    q_next: Array,
    delta: Array,
    limit_force: Array,
    constraint_force: Array,
    tendon_force: Array,
    actuator_force: Array,
    actuator_limited: npt.NDArray[np.bool_],
    contacts: _Contacts,
    info: SolverInfo,
    /,
) -> Step: ...
def _restore_dynamic_step(
    step: Step,
    v_next: Array,
    h: float,
    energies: tuple[float, float, float, float],
    bristles: Array,
    /,
) -> DynamicStep: ...
def _restore_linearization(
    step: Step,
    A: Array | None,
    B: Array | None,
    derivatives: dict[str, Array] = ...,
    /,
) -> Linearization: ...
