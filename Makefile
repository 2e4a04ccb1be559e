# Every target sets up its own virtual environment when it is missing; nothing has to be installed by hand.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet -c constraints.txt
EVERYTHING := .[cluster,hf,grammar,atlas,lens,docs,dev]
# One thread per process: the tests and the studies already use a process per core.
export OMP_NUM_THREADS ?= 1

.PHONY: help setup setup-all tour test test-full lint format stubs bench docs clean

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

$(VENV)/core.stamp: pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing SandLab into $(VENV) (once; a minute or two)"
	@$(PIP) -e .
	@touch $@

$(VENV)/everything.stamp: pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing SandLab with all extras into $(VENV) (once; a few minutes)"
	@$(PIP) -e "$(EVERYTHING)"
	@touch $(VENV)/core.stamp $@

setup: $(VENV)/core.stamp ## the core, enough for `sandlab run`
setup-all: $(VENV)/everything.stamp ## the core and every extra

tour: $(VENV)/core.stamp ## run a quick study of most chapters, print the findings, write the report
	@$(BIN)/sandlab tour
	@echo "To go on: source $(BIN)/activate, then sandlab list studies, sandlab show dyck/theorems"

# The tests start hundreds of processes: compiled modules are kept between them.
PYTEST := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -n auto --maxprocesses 8 --dist loadfile \
	--no-loadscope-reorder

test: $(VENV)/everything.stamp ## the tests (ten to fifteen minutes on two cores)
	$(PYTEST) -m "not slow"

test-full: $(VENV)/everything.stamp ## the tests and the long statistical checks, with line coverage
	$(PYTEST) --cov --cov-report=term

stubs: $(VENV)/core.stamp ## write the public names of each room into its __init__.pyi
	$(BIN)/python scripts/front_door.py

lint: $(VENV)/everything.stamp ## ruff, mypy, and stubs that are current
	$(BIN)/python scripts/front_door.py --check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/everything.stamp ## let ruff format and mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/everything.stamp ## speed ratios against baselines run beside them
	$(BIN)/sandlab bench

docs: $(VENV)/everything.stamp ## the documentation, into site/
	$(BIN)/python -m mkdocs build --quiet
	@echo "open site/index.html"

clean: ## remove the environment and everything built
	rm -rf $(VENV) site build dist report runs
