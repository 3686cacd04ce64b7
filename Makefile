# Everything starts from Python, git and make. `make help` lists the targets.
PYTHON ?= python3
UV_VERSION := 0.13.9
BIN := .venv/bin
CORPORA ?=
WORKERS ?= 2
PORT ?= 8080
CONTESTS ?=
SIZES ?=
REPEATS ?= 3
ifneq ($(CORPORA),)
export CORPORA
endif
export AIRFLOW_HOME := $(CURDIR)/.airflow

.DEFAULT_GOAL := help
.PHONY: help run up pictures corpora bench test test-all check fix lock schemas clean

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

.uv/bin/uv:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' || \
	  { echo "Assay needs Python 3.11, 3.12 or 3.13; name one with: make PYTHON=python3.11 ..." >&2; exit 2; }
	$(PYTHON) -m venv .uv
	.uv/bin/pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)

.venv/.installed: .uv/bin/uv pyproject.toml uv.lock
	.uv/bin/uv sync --frozen --all-extras --compile-bytecode --python .uv/bin/python
	$(BIN)/python -c 'import pipeline.classes.kernel, pipeline.engines.kernel, pipeline.falloff.kernel'  # compiles the kernels once
	@touch $@

build/examples/.built: .venv/.installed examples/build.py $(shell find examples/taps -type f 2>/dev/null | sed 's/ /\\ /g')
	$(BIN)/python examples/build.py build/examples
	@touch $@

run: .venv/.installed build/examples/.built  ## One night on the embedded registries, through Airflow: from pins to a report
	$(BIN)/python -m pipeline.orchestration

up: .venv/.installed build/examples/.built  ## Airflow's web interface, scheduler and DAG processor on 127.0.0.1 until Ctrl-C: make up PORT=8080
	$(BIN)/python -m pipeline.servers --port $(PORT)

pictures: run  ## The charts of docs/report.md, from a night on the embedded registries
	cp .assay/feed/$$($(BIN)/python -c 'import json; print(json.load(open(".assay/feed/latest.json"))["folder"])')/*.png docs/pictures/

corpora: .venv/.installed  ## One night on other registries: make corpora CORPORA=<folder with unpack.py>
	@test -n "$(CORPORA)" || { echo "name the folder: make corpora CORPORA=<folder>" >&2; exit 2; }
	$(BIN)/python "$(CORPORA)/unpack.py" build/corpora
	$(BIN)/assay run --taps build/corpora/taps.toml --golden "$(CORPORA)/../golden/natural.jsonl" \
	  --engines.bm25.tokenizer ascii --store build/corpora-store

bench: .venv/.installed build/examples/.built  ## Side by side with the peers: make bench CONTESTS=ranking SIZES="1000 4000" CORPORA=<folder>
	$(BIN)/python -m benchmarks $(CONTESTS) $(if $(SIZES),--sizes $(SIZES)) --repeats $(REPEATS) --uv .uv/bin/uv

test: .venv/.installed build/examples/.built  ## The tests that need nothing but this folder (at most 5 minutes)
	$(BIN)/python -m pytest -q -n $(WORKERS) -m "not slow and not airflow and not browser and not corpora"

test-all: .venv/.installed build/examples/.built  ## All tests: kills, Airflow, browser, real registries (at most 40 minutes)
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadgroup

check: .venv/.installed  ## Style, types, layers, schemas, documents, lock
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/assay schemas --check
	$(BIN)/python -m pytest -q tests/test_docs.py -k "not runs_on"
	.uv/bin/uv lock --check
	@mkdir -p build
	@.uv/bin/uv export --frozen --no-dev --all-extras --no-emit-project --no-header --quiet --output-file build/requirements.lock >/dev/null
	@cmp -s build/requirements.lock requirements.lock || { echo "requirements.lock is not what uv.lock says; run: make lock" >&2; exit 1; }

fix: .venv/.installed  ## Mend what can be mended: style, imports, schemas
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/assay schemas

lock: .uv/bin/uv  ## Resolve the dependencies again, and export them with hashes for pip and the image
	.uv/bin/uv lock
	.uv/bin/uv export --frozen --no-dev --all-extras --no-emit-project --no-header --quiet --output-file requirements.lock

clean:  ## Remove everything that was made here, the store included, but for its ledger
	@if [ -d .assay ]; then find .assay/ -mindepth 1 -maxdepth 1 ! -name 'ledger.sqlite*' -exec rm -rf {} +; fi
	@if [ -e .assay/ledger.sqlite ]; then \
	  echo "kept .assay/ledger.sqlite: what people said there cannot be made again; remove it by hand if you are sure"; \
	else rm -rf .assay; fi
	rm -rf .venv .uv .airflow build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
