# make demo     a real incident: from files to evidence, and to what was missed
# make check    style, types and the tests of pure functions: two minutes
# make test     all tests but the long repetitions (make test-slow)
# make lab      the notebooks, in JupyterLab on this machine only
# make bench    the headline figures, measured here
# make lint     style and types
# make docs     the pages under docs/ that are made from the program
# make proto    the code that is made from messages.proto
#
# Needs make and Python 3.11 or newer with venv, nothing else: Java comes with the packages if the machine has none.
# The first target that runs installs everything into .venv (a minute or two, 1.3 GB); after that, nothing is asked for.

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
READY_BENCH := $(VENV)/ready-bench
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

NEW_ENOUGH := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c '$(NEW_ENOUGH)' 2>/dev/null && echo $$p && break; done)

# Without dependencies, because the lock names all of them; without build isolation, because that would fetch build
# tools that no lock names. Compiling to bytecode is left to the first import.
INSTALL := $(PIP) install --no-deps --no-compile --no-build-isolation

.PHONY: venv demo check test test-slow lab bench lint docs proto lock clean
.DELETE_ON_ERROR:

venv: $(READY)

$(READY): requirements.lock pyproject.toml
	@$(or $(PYTHON),false) -c '$(NEW_ENOUGH)' || { echo >&2 \
	"The workbench needs Python 3.11 or newer with venv (Debian: python3-venv). Not on PATH? make PYTHON=/path/to/python3"; \
	exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@awk '/^[a-z]/ { build = /^setuptools==/ } build' requirements.lock > $(VENV)/build.lock
	$(INSTALL) --require-hashes -r $(VENV)/build.lock
	@echo "Installing the packages of requirements.lock, a minute or two ..."
	@# PySpark is a source package of 450 MB of jars: not compressing them again halves the installation.
	@printf '[bdist_wheel]\ncompression = stored\n' > $(VENV)/build.cfg
	DIST_EXTRA_CONFIG="$(CURDIR)/$(VENV)/build.cfg" $(INSTALL) --use-pep517 --require-hashes -r requirements.lock
	$(INSTALL) --editable .
	@touch $@

# python-ldap needs the headers of libldap (Debian: libldap2-dev, libsasl2-dev); without it, it is not measured.
$(READY_BENCH): requirements-bench.lock $(READY)
	@awk '/^[a-z]/ { ldap = /^python-ldap==/ } !ldap' requirements-bench.lock > $(VENV)/bench.lock
	$(INSTALL) --require-hashes -r $(VENV)/bench.lock
	@$(INSTALL) --use-pep517 --require-hashes -r requirements-bench.lock \
	|| echo "python-ldap could not be built here (libldap2-dev, libsasl2-dev): the benchmarks go without it"
	@touch $@

demo: $(READY)
	$(BIN)/workbench demo

# Three processes, also on two cores: one of them waits for Directory Servers nearly all the time. Four are slower.
PYTEST := $(BIN)/python -m pytest --numprocesses 3 --dist loadgroup --durations 30

check: lint
	$(BIN)/python -m pytest --numprocesses 2 --quiet tests/unit tests/test_house.py -m "not slow"

test: $(READY)
	$(PYTEST) -m "not slow"

test-slow: $(READY)
	$(PYTEST) -m slow

lab: $(READY)
	$(BIN)/workbench lab

bench: $(READY_BENCH)
	$(BIN)/python -m benchmarks.ingest
	$(BIN)/python -m benchmarks.pairs
	$(BIN)/python -m benchmarks.missed
	$(BIN)/python -m benchmarks.entries --entries 100000
	$(BIN)/python -m benchmarks.streams
	$(BIN)/python -m benchmarks.physical

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(READY)
	$(BIN)/python -m workbench.docs

# In a venv of its own: the compiler is no part of what runs. Its code needs a protobuf of its own version or later.
PROTO := workbench/systems/drizzle/formats

proto: $(READY)
	test -x $(VENV)/proto/bin/python || { $(BIN)/python -m venv $(VENV)/proto && \
	$(VENV)/proto/bin/pip install --quiet grpcio-tools; }
	$(VENV)/proto/bin/python -m grpc_tools.protoc -I $(PROTO) --python_out=$(PROTO) --pyi_out=$(PROTO) messages.proto

# The locks hold for Python 3.11 and newer on Linux and macOS, and name no package index.
WANTED := import tomllib; p = tomllib.load(open("pyproject.toml", "rb")); e = p["project"]["optional-dependencies"]
COMPILE := $(VENV)/lock/bin/uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --quiet

lock: $(READY)
	test -x $(VENV)/lock/bin/uv || { $(BIN)/python -m venv $(VENV)/lock && $(VENV)/lock/bin/pip install --quiet uv; }
	$(BIN)/python -c '$(WANTED); print(*p["build-system"]["requires"], sep="\n")' | \
	UV_CUSTOM_COMPILE_COMMAND="make lock" $(COMPILE) --upgrade - pyproject.toml --extra test -o requirements.lock
	$(BIN)/python -c '$(WANTED); print(*e["bench"], sep="\n")' | \
	UV_CUSTOM_COMPILE_COMMAND="make lock" $(COMPILE) --upgrade - -c requirements.lock -o requirements-bench.lock

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
