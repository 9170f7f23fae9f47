# Commands for users and developers: `make` lists them.
.DEFAULT_GOAL := help
SHELL := /bin/bash

# PYTHON=python3.13 make test: each Python version has its own environment.
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
demo: $(STAMP) ## Run the same app on a real Kafka with Spark and with the local engine
	@$(BIN)/penstock demo

.PHONY: test
test: $(STAMP) ## Run every check and every test, on a real Kafka and a real Spark
	@$(SUITE) --beside "$(MAKE) --no-print-directory lint types layers warm-up" tests/unit tests/integration

.PHONY: check
check: $(STAMP) ## Run lint, types, layers and the unit tests
	@$(SUITE) --beside "$(MAKE) --no-print-directory lint types layers" tests/unit

.PHONY: lint
lint: $(STAMP) ## Check the code style
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

.PHONY: types
types: $(STAMP) ## Check the types
	@$(BIN)/mypy

.PHONY: layers
layers: $(STAMP) ## Check which layer imports which (DESIGN.md)
	@$(BIN)/lint-imports

.PHONY: warm-up
warm-up: $(STAMP) ## Download the jars of the tests and prepare fast starts of Kafka and Spark; part of `make test`
	@PYTHONPATH=tests $(BIN)/python -m suite.warm_up

.PHONY: unit
unit: $(STAMP) ## Run the unit tests, which need no Kafka and no Spark
	@$(SUITE) tests/unit

.PHONY: docs-check
docs-check: $(STAMP) ## Run the commands of README.md and docs/*.md with the installed wheel on Python 3.12; page=README.md for one page
	@scripts/docs-check $(BIN)/pytest $(page)

.PHONY: docs
docs: $(STAMP) ## Build the documentation site into build/site, without a network
	@PYTHONPATH=scripts $(BIN)/python -m docs_site build/site

.PHONY: screenshots
screenshots: $(STAMP) ## Take the pictures of the dashboard again: docs/images/dashboard; pages="app group" for some
	@PYTHONPATH=tests:scripts $(BIN)/python -m screenshots $(pages)

.PHONY: option-tables
option-tables: $(STAMP) ## Write the tables of handler options into docs/*.md
	@$(BIN)/python scripts/option-tables

.PHONY: wheel
wheel: $(STAMP) ## Build the wheel into dist/
	@$(BIN)/python -m hatchling build --target wheel

.PHONY: release
release: $(STAMP) ## Build wheel and sdist, check them, and install them on Python 3.11 to 3.13; extras=no for a short form
	@$(BIN)/python scripts/release $(if $(filter no,$(extras)),--no-extras)

.PHONY: bench
bench: $(STAMP) ## Compare the local engine with bare client loops
	@$(BIN)/python benchmarks/local_engine.py

.PHONY: bench-peers
bench-peers: $(STAMP) ## Compare with Parallel Consumer, Quix Streams, FastStream and a bare loop
	@$(BIN)/python benchmarks/peers.py

.PHONY: bench-pipeline
bench-pipeline: $(STAMP) ## Compare a pipeline from Kafka to Kafka with plain Spark
	@$(BIN)/python benchmarks/spark_pipeline.py

.PHONY: test-spark-versions
test-spark-versions: $(STAMP) ## Run one app on the oldest and newest Spark, and through a Spark Connect server (downloads 430 MB)
	@PYTHONPATH=tests $(BIN)/python -m spark_versions .spark-versions

.PHONY: bench-spark
bench-spark: $(STAMP) ## Compare the Spark engine with Spark programs written by hand
	@$(BIN)/python benchmarks/spark_engine.py

.PHONY: bench-guarantees
bench-guarantees: $(STAMP) ## Measure the cost of exactly-once, and a share group on one hot partition
	@$(BIN)/python benchmarks/guarantees.py

.PHONY: bench-latency
bench-latency: $(STAMP) ## Measure the time from produce to handler at 1,000 records/s, with each delivery
	@$(BIN)/python benchmarks/latency.py

