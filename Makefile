# make demo    set up, then rename a type in a real file with the bundled model
# make test    set up, then pass the tests
# make lint    formatting, style and types
# make bench   the benchmarks that run on any machine
# make fresh   clone into a temporary folder and run demo and test there

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
WORKERS ?= 2

.PHONY: setup demo test lint bench fresh clean
.DELETE_ON_ERROR:

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "specd needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: $(READY)
	@SPECD_DEMO_MODEL="$(SPECD_DEMO_MODEL)" PATH="$(CURDIR)/$(BIN):$$PATH" bash examples/demo.sh

test: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/pytest -n $(WORKERS) --dist loadgroup

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python bench/steps.py
	$(BIN)/python bench/edits.py
	$(BIN)/python bench/latency.py
	$(BIN)/python bench/rewrite.py
	$(BIN)/python bench/lsp.py

fresh:
	@folder=$$(mktemp -d) && git clone --quiet . $$folder/specd && cd $$folder/specd && $(MAKE) demo && $(MAKE) test \
		&& rm -rf $$folder

clean:
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
