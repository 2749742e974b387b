# Everything a newcomer types. Needs Python >= 3.11, make and a package index; a C compiler is used when there is one.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READERS := .venv-readers
BUILT := pyproject.toml setup.py src/harvestman/pages/_simhash.c src/harvestman/pages/_tags.c src/harvestman/embedded/_near.c src/harvestman/sim/_member.c
ifndef CONTACT
CONTACT := $(shell git config user.email 2>/dev/null)
GUESSED := $(CONTACT)
endif
ARGS ?=
# Many tests wait for a polite crawl: three at a time keep two cores busy.
SPREAD ?= -n 3 --dist worksteal

.PHONY: setup crawl test quick readers check format bench docs lock clean

setup: $(VENV)/.ready

$(VENV)/.ready: requirements.lock $(BUILT)
	@test -d $(VENV) || { echo "making $(VENV) ..."; $(PYTHON) -m venv $(VENV); }
	@echo "installing what Harvestman stands on ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.ready-dev: $(VENV)/.ready requirements-dev.lock
	@echo "installing what the tests stand on ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.lock
	@touch $@

$(VENV)/.ready-bench: $(VENV)/.ready-dev requirements-bench.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-bench.lock
	@touch $@

# `make crawl` crawls the built-in simulated web; `make crawl URL=https://example.org CONTACT=you@example.org` a real one.
crawl: $(VENV)/.ready
ifdef URL
	$(if $(GUESSED),@echo "contact: $(GUESSED) (from git config; CONTACT=... changes it)")
	@$(BIN)/harvestman crawl $(URL) $(if $(CONTACT),--contact $(CONTACT)) $(ARGS)
else
	@$(BIN)/harvestman crawl --sim $(ARGS)
endif

test: $(VENV)/.ready-dev
	$(BIN)/pytest $(SPREAD) $(ARGS)

# Tests are rewritten when they are imported: what was rewritten once is kept, whatever the environment says.
test quick: export PYTHONDONTWRITEBYTECODE :=

quick: $(VENV)/.ready-dev
	$(BIN)/pytest $(SPREAD) -m "not slow" $(ARGS)

# Our formats read by pywb and by Spark (which needs Java 17). They have an environment of their own: they are large, and
# pywb wants old versions of what others need new ones of.
readers: $(READERS)/.ready
	$(READERS)/bin/pytest -m readers tests/readers $(ARGS)

$(READERS)/.ready: requirements-readers.lock $(BUILT)
	@test -d $(READERS) || { echo "making $(READERS) ..."; $(PYTHON) -m venv $(READERS); }
	@echo "installing pywb and Spark ..."
	@$(READERS)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile -r requirements-readers.lock
	@$(READERS)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

check: $(VENV)/.ready-bench
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.ready-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.ready-bench
	$(BIN)/python bench/crawl_cpu.py --profile
	$(BIN)/python bench/versus_scrapy.py

# The documentation is tested: every verb, option, setting, exit code and path it names exists, and the reverse.
docs: $(VENV)/.ready-dev
	$(BIN)/pytest tests/docs tests/cli

# After changing the dependencies in pyproject.toml.
lock:
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header pyproject.toml requirements.build -o requirements.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --extra dev -c requirements.lock pyproject.toml -o requirements-dev.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --extra bench -c requirements.lock pyproject.toml -o requirements-bench.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --extra readers -c requirements.lock pyproject.toml requirements.build -o requirements-readers.lock

clean:
	rm -rf $(VENV) $(READERS) build dist .mypy_cache .ruff_cache .pytest_cache src/*.egg-info
