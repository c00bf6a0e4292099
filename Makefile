# make demo         install into .venv, then answer for the figures and scenes in examples/, with reports
# make test         install into .venv and run the whole test suite
# make thorough     the same with all cases where the suite has a sample: more random programs, every kernel (two hours)
# make quick        all except kernels in the interpreter, compiled or executed ahead of time, trainings and documentation;
#                   of a test with many cases each third
# make coverage     the compiler's and the engines' tests under coverage; fails below 95 % of lines
# make lint         ruff and mypy, and the layout of the shipped programs
# make hooks        have git run the checks of .pre-commit-config.yaml before a commit
# make wheel        dist/: a wheel, and the sources to build one from
# make wheel-check  install the wheel, then the source tree, into empty environments and use them
# make kernels      the CPU engine's kernels as LLVM's language, after a change of their sources (a minute)
# make bench        all benchmarks except the trained baselines, into benchmarks/results and the README (half an hour)
# make ptx          all kernels of all programs executed on the CPU and checked, and faults planted in them (half an hour)
# make gpu-check    on a machine with CUDA: all value tests on the card, its bits and instructions, then its times
# make fuzz         100,000 random and mutated programs through the compiler
# make clean        everything that these make, .venv included

# Where this is set, every one of the many processes of a test run would compile all of Python's files anew.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test thorough quick coverage lint hooks wheel wheel-check kernels bench ptx gpu-check fuzz clean

# Dependencies are installed when the files that name them change, the package itself once (editable).
$(VENV)/installed: pyproject.toml setup.py constraints.txt
	$(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) (about two minutes)"
	$(PIP) setuptools
	$(PIP) --no-build-isolation -e '.[test]'
	@touch $@

$(VENV)/installed-extras: $(VENV)/installed
	$(PIP) --no-build-isolation -e '.[test,bench,lint]'
	@touch $@

# Blender is large and there only for the tests that render; they are skipped if it is not available.
$(VENV)/tried-blender: $(VENV)/installed
	@$(PIP) --no-build-isolation -e '.[test,clevr]' || echo "without Blender: tests that render are skipped"
	@touch $@

# Clusters, the service and the page are large and there only for their tests, which are skipped without them.
$(VENV)/tried-services: $(VENV)/installed
	@$(PIP) --no-build-isolation -e '.[test,ray,serve,play,browser]' || echo "without Ray and services: their tests are skipped"
	@touch $@

demo: $(VENV)/installed
	@$(BIN)/nsfrc compile twopairs --out build/demo/twopairs.nsfrc
	@echo
	@$(BIN)/nsfrc infer --images examples/figures/twopairs --program build/demo/twopairs.nsfrc
	@echo
	@$(BIN)/python -m examples.demo build/demo

# Two processes, each with one test file at a time. Kernels in Triton's interpreter need separate processes.
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadfile
test: $(VENV)/installed $(VENV)/tried-blender $(VENV)/tried-services
	@$(PYTEST) -m 'not interpreter'; rest=$$?; \
	echo "the kernels in Triton's interpreter:"; \
	TRITON_INTERPRET=1 $(PYTEST) tests/kernels/values; kernels=$$?; exit $$((rest | kernels))

thorough:
	@NSFRC_THOROUGH=1 $(MAKE) test

quick: $(VENV)/installed
	@NSFRC_QUICK=1 $(PYTEST) -m 'not interpreter and not aot and not ptx and not training and not docs'

# What the compiler and the engines are measured by: their tests, of many cases each third, without those that repeat, and
# kernels in Triton's interpreter. The CPU engine's are run without numba by tests/engines/test_plain.py.
MEASURED := tests/frontend tests/engines tests/anchored $(patsubst %,tests/test_%.py,artifact filters ground herbrand importer passes \
    plan program program_values reach) $(patsubst %,tests/cli/test_%.py,compile emit import reason) \
    tests/kernels/test_launch.py tests/kernels/test_tables.py $(patsubst %,tests/kernels/ptx/test_%.py,opcodes checks counts)
REPEATS := tests/frontend/test_fuzz.py $(patsubst %,tests/engines/test_engines.py::test_%,random_programs \
    large_programs_forward shipped) tests/engines/test_reference.py::test_finite_differences
INTERPRETED := tests/kernels/values/test_operator.py tests/kernels/values/test_anchored.py \
    tests/kernels/values/test_shipped.py::test_in_the_tiles_of_a_card \
    tests/kernels/values/test_shipped.py::test_inputs_and_outputs
coverage: $(VENV)/installed
	@rm -rf build/coverage && mkdir -p build/coverage
	@TRITON_INTERPRET=1 $(BIN)/coverage run -m pytest $(INTERPRETED) > build/coverage/kernels.log 2>&1 & kernels=$$!; \
	trap 'kill $$kernels' INT TERM; \
	NSFRC_QUICK=1 $(BIN)/coverage run -m pytest $(MEASURED) $(REPEATS:%=--deselect=%); rest=$$?; \
	wait $$kernels || { cat build/coverage/kernels.log; exit 1; }; exit $$rest
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report

ptx: $(VENV)/installed
	NSFRC_THOROUGH=1 $(PYTEST) tests/kernels/ptx
	$(BIN)/python -m nsfrc.benchmarks.ptx_mutants

gpu-check: $(VENV)/installed-extras
	$(BIN)/python -m nsfrc.benchmarks.gpu_check

kernels: $(VENV)/installed
	$(BIN)/python -m nsfrc.engines.cpu.lowering

bench: $(VENV)/installed-extras
	$(BIN)/nsfrc bench --out benchmarks/results
	$(BIN)/python -m nsfrc.benchmarks.readme
	$(BIN)/python -m nsfrc.benchmarks.roofline

fuzz: $(VENV)/installed
	$(BIN)/python -m nsfrc.benchmarks.fuzz --count 100000

lint: $(VENV)/installed-extras
	$(BIN)/ruff check .
	.ci/types $(BIN)/mypy
	$(BIN)/nsfrc format --check programs/*/*.pl

hooks: $(VENV)/installed-extras
	$(BIN)/pre-commit install

wheel: $(VENV)/installed
	@.ci/wheel build $(BIN)/python dist

wheel-check: wheel
	@.ci/wheel check $(PYTHON) dist

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
