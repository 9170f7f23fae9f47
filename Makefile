# Everything a developer or a stranger needs: `make` lists it.
.DEFAULT_GOAL := help
SHELL := /bin/bash

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help
help: ## List these commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

.PHONY: demo
demo: $(STAMP) ## A real Kafka and a real Spark pipeline, end to end
	@$(BIN)/penstock demo

.PHONY: test
test: check $(STAMP) ## Every test, on a real Kafka and a real Spark
	@$(BIN)/pytest tests/integration

.PHONY: check
check: lint types layers unit ## Lint, types, layers and the pure tests; under a minute

.PHONY: lint
lint: $(STAMP) ## Code style
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

.PHONY: types
types: $(STAMP) ## Strict types
	@$(BIN)/mypy

.PHONY: layers
layers: $(STAMP) ## Who may import whom (DESIGN.md)
	@$(BIN)/lint-imports

.PHONY: unit
unit: $(STAMP) ## The fast tests: no Kafka, no Spark
	@$(BIN)/pytest tests/unit

.PHONY: bench
bench: $(STAMP) ## The local engine against bare client loops, in one run
	@$(BIN)/python benchmarks/local_engine.py

.PHONY: memory
memory: $(STAMP) ## Memory with a backlog of five million records and a slow handler
	@$(BIN)/python benchmarks/memory.py

.PHONY: chaos
chaos: $(STAMP) ## A minute of kills and freezes on three members, and a check of every promise; seed=N repeats one
	@PYTHONPATH=tests $(BIN)/python -m chaos $(if $(seed),--seed $(seed)) $(if $(seconds),--seconds $(seconds)) \
	  $(if $(records),--records $(records)) $(if $(json),--json)

.PHONY: format
format: $(STAMP) ## Write the code style into the files
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

.PHONY: lock
lock: ## Write requirements/dev.txt anew from pyproject.toml (needs uv)
	@uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-header --no-annotate --constraint requirements/pins.txt \
	  --output-file requirements/dev.txt >/dev/null

.PHONY: install
install: $(STAMP) ## Only create the environment in .venv

$(STAMP): requirements/dev.txt pyproject.toml scripts/install
	@scripts/install $(VENV)
	@touch $@

.PHONY: clean
clean: ## Remove the environment and what tools left behind
	@rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
