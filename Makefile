# The two commands: `make run` and `make test`. Both set up what they need first.
PORT ?= 8000
PYTHON ?= python3
BIN := .venv/bin

.PHONY: run test check lock format conformance production-like screenshots bench faults load

run: .venv/runtime
	@$(BIN)/python manage.py collectstatic --noinput --verbosity 0
	@exec $(BIN)/python manage.py serve --port $(PORT)

# PostgreSQL and Valkey come as wheels and are started on free ports; Chromium is Debian's.
# Two processes take the tests: tests/workers.py.
test: .venv/dev
	@CHROMIUM="$$(scripts/chromium)" && export CHROMIUM && \
	$(BIN)/python -m tests.services $(BIN)/pytest -n 2 --dist loadgroup --no-loadscope-reorder $(ARGS)

# What production runs, on free ports with a demo. It needs the development lock: PostgreSQL and
# Valkey come as its wheels.
production-like: .venv/dev
	@$(BIN)/python scripts/production-like

# The pictures of docs/screenshots, from the demo.
screenshots: .venv/dev
	@CHROMIUM="$$(scripts/chromium)" && export CHROMIUM && $(BIN)/python scripts/screenshots

# The public MCP conformance suite, on the endpoint and on the sessions: docs/conformance.md.
conformance: .venv/dev
	@scripts/conformance $(ARGS)

# Kills, stops, cuts and slows one thing after the other: make faults ARGS="--seed 1 --faults 40".
faults: .venv/dev
	@$(BIN)/python -m tests.faults $(ARGS)

# Every benchmark in turn, or make bench ARGS="gateways"; writes docs/performance.md.
bench: .venv/dev
	@CHROMIUM="$$(scripts/chromium)" && export CHROMIUM && $(BIN)/python -m benchmarks $(ARGS)

# Many open pages and connectors on what production runs: make load ARGS="--pages 100 --seconds 20".
load: .venv/dev
	@$(BIN)/python -m benchmarks.load $(ARGS)

check: .venv/dev
	@PATH="$(CURDIR)/$(BIN):$$PATH" scripts/check

format: .venv/dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Universal and hashed, without the name of any host.
lock: .venv/dev
	$(BIN)/uv pip compile --universal --generate-hashes --quiet --custom-compile-command "make lock" \
		pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile --universal --generate-hashes --quiet --custom-compile-command "make lock" \
		pyproject.toml --extra otel -o requirements-otel.lock
	$(BIN)/uv pip compile --universal --generate-hashes --quiet --custom-compile-command "make lock" \
		pyproject.toml --extra dev -o requirements-dev.lock

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "This needs Python 3.11 or later. If it has another name: make run PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv .venv

.venv/runtime: requirements.lock | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@touch $@

.venv/dev: requirements-dev.lock | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@touch $@ .venv/runtime
