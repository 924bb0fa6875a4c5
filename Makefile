# Twinserve: `make demo` shows it, `make test` proves it. `make help` lists the rest.
SHELL := /bin/bash
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

# The simulated pair needs root: a user with sudo is asked once, here.
SUDO := $(if $(filter 0,$(shell id -u)),,sudo -E env "PATH=$(PATH)")
PYTHON ?= python3
BIN := .venv/bin
PLAIN := ANSIBLE_NOCOLOR=1

.PHONY: help
help: ## Show the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## From this machine to a chat answer of a simulated pair (ENGINE=vllm: a real engine); again: quick, changed=0
	@$(SUDO) ENGINE="$(ENGINE)" $(PYTHON) tools/demo.py

.PHONY: test
test: dev lint unit integration real-engine ## Everything that CI runs
	@$(BIN)/python tools/closing_line.py build/unit.xml build/integration-{story,own,lab}.xml build/real-engine.xml

.PHONY: test-all
test-all: SLOW := --run-slow
test-all: test ## The same and what is slow

.venv/ready: requirements.txt constraints.txt
	@echo "== Python environment (.venv)"
	@$(PYTHON) tools/bootstrap.py requirements.txt
	@touch $@

.venv/ready-dev: requirements-dev.txt .venv/ready
	@echo "== test tools (.venv)"
	@$(PYTHON) tools/bootstrap.py requirements-dev.txt
	@$(PYTHON) tools/promtool.py
	@touch $@

.PHONY: venv
venv: .venv/ready ## Install what the playbooks need into .venv

.PHONY: dev
dev: .venv/ready-dev ## Install what the tests need into .venv

.PHONY: lint
lint: dev ## yamllint, ansible-lint (production), ruff, mypy (strict)
	@echo "== lint"
	@$(BIN)/yamllint --strict .
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/ansible-lint --offline -q
	@$(BIN)/ruff check .
	@$(BIN)/mypy

.PHONY: unit
unit: dev ## Unit and contract tests: no root, no network
	@echo "== unit and contract tests"
	@mkdir -p build
	@COVERAGE_FILE=.coverage.unit $(BIN)/coverage run -m pytest -q -m "not lab" --junitxml build/unit.xml tests/unit tests/contract tests/lab
	@COVERAGE_FILE=.coverage.unit $(BIN)/coverage report --skip-covered

.PHONY: integration
integration: dev ## Simulated pairs, the real playbooks, testinfra on the nodes; each role alone
	@echo "== integration tests in the lab, in two rows"
	@mkdir -p build
	@$(SUDO) $(BIN)/python tools/integration.py $(SLOW)

.PHONY: real-engine
real-engine: dev ## vLLM on CPUs, two ranks, deployed by the real playbooks
	@echo "== a real engine in the lab"
	@mkdir -p build
	@$(SUDO) $(BIN)/python -m pytest -q -m real_engine --junitxml build/real-engine.xml $(SLOW) tests/integration

.PHONY: molecule
molecule: dev ## Each role alone, in the lab (a part of integration)
	@echo "== each role alone (molecule)"
	@$(SUDO) tools/molecule.sh

.PHONY: test-rdma
test-rdma: dev ## The link and NFS on two virtual machines with RoCE devices and a kernel of their own; slow, not in CI
	@echo "== the link and NFS on two virtual machines with RoCE devices"
	@mkdir -p build
	@$(SUDO) $(BIN)/python -m pytest -v --junitxml build/rdma.xml tests/rdma

.PHONY: bench
bench: dev ## How fast copies and second runs are, as ratios in one run; ten minutes, not in CI
	@$(SUDO) $(BIN)/python -m bench.copy
	@$(SUDO) $(BIN)/python -m bench.look
	@$(SUDO) $(BIN)/python -m bench.serve

.PHONY: manual
manual: venv ## Write the generated parts: settings manual, README table
	@$(BIN)/python tools/settings_manual.py

.PHONY: clean
clean: ## Remove the labs, the environment and all that was built
	@echo "== removing labs, .venv and caches"
	@for hosts in .lab/*/hosts; do [ ! -d "$$hosts" ] || $(SUDO) lab/lab wipe --name "$$(basename "$${hosts%/hosts}")"; done
	@[ ! -d build/vm ] || $(SUDO) lab/rdma down
	@$(SUDO) rm -rf .lab .venv build .cache .ansible .mypy_cache .pytest_cache .ruff_cache .coverage .coverage.*
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
