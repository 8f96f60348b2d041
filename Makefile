PYTHON ?= python3
BIN := .venv/bin

.PHONY: help setup demo check test format docs

help:
	@echo "make demo    set up, then lint, lock, approve, run, sign, verify and report an example pair on real vLLM (CPU)"
	@echo "make test    set up, then every test, real vLLM included"
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
	$(BIN)/python -m pytest -n 2 -m "not live"

test: check
	$(BIN)/python -m pytest -m live

docs: setup
	$(BIN)/python scripts/docs.py

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
