# make demo    set up, then rename a type in a real file with the bundled model
# make test    set up, then pass the tests
# make lint    formatting, style and types
# make bench   the benchmarks that run on any machine
# make fresh   clone into a temporary folder and run demo and test there
# make vsix    the VS Code extension's package, dist/specd-VERSION.vsix (needs node and npm)
# make test-vscode   its tests, in a real VS Code too (needs Chromium; the first time sets up code-server, about 2 minutes)

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
WORKERS ?= 2

VSCODE := editors/vscode
CODE_SERVER ?= .work/code-server

.PHONY: setup demo test lint bench fresh clean vsix test-vscode
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
	$(BIN)/python bench/plain.py
	$(BIN)/python bench/edits.py
	$(BIN)/python bench/drafting.py
	$(BIN)/python bench/latency.py
	$(BIN)/python bench/rewrite.py
	$(BIN)/python bench/lsp.py

fresh:
	@folder=$$(mktemp -d) && git clone --quiet . $$folder/specd && cd $$folder/specd && $(MAKE) demo && $(MAKE) test \
		&& rm -rf $$folder

$(VSCODE)/node_modules/.ready: $(VSCODE)/package.json $(VSCODE)/package-lock.json
	@command -v npm > /dev/null || { echo "the VS Code extension is built by node 20 or newer and npm: install them"; exit 1; }
	cd $(VSCODE) && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

vsix: $(VSCODE)/node_modules/.ready
	@mkdir -p dist && cp LICENSE CHANGELOG.md $(VSCODE)/
	cd $(VSCODE) && npm run --silent check && npm run --silent package -- --out ../../dist/ $(VSIX_FLAGS)

# Skipped, with the reason, where there is no Chromium or code-server cannot be set up.
test-vscode: $(READY) vsix
	cd $(VSCODE) && npm run --silent test
	@OMP_NUM_THREADS=1 PATH="$(CURDIR)/$(BIN):$$PATH" sh $(VSCODE)/test/real/run.sh $(CODE_SERVER)

clean:
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
