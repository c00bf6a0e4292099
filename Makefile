# make demo   install into .venv, then answer for the figures and scenes in examples/, with reports
# make test   install into .venv and run the whole test suite
# make gpu-check   on a machine with CUDA: all value tests on the card, then its times
# make bench, make fuzz, make lint, make clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test gpu-check bench fuzz lint clean

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

# Blender is large and there only for the tests that render; they are skipped where it cannot be had.
$(VENV)/tried-blender: $(VENV)/installed
	@$(PIP) --no-build-isolation -e '.[test,clevr]' || echo "without Blender: tests that render are skipped"
	@touch $@

demo: $(VENV)/installed
	@$(BIN)/nsfrc compile twopairs --out build/demo/twopairs.nsfrc
	@echo
	@$(BIN)/nsfrc infer --images examples/figures/twopairs --program build/demo/twopairs.nsfrc
	@echo
	@$(BIN)/python -m examples.demo build/demo

# Kernels are tested in Triton's interpreter, which needs a process of its own, and the rest beside it; some of that goes
# with the former, so that both take about as long.
BESIDE := tests/kernels/test_source.py tests/perception tests/valuation tests/swi
test: $(VENV)/installed $(VENV)/tried-blender
	@mkdir -p build
	@(TRITON_INTERPRET=1 $(BIN)/python -m pytest tests/kernels/values; values=$$?; \
	$(BIN)/python -m pytest $(BESIDE); exit $$((values | $$?))) > build/values.log 2>&1 & beside=$$!; \
	trap 'kill $$beside' INT TERM; \
	$(BIN)/python -m pytest $(BESIDE:%=--ignore=%); rest=$$?; \
	echo "the kernels in Triton's interpreter, and what ran beside them:"; wait $$beside; kernels=$$?; \
	cat build/values.log; exit $$((rest | kernels))

gpu-check: $(VENV)/installed-extras
	$(BIN)/python -m nsfrc.benchmarks.gpu_check

bench: $(VENV)/installed-extras
	$(BIN)/python -m nsfrc.benchmarks.accuracy
	$(BIN)/python -m nsfrc.benchmarks.end_to_end
	$(BIN)/python -m nsfrc.benchmarks.reasoning
	$(BIN)/python -m nsfrc.benchmarks.roofline

fuzz: $(VENV)/installed
	$(BIN)/python -m nsfrc.benchmarks.fuzz --count 100000

lint: $(VENV)/installed-extras
	$(BIN)/ruff check .
	$(BIN)/mypy

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
