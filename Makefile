# One command each; `make` alone lists them. What a target needs is set up first and only once.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

VENV := .venv
BIN := $(VENV)/bin
# Written last, so that an interrupted set-up starts again.
STAMP := $(VENV)/.set-up
# pip options for torch alone: TORCH_OPTIONS='--index-url https://download.pytorch.org/whl/cpu' takes the CPU build.
TORCH_OPTIONS ?=
# A package that the machine can use: Python bindings where there is a GPU, nvcc where no toolkit is installed.
EXTRAS := service,worker,cpu,dev$(shell [ ! -e /dev/nvidiactl ] || echo ,gpu)$(shell \
	command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ] || echo ,nvcc)
# Any Python with what tests/gpu needs, for a GPU machine that has its own: make gpu-test GPU_PYTHON=python3
GPU_PYTHON ?=
# Tests run in two processes; `make test PYTEST_ARGS='tests/verdict -n 0'` runs some of them in one.
PYTEST_ARGS ?= -n 2
WEB := web/dist/index.html
WEB_SOURCES := $(shell find web/src web/public -type f 2>/dev/null) $(wildcard web/*.html web/*.json web/*.ts)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: demo
demo: $(STAMP) $(WEB) ## the whole path on this machine: submit the shipped kernels, judge them, show the history
	@$(BIN)/kernelgate demo

.PHONY: up
up: $(STAMP) $(WEB) ## the service with one CPU worker, until stopped
	@$(BIN)/kernelgate up

.PHONY: test
test: $(STAMP) ## everything that needs no GPU
	@scripts/system-packages
	@$(MAKE) --no-print-directory --silent web
	@$(BIN)/pytest -m "not gpu" $(PYTEST_ARGS)

.PHONY: gpu-test
gpu-test: $(if $(GPU_PYTHON),,$(STAMP)) ## verify and measure on this machine's NVIDIA GPU, and print the tables
	@$(or $(GPU_PYTHON),$(BIN)/python) scripts/gpu_test.py

.PHONY: study
study: $(STAMP) ## what the verdicts and others' rules say of recorded pairs: data, docs/measurement.md, plots
	@$(BIN)/python -c 'import matplotlib' 2>/dev/null || \
		$(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt --editable '.[study]'
	@$(BIN)/python -m scripts.study

.PHONY: lint
lint: $(STAMP) $(WEB) ## what every change must pass
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/mypy scripts/readme_tables.py
	@$(BIN)/mypy --explicit-package-bases --exclude subject/ scripts/study
	@$(BIN)/lint-imports
	@$(BIN)/deptry .
	@$(BIN)/hadolint Dockerfile
	@$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec docker-compose.yml
	@scripts/check-client
	@cd web && npm run --silent check

.PHONY: format
format: $(STAMP) $(WEB) ## rewrite the code as ruff and Biome have it
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .
	@cd web && npm run --silent format

.PHONY: web
web: $(WEB) ## build the web view, which the service serves

.PHONY: client
client: $(STAMP) $(WEB) ## write the web view's client anew, after a change to the API
	@$(BIN)/python -m service.openapi > web/openapi.json
	@cd web && npm run --silent generate

.PHONY: clean
clean: ## remove the environment, caches and local data
	rm -rf $(VENV) .kernelgate .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build web/dist web/node_modules
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): pyproject.toml constraints.txt constraints-base.txt
	@scripts/set-up $(VENV) "$(EXTRAS)" $(TORCH_OPTIONS)
	@touch $@

# Without Node the service answers and the terminal shows all the same: `demo` and `up` go on without pages.
$(WEB): $(WEB_SOURCES)
	@scripts/build-web $(if $(filter-out demo up,$(or $(MAKECMDGOALS),help)),,--if-possible)
