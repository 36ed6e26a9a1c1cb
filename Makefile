# The two commands: `make demo` and `make test`. Both need Python 3.11 or later and nothing else.
# Benchmarks need root and Go: `make bench` beside a kubelet; bench-pressure, bench-sensors… for each file in tests/bench.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOWEST := .venv-lowest
ARGS ?=
# Three at once, which often wait; the tests of a group stay together, in the order that tests/conftest.py gives them.
PARALLEL := -n 3 --dist loadgroup --no-loadscope-reorder
FAST := -n auto -m "not real and not root and not slow" tests/unit tests/contract tests/docs
PROSE := README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md $(wildcard docs/*.md)

unexport PYTHONDONTWRITEBYTECODE # or every fake-kubelet that a test starts would compile itself anew

.PHONY: demo test test-fast test-lowest mutants audit kind-test fuzz lint format lock sync-kubelet pictures bench clean

demo: $(VENV)/.run
	@$(BIN)/fake-kubelet demo $(ARGS)

test: lint
	@$(BIN)/python -m tests.cluster.build
	@$(BIN)/python -m tests.systemd.rootfs
	@$(BIN)/python -m tests.container.image
	$(BIN)/python -m pytest $(PARALLEL) $(ARGS)

# The unit tests and the contract of the embedded cluster, on every core; needs neither Go nor root.
test-fast: $(VENV)/.dev
	$(BIN)/python -m pytest $(FAST) $(ARGS)

# Shows that test-fast notices each of the known mistakes of tests/mutants; ARGS names some of them.
mutants: $(VENV)/.dev
	@$(BIN)/python -m tests.mutants $(ARGS)

# All unit tests and that contract with the lowest version of each dependency that pyproject.toml allows.
test-lowest: $(LOWEST)/.dev
	$(LOWEST)/bin/python -m pytest -n auto -m "not real" tests/unit tests/contract $(ARGS)

# Known faults of the versions in use; needs a package index that has advisories.
audit: $(VENV)/.dev
	@$(BIN)/pip-audit --local --skip-editable

# Nodes in a real kind cluster, on podman; needs root, Go and what is in .ci/packages.
kind-test: $(VENV)/.dev
	@$(BIN)/python -m tests.cluster.build
	@$(BIN)/python -m tests.kind.node_image
	$(BIN)/python -m pytest tests/kind $(ARGS)

# What `make test` does in part: 100,000 answers in process, 10,000 lies to the daemon, and 20,000 requests to its ports.
# FUZZ_SEED makes others.
fuzz: $(VENV)/.dev
	@$(BIN)/python -m tests.cluster.build
	FUZZ_OBJECTS=100000 FUZZ_ANSWERS=10000 FUZZ_REQUESTS=20000 $(BIN)/python -m pytest -s \
		tests/faults/test_fuzz_door.py tests/faults/test_fuzz.py tests/server/test_port_fuzz.py $(ARGS)

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/codespell
	$(BIN)/codespell --dictionary tests/docs/words.txt $(PROSE)

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# What the image is built from, by hash: the newest versions that pyproject.toml allows, for every platform and Python.
COMPILE = $(BIN)/uv --quiet pip compile --universal --python-version 3.11 --generate-hashes --no-annotate \
	--upgrade --custom-compile-command 'make lock'
lock: $(VENV)/.dev
	@$(COMPILE) pyproject.toml --output-file requirements.lock
	@$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' \
		| $(COMPILE) - --output-file requirements-build.lock

# agent/core/kubelet_data from the Go code of the Kubernetes that tests/cluster/go.mod pins, and docs/flags.md; needs Go.
sync-kubelet: $(VENV)/.dev
	@$(BIN)/python -m tests.cluster.sync_kubelet
	@$(BIN)/python -m agent.cli.reference > docs/flags.md

# docs/images, from the demo and the status page as they are; takes six minutes, needs Go and chromium.
pictures: $(VENV)/.dev
	@$(BIN)/python -m tests.cluster.build
	@$(BIN)/python -m tests.docs.pictures

bench: bench-side_by_side

bench-%: $(VENV)/.dev
	@$(BIN)/python -m tests.cluster.build
	@$(BIN)/python -m tests.bench.$* $(ARGS)

clean:
	rm -rf $(VENV) $(LOWEST) .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/.run: pyproject.toml
	@echo "setting up $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit("fake-kubelet needs Python 3.11 or later, not " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	@$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

$(LOWEST)/.dev: pyproject.toml $(VENV)/.dev
	@$(PYTHON) -m venv $(LOWEST)
	@$(BIN)/uv pip compile --quiet --resolution lowest-direct --output-file $(LOWEST)/constraints.txt pyproject.toml
	@$(BIN)/uv pip install --quiet --python $(LOWEST) --constraint $(LOWEST)/constraints.txt --editable '.[dev]'
	@touch $@
