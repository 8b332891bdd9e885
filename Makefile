# Start with `make demo` and `make test`. Targets that need .venv create it if it is missing.

VENV := .venv
STAMP := $(VENV)/installed
# Stamp of an installation with tools for tests, types and style.
TESTED := $(VENV)/installed-test
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3.14 python3 python; do \
	$$python -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; \
	done)

export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
# Some container images set it. Each of the many processes would then compile all of docmt, which takes 5 seconds.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-others test-slow test-gpu test-slurm lint format bench docs site dist hashes clean

help:
	@echo "make demo       run the whole workflow on the controlled corpus and print the table of scores"
	@echo "make test       run the tests"
	@echo "make test-others install what some tests need: transformers, Triton"
	@echo "make test-slow  run the tests that take longer"
	@echo "make test-gpu   run the tests that need a CUDA device"
	@echo "make test-slurm run the tests that start a Slurm cluster here (as root; needs slurmctld, slurmd and munge)"
	@echo "make lint       check the types and style of Python files, and the style of Snakemake files"
	@echo "make format     reformat Python and Snakemake files"
	@echo "make bench      run the benchmarks that need no data"
	@echo "make docs       update the generated parts of docs/"
	@echo "make site       build the documentation as a web site, in site/, and check its links"
	@echo "make dist       build the wheel and the source archive, in dist/, and check them"
	@echo "make hashes     update requirements*.hashes after a change of requirements*.lock"
	@echo "make clean      delete results, logs and caches, but not downloads and .venv"

# The environment is rebuilt after a change of the lock, pyproject.toml or the compiled code. The stamp is touched last,
# so an interrupted installation is repeated.
$(STAMP): requirements.lock requirements.hashes pyproject.toml docmt/decoding/decoder_step.cpp
	@test -n "$(PYTHON)" || { echo "make: cannot find Python 3.11 or newer with venv and ensurepip:" \
		"install it, or point to it: make PYTHON=/path/to/python3" >&2; exit 2; }
	@echo "make: installing packages into $(VENV), without a progress bar: this takes some minutes"
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --disable-pip-version-check --quiet --no-deps --require-hashes -r requirements.hashes
	@# torch and its dependencies. The build depends on the machine.
	$(VENV)/bin/python -m pip install --disable-pip-version-check --quiet -r requirements.lock
	$(VENV)/bin/python -m pip install --disable-pip-version-check --quiet --no-deps -e .
	@# The word aligner for APT is not in the lock, because it has to be compiled and is optional.
	@$(VENV)/bin/python -m pip install --disable-pip-version-check --quiet eflomal==2.0.0 2> $(VENV)/eflomal.log || \
		echo "make: cannot install eflomal (see $(VENV)/eflomal.log): the metric APT will be unavailable" >&2
	@# Compiled steps of beam search. Without them, Python computes the same.
	@$(VENV)/bin/python -m docmt.decoding.decoder_step 2> $(VENV)/decoder_step.log || \
		echo "make: cannot compile decoder_step.cpp (see $(VENV)/decoder_step.log): translation will be slower" >&2
	touch $@

$(TESTED): $(STAMP) requirements-test.lock requirements-test.hashes
	$(VENV)/bin/python -m pip install --disable-pip-version-check --quiet --no-deps --require-hashes -r requirements-test.hashes
	touch $@

demo: $(STAMP)
	docmt run config/config.yaml
	@cat results/report/summary.txt

test: $(TESTED)
	pytest -n logical -m "not slow and not gpu and not slurm"

# Adds packages to .venv that only some tests need (tests/others.txt). They are large, and users do not need them.
test-others: $(STAMP)
	$(VENV)/bin/python -m pip install --disable-pip-version-check --quiet -r tests/others.txt

test-slow: $(TESTED)
	pytest -n logical -m "slow and not gpu and not slurm"

test-gpu: $(TESTED)
	pytest -m gpu

SLURM_TESTS ?= tests/slurm
test-slurm: $(TESTED)
	pytest -n 4 -m slurm $(SLURM_TESTS)

lint: $(TESTED)
	ruff check .
	ruff format --check .
	pyright --pythonpath $(VENV)/bin/python
	snakefmt --check Snakefile workflow
	snakemake --lint

format: $(TESTED)
	ruff check --fix .
	ruff format .
	snakefmt Snakefile workflow

# The scripts that need no data. The first lines of other scripts name their inputs.
BENCHMARKS := speed architectures preparation graphs significance memory startup
bench: $(STAMP)
	for name in $(BENCHMARKS); do python benchmarks/$$name.py || exit 1; done

docs: $(TESTED)
	docmt config manual --into docs/configuration.md
	docmt config schema > config/schema.json
	python scripts/list_commands.py --write
	python scripts/list_files.py --write
	python scripts/list_metrics.py --write
	python scripts/list_costs.py --write
	python scripts/list_claims.py --write
	python scripts/draw_architecture.py --write
	python scripts/list_licenses.py --write

# Tools for the site and the archives have a separate environment without docmt.
SITE := $(VENV)/site
$(SITE)/installed: scripts/publishing.txt
	$(PYTHON) -m venv $(SITE)
	$(SITE)/bin/python -m pip install --disable-pip-version-check --quiet -r $<
	touch $@

site: $(SITE)/installed
	NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs build --strict

dist: $(SITE)/installed
	rm -rf dist
	$(SITE)/bin/python -m build
	$(SITE)/bin/twine check --strict dist/*

# Needs uv, and reads the checksums of all files of all packages from the package index.
hashes:
	for list in requirements requirements-test; do \
		{ echo "# The packages of $$list.lock, but torch, whose build depends on the machine. Made by: make hashes"; \
		grep -v '^torch==' $$list.lock | uv pip compile - --quiet --generate-hashes --no-deps --no-header \
			--no-annotate --universal --python-version 3.11; } > $$list.hashes.new && \
		mv $$list.hashes.new $$list.hashes || exit 1; done

clean:
	rm -rf results logs .snakemake .pytest_cache .ruff_cache .hypothesis
