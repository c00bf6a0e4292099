# make demo   install into .venv and run the shipped programs on generated worlds
# make test   install into .venv and run the whole test suite
# make bench, make fuzz, make lint, make clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test bench fuzz lint clean

# Dependencies are installed when the files that name them change, the package itself once (editable).
$(VENV)/installed: pyproject.toml setup.py constraints.txt
	$(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) (about a minute)"
	$(PIP) setuptools
	$(PIP) --no-build-isolation -e '.[test]'
	@touch $@

$(VENV)/installed-extras: $(VENV)/installed
	$(PIP) --no-build-isolation -e '.[test,bench,lint]'
	@touch $@

demo: $(VENV)/installed
	@$(BIN)/nsfrc compile twopairs --out build/twopairs.nsfrc
	@echo
	@$(BIN)/python -m examples.demo

test: $(VENV)/installed
	$(BIN)/python -m pytest

bench: $(VENV)/installed-extras
	$(BIN)/python -m benchmarks.reasoning

fuzz: $(VENV)/installed
	$(BIN)/python -m benchmarks.fuzz --count 100000

lint: $(VENV)/installed-extras
	$(BIN)/ruff check .
	$(BIN)/mypy

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
