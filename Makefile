# Everything installs what it needs: the checkout and a python3 (3.10 or newer) are enough.
.DELETE_ON_ERROR:
VENV    := .venv
BIN     := $(VENV)/bin
MEMBERS := . ./plugins $(sort $(wildcard ./hpc_*))
SOURCES := pyproject.toml README.md LICENSE \
           $(shell find core plugins hpc_* -not -type d -not -path '*/__pycache__/*' -not -name '*.pyc')

.PHONY: help setup wheels demo test twin lint soak bench clean
help:
	@echo "make demo    train a small model on this computer, from nothing"
	@echo "make wheels  build the wheels of every distribution into dist/"
	@echo "make setup   install what the tests need: Debian packages and the twins' (as root), .venv, torch"
	@echo "make test    setup, then every test that this machine can run"
	@echo "make twin    of these, the tests on replicas of the five clusters (root)"
	@echo "make lint    ruff, mypy, shellcheck"
	@echo "make soak    the tests of kills and races at their full counts"
	@echo "make bench   what starting, data and conversions cost, written to bench/*.md"
	@echo "make clean   remove what the targets above made in this folder"

wheels: dist/.made
demo: $(VENV)/.installed
	tests/setup/demo.sh
setup: $(VENV)/.installed
	tests/setup/debian.sh
	$(BIN)/python tests/setup/pythons.py
	tests/setup/demo.sh --once
	tests/setup/twin.sh
	tests/setup/torch.sh deepspeed >/dev/null
	tests/setup/torch.sh earlier >/dev/null
	tests/setup/torch.sh automodel >/dev/null
test: setup
	tests/setup/test.sh
twin: setup
	HPCTRAIN_REQUIRE="twin torch" tests/setup/test.sh -q -m twin tests/twin
lint: $(VENV)/.installed
	tests/setup/lint.sh
soak: setup
	HPCTRAIN_SOAK=150 tests/setup/test.sh -m "slow or slurm" tests/run tests/schedulers
	HPCTRAIN_SOAK=100 tests/setup/test.sh -m slow tests/data
	HPCTRAIN_SOAK=200 tests/setup/test.sh -m slow tests/twin/test_overlay_rounds.py
bench: $(VENV)/.installed
	tests/setup/demo.sh --once
	$(BIN)/python -m bench
	$(BIN)/python -m bench.data
	$(BIN)/python -m bench.convert --peers "$$(tests/setup/torch.sh deepspeed)"
clean:
	rm -rf $(VENV) dist .cache hpctrain-demo .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/.made: dev-requirements.txt tests/setup/venv.sh
	tests/setup/venv.sh $(VENV)
dist/.made: $(VENV)/.made $(SOURCES)
	rm -rf dist
	$(BIN)/pip wheel -q --no-deps --no-build-isolation -w dist $(MEMBERS)
	@touch $@ && ls dist
$(VENV)/.installed: dist/.made
	$(BIN)/pip install -q dist/*.whl
	$(BIN)/pip install -q --no-deps --force-reinstall dist/*.whl
	@touch $@
