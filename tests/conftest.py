"""Settings of every Python test."""

import os

import hypothesis

# Pictures are written, never shown, and by Matplotlib, whether the machine has OpenGL or not; one BLAS thread, so that
# the machine's size changes nothing.
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ["MUJOCO_GL"] = "disable"
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

hypothesis.settings.register_profile(
    "qdsim", deadline=None, derandomize=True, max_examples=50, print_blob=True
)
hypothesis.settings.load_profile("qdsim")
