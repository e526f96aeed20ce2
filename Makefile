# Verbs for people. Everything runs in .venv, which `make setup` makes.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
CACHE  ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/vllm-scaler
ARGS   ?=
# The oldest generator that the package supports: what it writes loads under every newer protobuf and grpcio.
PROTO_TOOLS := grpcio-tools==1.80.0 mypy-protobuf==5.1.0

.PHONY: help setup demo demo-cluster test lint bench backtest docs proto toolchain clean

help:  ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/ —/'

setup: $(VENV)/.ready  ## make .venv with everything that tests and demo need

$(VENV)/.ready: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit(f"Python 3.11 or newer is needed, this is {sys.version.split()[0]}; say PYTHON=python3.12 or so")'
	@echo 'making $(VENV), which takes a minute'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev,docs]'
	@touch $@

demo: setup  ## the whole loop on a simulated fleet; ARGS="--preset pulse --speed 20 …"
	@$(BIN)/vllm-scaler demo $(ARGS)

demo-cluster: setup  ## Kubernetes and KEDA with the scaler, a simulated fleet and traffic, until Ctrl-C or ARGS="--for 10m"; needs Go
	@$(BIN)/python -m tests.cluster.demo $(ARGS)

test: setup lint  ## every test; those that need Go or gcc say so where they are missing
	$(BIN)/pytest --numprocesses auto $(ARGS)

lint: setup  ## ruff, mypy --strict and the arrows between rooms
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: setup  ## the speed tables of benchmarks/RESULTS.md; ARGS=spike or ARGS=many measures on a control plane, needs Go
	$(BIN)/python -m benchmarks $(ARGS)

backtest: setup  ## policies and rivals on recorded and made-up traffic: the tables of docs/benchmarks.md; ARGS=--help
	@$(BIN)/python -m benchmarks.policies $(ARGS)

docs: setup  ## the site of docs/ in English and Chinese, in build/site
	$(BIN)/python -m docs.tools.reference
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo build/site/index.html

proto:  ## regenerate scaler/serving/protocol from proto/
	$(PYTHON) -m venv build/proto
	build/proto/bin/pip install --quiet --disable-pip-version-check $(PROTO_TOOLS)
	PATH="build/proto/bin:$$PATH" python -m grpc_tools.protoc -I scaler/serving/protocol=proto \
	  --python_out=. --grpc_python_out=. --mypy_out=quiet:. --mypy_grpc_out=quiet:. proto/*.proto

toolchain: setup  ## build the control plane's programs from their Go modules into the cache folder
	$(BIN)/python -m tests.cluster.toolchain $(ARGS)

clean:  ## remove .venv and caches of the checkout (the cache folder outside stays)
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache build dist *.egg-info
