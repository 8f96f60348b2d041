PYTHON ?= python3
BIN := .venv/bin

.PHONY: help setup demo check test faults format docs

help:
	@echo "make demo    set up, then lint, lock, approve, run, sign, verify and report an example pair on real vLLM (CPU)"
	@echo "make test    set up, then every test but the slow faults, real vLLM included"
	@echo "make faults  set up, then every fault that can be provoked on real vLLM (CPU)"
	@echo "make check   set up, then lint, types and the fast tests"
	@echo "make setup   .venv/ with everything"
	@echo "make docs    write the generated pages of docs/ again"

setup: .venv/.ready

.venv/.ready: pyproject.toml scripts/setup.py
	$(PYTHON) scripts/setup.py

demo: setup
	$(BIN)/specrun demo

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 2 -m "not live and not thorough"

test: check
	$(BIN)/python -m pytest -n 2 -m thorough
	$(BIN)/python -m pytest -m "live and not slow"

faults: setup
	$(BIN)/python -m pytest tests/live/test_faults.py
	$(BIN)/python -m pytest -m slow tests/live/test_real_runs.py

docs: setup
	$(BIN)/python scripts/docs.py

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
