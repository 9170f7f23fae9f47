# Everything a developer or a stranger needs: `make` lists it.
.DEFAULT_GOAL := help
SHELL := /bin/bash

# PYTHON=python3.13 make test: another Python has an environment of its own.
VENV := $(if $(PYTHON),.venv-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])'),.venv)
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Runs tests in several processes at once; see CONTRIBUTING.md.
SUITE := PYTHONPATH=tests $(BIN)/python -m suite
# Container images often set this. Each of the hundreds of Python processes of a test run would then compile every module
# that it imports: `penstock run --help` takes 2.2 instead of 1.0 seconds of processor time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## List these commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

.PHONY: demo
demo: $(STAMP) ## A real Kafka and a real Spark pipeline, end to end
	@$(BIN)/penstock demo

.PHONY: test
test: $(STAMP) ## Every check and every test, on a real Kafka and a real Spark
	@$(SUITE) --beside "$(MAKE) --no-print-directory lint types layers warm-up" tests/unit tests/integration

.PHONY: check
check: $(STAMP) ## Lint, types, layers and the pure tests; under a minute
	@$(SUITE) --beside "$(MAKE) --no-print-directory lint types layers" tests/unit

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

.PHONY: warm-up
warm-up: $(STAMP) ## Fetch the jars of the tests and prepare quick starts of Kafka and Spark; part of `make test`
	@PYTHONPATH=tests $(BIN)/python -m suite.warm_up

.PHONY: unit
unit: $(STAMP) ## The fast tests: no Kafka, no Spark
	@$(SUITE) tests/unit

.PHONY: docs-check
docs-check: $(STAMP) ## Follow README.md and docs/*.md where pip installed the wheel on Python 3.12; page=README.md for one
	@scripts/docs-check $(BIN)/pytest $(page)

.PHONY: option-tables
option-tables: $(STAMP) ## Write the tables of handler options into docs/*.md
	@$(BIN)/python scripts/option-tables

.PHONY: wheel
wheel: $(STAMP) ## Build the wheel into dist/
	@$(BIN)/python -m hatchling build --target wheel

.PHONY: bench
bench: $(STAMP) ## The local engine against bare client loops, in one run
	@$(BIN)/python benchmarks/local_engine.py

.PHONY: bench-peers
bench-peers: $(STAMP) ## Against Parallel Consumer, Quix Streams, FastStream and a bare loop, in one run
	@$(BIN)/python benchmarks/peers.py

.PHONY: bench-pipeline
bench-pipeline: $(STAMP) ## A pipeline from Kafka to Kafka against plain Spark, in one run
	@$(BIN)/python benchmarks/spark_pipeline.py

.PHONY: bench-spark
bench-spark: $(STAMP) ## The Spark engine against Spark programs written by hand, in one run
	@$(BIN)/python benchmarks/spark_engine.py

.PHONY: bench-guarantees
bench-guarantees: $(STAMP) ## What exactly-once costs, and a share group on one hot partition, in one run
	@$(BIN)/python benchmarks/guarantees.py

.PHONY: bench-latency
bench-latency: $(STAMP) ## From produce to the start of a handler at 1,000 records/s, with each delivery, in one run
	@$(BIN)/python benchmarks/latency.py

.PHONY: bench-assignors
bench-assignors: $(STAMP) ## Assignors against Kafka's own, up to 2,000 members and a million partitions
	@$(BIN)/python benchmarks/assignors.py

.PHONY: bench-groups
bench-groups: $(STAMP) ## How long it takes to list ten thousand groups, and to see their lag
	@$(BIN)/python benchmarks/many_groups.py

.PHONY: memory
memory: $(STAMP) ## Memory with a backlog of five million records and a slow handler
	@$(BIN)/python benchmarks/memory.py

.PHONY: chaos
chaos: $(STAMP) ## A minute of kills and freezes on three members, and a check of every promise; seed=N repeats one
	@PYTHONPATH=tests $(BIN)/python -m chaos $(if $(seed),--seed $(seed)) $(if $(seconds),--seconds $(seconds)) \
	  $(if $(records),--records $(records)) $(if $(members),--members $(members)) \
	  $(if $(strategy),--strategy $(strategy)) $(if $(json),--json)

.PHONY: chaos-spark
chaos-spark: $(STAMP) ## 200,000 records through a real Spark cluster under kill -9, each output counted; seed=N repeats one
	@PYTHONPATH=tests $(BIN)/python -m chaos_spark $(if $(seed),--seed $(seed)) $(if $(records),--records $(records)) \
	  $(if $(seconds),--seconds $(seconds)) $(if $(json),--json)

.PHONY: chaos-once
chaos-once: $(STAMP) ## 100,000 records once into a topic and into PostgreSQL, and through a queue, under every fault; seed=N
	@PYTHONPATH=tests $(BIN)/python -m chaos_once $(if $(seed),--seed $(seed)) $(if $(records),--records $(records)) \
	  $(if $(sink),--sink $(sink)) $(if $(seconds),--seconds $(seconds)) $(foreach kind,$(member),--member $(kind)) \
	  $(if $(json),--json)

.PHONY: fuzz-assignors
fuzz-assignors: $(STAMP) ## Our assignors against Kafka's own on 100,000 random groups each; cases=N seed=N
	@PYTHONPATH=tests $(BIN)/python -m assignors $(if $(cases),--cases $(cases)) $(if $(seed),--seed $(seed)) \
	  $(if $(json),--json)

.PHONY: fuzz-decoders
fuzz-decoders: $(STAMP) ## 100,000 random and damaged values for every decoder, an outcome for each; count=N seed=N
	@PYTHONPATH=tests $(BIN)/python -m fuzzing $(if $(count),--count $(count)) $(if $(seed),--seed $(seed))

.PHONY: outage
outage: $(STAMP) ## Apps on both engines while the schema registry is killed for 20 seconds; seconds=N
	@PENSTOCK_TEST_OUTAGE=$(or $(seconds),20) $(BIN)/pytest tests/integration -k "registry and away"

.PHONY: bench-decoding
bench-decoding: $(STAMP) ## Each decoder against its bare library in a loop
	@$(BIN)/python benchmarks/decoding.py

.PHONY: format
format: $(STAMP) ## Write the code style into the files
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

.PHONY: lock
lock: ## Write requirements/dev.txt anew from pyproject.toml (needs uv)
	@uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-header --no-annotate \
	  --output-file requirements/dev.txt >/dev/null

.PHONY: install
install: $(STAMP) ## Only create the environment in .venv

$(STAMP): requirements/dev.txt pyproject.toml scripts/install
	@scripts/install $(VENV)
	@touch $@

.PHONY: clean
clean: ## Remove the environment and what tools left behind
	@rm -rf .venv .venv-* build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
