# One command per habit. Everything happens in .venv, which is made when it is missing or older than pyproject.toml.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
GENERATED := host/graphdock/ops plugins/std/graphdock_std plugins/data/graphdock_data plugins/cluster/graphdock_cluster
# packages of examples/ that keep what is generated for them
EXAMPLES := $(patsubst %/_gen/,%,$(wildcard examples/plugins/*/src/*/_gen/))
JOBS ?= 2
# hundreds of tests start a Python of their own, which would compile all that it imports anew if the shell forbade to keep it
export PYTHONDONTWRITEBYTECODE :=
# packages with a manifest, which ends in what their code registers
ROOMS := $(patsubst %/graphdock-plugin.toml,%,$(wildcard opgen/*/graphdock-plugin.toml plugins/*/*/graphdock-plugin.toml))
# distributions of their own, which the tests need and the demo does not
PLUGINS := plugins/cuda plugins/llvm plugins/onednn plugins/ray plugins/triton
# tests that run hardly a step in pytest's own process, so that its debug mode says nothing about them
NO_STEPS := opgen commands docs gallery typing examples benchmarks cli conformance completeness config opdef checkpoint oracle plugin \
  native notebooks seeds tensorflow events tf1 graph

.DEFAULT_GOAL := help
.PHONY: help env demo test test-debug test-exhaustive check types lint format bench bench-gpu docs wheelhouse generate clean

help: ## List the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

env: $(VENV)/.stamp-dev

$(VENV)/.stamp-run: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[examples]'
	touch $@

$(VENV)/.stamp-dev: pyproject.toml $(PLUGINS:%=%/pyproject.toml)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[examples,dev]' $(PLUGINS:%=-e %)
	touch $@ $(VENV)/.stamp-run

$(VENV)/.stamp-docs: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	touch $@

demo: $(VENV)/.stamp-run ## Install, then train two networks on handwritten digits
	$(BIN)/graphdock demo $(ARGS)

test: env wheelhouse ## Run the test suite, once as it is and once in debug mode
	$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal -m "not exhaustive"
	GRAPHDOCK_DEBUG=1 $(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal -m "not (slow or exhaustive or plain or modes or oracle)" tests $(NO_STEPS:%=--ignore=tests/%)

test-exhaustive: env ## Every fault, race, removed wait and pair of sample and dtype, of which `test` runs some
	$(BIN)/python -m pytest -q -n $(JOBS) -m exhaustive
	GRAPHDOCK_DEBUG=1 $(BIN)/python -m pytest -q -n $(JOBS) -m "exhaustive and not (slow or plain or modes or oracle)" tests $(NO_STEPS:%=--ignore=tests/%)

check: env ## Format, lint, types, import layers, budgets of lines, generated-code drift
	$(MAKE) --no-print-directory --jobs 2 types lint

types: env
	$(BIN)/mypy

lint: env
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/python scripts/budget.py
	$(BIN)/python -m graphdock_opgen check $(GENERATED) $(EXAMPLES)
	$(BIN)/python scripts/left_out.py --check

format: env ## Rewrite the sources in the house style
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

generate: env ## Run the op generator over the specs, renew manifests, the README's table and that of what a wheel may lack
	$(BIN)/python -m graphdock_opgen generate $(GENERATED) $(EXAMPLES)
	for room in $(ROOMS); do $(BIN)/python -m graphdock_opgen manifest $$room || exit 1; done
	$(BIN)/python scripts/readme.py
	$(BIN)/python scripts/left_out.py

wheelhouse: env ## Wheels for the tests that install packages without an index
	$(BIN)/python scripts/wheelhouse.py

docs: $(VENV)/.stamp-docs ## Build a site of all pages and the op reference into build/site
	$(BIN)/python scripts/links.py
	rm -rf build/reference
	$(BIN)/python -m graphdock_opgen pages --out build/reference $(GENERATED)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "build/site: python3 -m http.server --directory build/site"

bench: env ## Run every benchmark beside its peers (installs them on first use)
	$(BIN)/python -m benchmarks.setup
	$(BIN)/python -m benchmarks

bench-gpu: env ## Kernels and training steps on a GPU beside PyTorch and JAX (where they are installed)
	$(BIN)/python -m benchmarks.gpu

clean: ## Remove what the commands above made
	rm -rf $(VENV) build .wheelhouse .bench graphdock-demo .pytest_cache .mypy_cache .ruff_cache
