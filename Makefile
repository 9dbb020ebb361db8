# Three commands do everything on a fresh machine with Python, make and a C++ compiler:
#   make demo    install and run the main job on embedded data
#   make test    install and run the linters, the type checker and the tests
#   make docs    install and build the documentation as a site, build/site/index.html
# While working: make quick, the same with fast tests of every folder, in two minutes
# The paper's experiments: make reproduce, and small versions of them: make reproduce-quick
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

WORKERS ?= 2
OLDEST ?= .venv-oldest
OLDEST_TESTS ?= tests

.PHONY: demo test test-oldest wheels quick lint docs reproduce reproduce-quick clean

demo: $(STAMP)
	$(BIN)/retrodict demo

test: lint
	$(BIN)/pytest -n 2 --dist loadfile

# Fast tests with the oldest dependencies that are promised; some of them: make test-oldest OLDEST_TESTS=tests/events
# (httpx is for the test client of the oldest FastAPI)
test-oldest:
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet -c constraints.txt pip
	$(OLDEST)/bin/python -m pip install --quiet -c constraints-oldest.txt --build-constraint constraints.txt \
		'.[polars,arviz,ray,serve]' pytest hypothesis httpx httpx2
	$(OLDEST)/bin/python -m pytest -m 'not slow' $(OLDEST_TESTS)

# Builds the source archive and Linux wheels, and tries them in empty environments of every Python from 3.11 that is found
wheels:
	$(PYTHON) scripts/wheels.py --tests $(if $(PYTHONS),--pythons $(PYTHONS))

quick: lint
	$(BIN)/pytest -n 2 --dist loadfile -m 'not slow'

docs: $(STAMP)
	@echo "Building the site, half a minute: build/site/index.html"
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

reproduce: $(STAMP)
	$(BIN)/python -m experiments all --workers $(WORKERS)

reproduce-quick: $(STAMP)
	rm -rf reproduced-quick
	$(BIN)/python -m experiments all --quick --workers $(WORKERS)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(STAMP): pyproject.toml constraints.txt CMakeLists.txt $(wildcard native/*)
	@echo "Installing into $(VENV), in three steps of a minute or two in all; they say nothing unless they fail."
	@echo "1 of 3: a virtual environment"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet -c constraints.txt pip
	@echo "2 of 3: torch, the largest download"
	@$(BIN)/python -m pip install --quiet -c constraints.txt torch
	@echo "3 of 3: retrodict with its other dependencies and tools, and its compiled part"
	@$(BIN)/python -m pip install --quiet -c constraints.txt --build-constraint constraints.txt -e '.[dev,docs]'
	@touch $(STAMP)

clean:
	rm -rf $(VENV) $(OLDEST) build dist demo reproduced-quick .pytest_cache .mypy_cache .ruff_cache
