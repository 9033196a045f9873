# Words here are the words of CI. `make demo` and `make test` set everything up by themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Two threads at most: the figures in the README are for two cores, and more threads slow the tiny tests down.
export OMP_NUM_THREADS ?= 2

.PHONY: setup system demo test soak soak-tenth check gen lint type bench clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt requirements-material.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[train,kubernetes,dev]'
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps -r requirements-material.txt
	touch $(READY)

# Tests compare with ffmpeg's own frames, open pages in a real browser, and ask a real SLURM and a real container engine.
# Each is named by a program and the Debian package that brings it.
PROGRAMS := ffmpeg:ffmpeg chromium:chromium slurmctld:slurm-wlm munged:munge podman:podman runc:runc busybox:busybox-static \
  docker:docker.io setpriv:util-linux

system:
	@missing=$$(for pair in $(PROGRAMS); do PATH="$$PATH:/usr/sbin:/sbin" command -v $${pair%%:*} >/dev/null || echo $${pair##*:}; done); \
	if [ -n "$$missing" ]; then \
	  if [ "$$(id -u)" = 0 ]; then apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing fonts-dejavu-core >/dev/null; \
	  else echo "Tests need root for SLURM and containers, and these Debian packages: sudo apt-get install" $$missing >&2; exit 5; fi; fi

demo: setup
	$(BIN)/python scripts/demo/run.py

test: setup system
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal --ignore=tests/soak

# What is too long for CI: all of it by `make soak`, which leaves its evidence, a fixed tenth by `make soak-tenth`.
soak: setup system
	$(BIN)/python -m pytest tests/soak --soak-in-full

soak-tenth: setup system
	$(BIN)/python -m pytest tests/soak

check: lint type
	$(BIN)/python scripts/generate_schemas.py --check
	$(BIN)/tao-runtime skills lint

gen: setup
	$(BIN)/python scripts/generate_schemas.py

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports

type: setup
	$(BIN)/mypy

bench: setup
	$(BIN)/python tests/benchmarks/start_times.py

clean:
	rm -rf demo_output build dist .mypy_cache .ruff_cache .import_linter_cache .hypothesis
