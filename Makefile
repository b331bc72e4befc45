# SPDX-License-Identifier: Apache-2.0
# A fresh machine needs Python 3.10 to 3.14 with its headers, make, and a C and a C++ compiler.

PYTHON ?= python3
EXTRAS ?= demo retime replay report xacro
PYTEST_ARGS ?=
BENCH_ARGS ?=
SECONDS ?=
BIN := .venv/bin
SETUP := $(PYTHON) scripts/bootstrap.py
# Files go to the workers in the order in which the tests are collected: conftest.py puts the longest first.
PYTEST := $(BIN)/pytest -n auto --dist loadfile --no-loadscope-reorder

# .venv brings its own ROS 2, which must not mix with one that is sourced in the calling shell.
unexport PYTHONPATH PYTHONHOME LD_LIBRARY_PATH AMENT_PREFIX_PATH CMAKE_PREFIX_PATH COLCON_PREFIX_PATH
unexport RMW_IMPLEMENTATION _ROS_WHEELS_BOOTSTRAP_COMPLETE
# Installation leaves bytecode to the first import: without it, each of hundreds of processes compiles all modules anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help build demo check test lint bytecode docs soak fuzz bench setup-tests clean
.DEFAULT_GOAL := help

help:  ## list the commands
	@sed -n 's/^\([a-z]*\):.*## /make \1	/p' $(MAKEFILE_LIST) | expand -t 14

build:  ## set up .venv for every command (more: make build EXTRAS="casadi cluster"; see setup.cfg)
	@$(SETUP) $(EXTRAS)

demo:  ## run the node on the paper's robot and write demo/
	@$(SETUP)
	@$(BIN)/eom_dynamics demo --force

check:  ## lint, types, and quick tests and those of what has changed, without ROS processes (at first: all without)
	@$(MAKE) --no-print-directory -j2 lint bytecode
	@$(PYTEST) -m "quick and not ros and not soak and not fuzz" $(PYTEST_ARGS)

test:  ## lint, types, and all tests (some of them: make test PYTEST_ARGS="-k robot")
	@$(MAKE) --no-print-directory -j2 lint bytecode
	@$(PYTEST) $(PYTEST_ARGS)

lint: setup-tests  ## style, types and language
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/python scripts/prose.py eom_dynamics msg srv docs README.md CHANGELOG.rst test bench examples scripts

# Compiles tests and libraries that are new, while mypy uses another core: otherwise, each worker does so at its start.
bytecode: .pytest_cache/bytecode

new_tests = $(foreach file,$?,$(if $(filter test_%.py,$(notdir $(file))),$(file)))

.pytest_cache/bytecode: $(shell find eom_dynamics examples test -name '*.py') | setup-tests
	@$(BIN)/python -m compileall -q eom_dynamics examples
	@$(if $(new_tests),$(BIN)/pytest --collect-only -qq $(new_tests) >/dev/null 2>&1 || true)
	@mkdir -p $(@D) && touch $@

docs:  ## build the documentation site in build/site
	@$(SETUP) docs
	@$(BIN)/python -m sphinx --fail-on-warning --keep-going --nitpicky --quiet --jobs auto -d build/doctrees docs build/site

soak: setup-tests  ## stream for 4 x 10 minutes, inject faults, and write docs/measurements.md (shorter: make soak SECONDS=20)
	@mkdir -p build
	@EOM_DYNAMICS_CFLAGS= SOAK_SECONDS=$(or $(SECONDS),600) $(BIN)/pytest -m soak --junitxml=build/soak.xml $(PYTEST_ARGS); status=$$?; \
	$(BIN)/python bench --only reliability --reports build/soak.xml && exit $$status

fuzz:  ## feed loaders, messages, bags and requests with mutated inputs, for a minute (longer: make fuzz SECONDS=600)
	@$(SETUP) dev fuzz
	@EOM_DYNAMICS_CFLAGS= FUZZ_SECONDS=$(or $(SECONDS),60) $(BIN)/pytest -m fuzz $(PYTEST_ARGS)

# A single linear algebra thread: more would compete with what is timed.
bench:  ## compare run times with those of other libraries and write them to docs/ (quickly: BENCH_ARGS=--quick)
	@$(SETUP) bench
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python bench $(BENCH_ARGS)

setup-tests:
	@$(SETUP) dev

clean:  ## remove .venv and everything generated
	@rm -rf .venv build install log dist demo docs/reference .hypothesis .mypy_cache .pytest_cache .ruff_cache *.egg-info
	@find . -name __pycache__ -prune -exec rm -rf {} +
