# SPDX-License-Identifier: Apache-2.0
# All that a fresh machine needs: Python 3.10 to 3.14 with its headers, make, a C and a C++ compiler.

PYTHON ?= python3
PYTEST_ARGS ?=
BENCH_ARGS ?=
BIN := .venv/bin

# .venv brings its own ROS 2, and one that is sourced in the calling shell must not mix with it.
unexport PYTHONPATH PYTHONHOME LD_LIBRARY_PATH AMENT_PREFIX_PATH CMAKE_PREFIX_PATH COLCON_PREFIX_PATH
unexport RMW_IMPLEMENTATION _ROS_WHEELS_BOOTSTRAP_COMPLETE

.PHONY: help build demo test soak bench lint clean
.DEFAULT_GOAL := help

help:  ## list the commands
	@sed -n 's/^\([a-z]*\):.*## /make \1	/p' $(MAKEFILE_LIST) | expand -t 14

build:  ## set up .venv: ROS 2, libraries, and this project, built and installed
	@$(PYTHON) scripts/bootstrap.py

demo: build  ## run the node on the paper's robot and write demo/
	@$(BIN)/eom_dynamics demo

# The pytest command, not python -m pytest, which would put this folder first on the path: its
# eom_dynamics lacks the generated msg and srv, which only the installed package has.
test: lint  ## lint, then run all tests (some of them: make test PYTEST_ARGS="-k robot")
	@$(BIN)/pytest $(PYTEST_ARGS)

soak: build  ## stream to the node at 1 kHz for 30 s: nothing may be lost, and nothing grow
	@$(BIN)/pytest -m soak $(PYTEST_ARGS)

# One thread of linear algebra: its own threads would run beside what is timed.
bench:  ## time everything beside its peers, and write the figures to docs/ (a short look: BENCH_ARGS=--quick)
	@$(PYTHON) scripts/bootstrap.py --bench
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python bench $(BENCH_ARGS)

lint: build  ## check style and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

clean:  ## remove .venv and everything generated
	@rm -rf .venv build install log dist demo .hypothesis .mypy_cache .pytest_cache .ruff_cache *.egg-info
	@find . -name __pycache__ -prune -exec rm -rf {} +
