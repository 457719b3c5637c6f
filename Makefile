# Everything here sets up what it needs by itself; `make help` lists it.
#
# Give another interpreter with PYTHON=/path/to/python3, more test processes with WORKERS=4.

SHELL := /bin/bash
VENV  := .venv
BIN   := $(VENV)/bin
# Two processes a core: many tests wait for a server, a drain or a link, not for the processor.
WORKERS ?= 4

.PHONY: help setup demo test fuzz lint docs test-real nights wheel packages clean

help:
	@echo 'make demo       the main job on the embedded box: no GPU, no root (first run: a minute)'
	@echo 'make setup      .venv with everything for use and development'
	@echo 'make test       the whole suite, with the Debian packages it needs where it may install'
	@echo 'make fuzz       what hypothesis tests, with new random examples each time (ROUNDS=5)'
	@echo 'make lint       ruff, mypy, the floors'
	@echo 'make docs       docs/_build/html'
	@echo 'make test-real  the main job against a real vLLM (4 GB, some minutes)'
	@echo 'make nights     sixty nights of the nightly checks on the embedded box (some minutes)'
	@echo 'make wheel      dist/eagleops-*.whl'
	@echo 'make clean      removes what the above made, except .real/'

# The stamps make the second call quick. Using eagleops needs less than developing it.
$(VENV)/installed-use: setup.cfg .ci/venv
	@.ci/venv use

$(VENV)/installed-dev: setup.cfg .ci/venv
	@.ci/venv dev

setup: $(VENV)/installed-dev
	@echo 'ready: source .venv/bin/activate, or call .venv/bin/eagleops and .venv/bin/invoke'

demo: $(VENV)/installed-use
	@$(BIN)/eagleops demo

packages:
	@.ci/packages tests/parts/debian-packages.txt

lint: $(VENV)/installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/installed-dev
	$(BIN)/sphinx-build -q -W --keep-going -n -b html docs docs/_build/html
	@echo 'docs/_build/html/index.html'

wheel: $(VENV)/installed-dev
	@rm -rf build dist && mkdir build
	@$(BIN)/python -m build --wheel --outdir dist . > build/log 2>&1 || (cat build/log; false)
	@ls dist/eagleops-*.whl

# The suite runs in a venv that holds the wheel, and borrows all else from .venv: so what setup.cfg
# forgot to pack is missing, and the checkout cannot stand in for it (-I keeps this folder off the
# path). What measures time runs after the rest, alone; a measurement that something else on the
# machine disturbed is taken again, twice at most, and the summary counts it.
TESTED := build/tested
PYTEST := $(TESTED)/bin/python -I -m pytest

$(TESTED): wheel
	@$(BIN)/python -m venv --clear --without-pip $(TESTED)
	@$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
	    > $$(echo $(TESTED)/lib/python3*/site-packages)/borrowed.pth
	@$(BIN)/python -m pip --python $(TESTED)/bin/python install -q --no-deps dist/eagleops-*.whl

test: packages lint docs $(TESTED)
	$(PYTEST) -n $(WORKERS) --dist worksteal -m 'not (alone or real_engine or sixty_nights)'
	$(PYTEST) --reruns 2 -m 'alone and not (real_engine or sixty_nights)'

ROUNDS ?= 5
fuzz: packages $(TESTED)
	for round in $$(seq $(ROUNDS)); do \
	    $(PYTEST) -n $(WORKERS) --dist worksteal -m 'hypothesis and not alone' \
	        --hypothesis-profile=fuzz || exit; \
	done

test-real: packages $(VENV)/installed-dev
	$(BIN)/python tests/real/install.py .real
	$(BIN)/pytest -m real_engine tests/real
	$(BIN)/python tests/real/page.py .real/sessions docs/reference/real-engine.md

nights: $(VENV)/installed-dev
	@mkdir -p build/nights
	RECORD_NIGHTS=$(CURDIR)/build/nights $(BIN)/pytest -m sixty_nights tests/sixty_nights
	$(BIN)/python tests/sixty_nights/page.py build/nights/60.json docs/reference/sixty-nights.md

clean:
	rm -rf $(VENV) build dist docs/_build .mypy_cache .pytest_cache .ruff_cache .hypothesis *.egg-info