.PHONY: bench-idle
bench-idle: $(STAMP) ## Measure the processor time for each record at 1,000 records/s, and without records
	@$(BIN)/python benchmarks/idle_cost.py

.PHONY: bench-assignors
bench-assignors: $(STAMP) ## Compare assignors with Kafka's, up to 2,000 members and a million partitions
	@$(BIN)/python benchmarks/assignors.py

.PHONY: bench-groups
bench-groups: $(STAMP) ## Measure how long it takes to list ten thousand groups, and to compute their lag
	@$(BIN)/python benchmarks/many_groups.py

.PHONY: memory
memory: $(STAMP) ## Measure the memory with a backlog of five million records and a slow handler
	@$(BIN)/python benchmarks/memory.py

.PHONY: chaos
chaos: $(STAMP) ## Kill and freeze three members for a minute and check every guarantee; seed=N repeats a run
	@PYTHONPATH=tests $(BIN)/python -m chaos $(if $(seed),--seed $(seed)) $(if $(seconds),--seconds $(seconds)) \
	  $(if $(records),--records $(records)) $(if $(members),--members $(members)) \
	  $(if $(strategy),--strategy $(strategy)) $(if $(json),--json)

.PHONY: chaos-spark
chaos-spark: $(STAMP) ## Kill processes of a real Spark cluster while it handles 200,000 records and count each output; seed=N repeats a run, delivery=at-least-once
	@PYTHONPATH=tests $(BIN)/python -m chaos_spark $(if $(seed),--seed $(seed)) $(if $(records),--records $(records)) \
	  $(if $(delivery),--delivery $(delivery)) \
	  $(if $(seconds),--seconds $(seconds)) $(if $(json),--json)

.PHONY: chaos-once
chaos-once: $(STAMP) ## Check exactly-once into a topic and PostgreSQL, and a share group, with 100,000 records under faults; seed=N repeats a run
	@PYTHONPATH=tests $(BIN)/python -m chaos_once $(if $(seed),--seed $(seed)) $(if $(records),--records $(records)) \
	  $(if $(sink),--sink $(sink)) $(if $(seconds),--seconds $(seconds)) $(foreach kind,$(member),--member $(kind)) \
	  $(if $(json),--json)

.PHONY: fuzz-assignors
fuzz-assignors: $(STAMP) ## Compare each assignor with Kafka's on 100,000 random groups; cases=N seed=N
	@PYTHONPATH=tests $(BIN)/python -m assignors $(if $(cases),--cases $(cases)) $(if $(seed),--seed $(seed)) \
	  $(if $(json),--json)

.PHONY: fuzz-decoders
fuzz-decoders: $(STAMP) ## Give each decoder 100,000 random and damaged values; count=N seed=N
	@PYTHONPATH=tests $(BIN)/python -m fuzzing $(if $(count),--count $(count)) $(if $(seed),--seed $(seed))

.PHONY: outage
outage: $(STAMP) ## Stop the schema registry for 20 seconds while apps run on both engines; seconds=N
	@PENSTOCK_TEST_OUTAGE=$(or $(seconds),20) $(BIN)/pytest tests/integration -k "registry and away"

.PHONY: bench-decoding
bench-decoding: $(STAMP) ## Compare each decoder with its bare library
	@$(BIN)/python benchmarks/decoding.py

.PHONY: format
format: $(STAMP) ## Format the code and apply automatic fixes
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

.PHONY: lock
lock: ## Update requirements/dev.txt from pyproject.toml (needs uv)
	@uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-header --no-annotate \
	  --output-file requirements/dev.txt >/dev/null

.PHONY: install
install: $(STAMP) ## Create the environment in .venv, and nothing else

$(STAMP): requirements/dev.txt pyproject.toml scripts/install
	@scripts/install $(VENV)
	@touch $@

.PHONY: clean
clean: ## Remove the environment, build results and caches
	@rm -rf .venv .venv-* .release build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
