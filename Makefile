# Everything installs what it needs: the checkout and a python3 (3.10 or newer) are enough.
.DELETE_ON_ERROR:
VENV    := .venv
BIN     := $(VENV)/bin
SMALL   := build/venv
MEMBERS := . ./plugins $(sort $(wildcard ./hpc_*))
SOURCES := pyproject.toml README.md LICENSE \
           $(shell find core plugins hpc_* -not -type d -not -path '*/__pycache__/*' -not -name '*.pyc')

.PHONY: help setup wheels demo version test quick twin lint soak fuzz bench clean durations bare
help:
	@echo "make demo    train a small model on this computer, from nothing"
	@echo "make wheels  build the wheels of every distribution into dist/"
	@echo "make setup   install what the tests need: Debian packages and the twins' (as root), .venv, torch"
	@echo "make test    setup, then every test that this machine can run"
	@echo "make quick   in three minutes and without root: lint, and the tests that need nothing special"
	@echo "make twin    of these, the tests on replicas of the five clusters (root)"
	@echo "make lint    ruff, mypy, shellcheck"
	@echo "make soak    the tests of kills, races and hostile files at their full counts"
	@echo "make fuzz    guided fuzzing of every reader, written to bench/fuzz.md; ROUNDS=100: for each"
	@echo "make bench   what starting, data and conversions cost, written to bench/*.md"
	@echo "make version NEW=0.2.0 [CLUSTER=frontier] [COMMIT=1]   write the next version everywhere"
	@echo "make bare    make demo in a fresh clone on a bare Debian (root); COMMAND: something else"
	@echo "make durations   write down how long the tests of the last make test took: the slowest run first"
	@echo "make clean   remove what the targets above made in this folder"

wheels: dist/.made
demo: $(SMALL)/.demo
	tests/setup/demo.sh $(SMALL)
version:
	@python3 -m release.version $(NEW) $(if $(CLUSTER),--cluster $(CLUSTER)) $(if $(COMMIT),--commit)
setup: $(VENV)/.installed
	tests/setup/debian.sh
	$(BIN)/python tests/setup/pythons.py
	tests/setup/demo.sh --once
	tests/setup/twin.sh
	tests/setup/torch.sh deepspeed >/dev/null
	tests/setup/torch.sh earlier >/dev/null
	tests/setup/torch.sh automodel >/dev/null
	tests/setup/torch.sh megatron >/dev/null
test: setup
	tests/setup/test.sh
quick: $(VENV)/.installed
	tests/setup/quick.sh
durations:
	$(BIN)/python tests/setup/closing.py --record .cache/reports
bare: $(VENV)/.installed
	tests/setup/bare.sh "$(or $(COMMAND),make demo)"
twin: setup
	HPCTRAIN_REQUIRE="twin torch" tests/setup/test.sh -q -m twin tests/twin
lint: $(VENV)/.installed
	tests/setup/lint.sh
soak: setup
	HPCTRAIN_SOAK=150 tests/setup/test.sh -m "slow or slurm" tests/run tests/schedulers
	HPCTRAIN_SOAK=200 tests/setup/test.sh tests/run/test_trust.py tests/run/test_trust_rounds.py
	HPCTRAIN_SOAK=100 tests/setup/test.sh -m slow tests/data
	HPCTRAIN_SOAK=200 tests/setup/test.sh -m slow tests/twin/test_overlay_rounds.py
	HPCTRAIN_SOAK=10 tests/setup/test.sh tests/hostile
	HPCTRAIN_SOAK=1 tests/setup/test.sh -m twin tests/twin/test_canaries.py
	HPCTRAIN_CANARY=1 tests/setup/test.sh
	HPCTRAIN_SOAK=600 tests/setup/test.sh tests/chain/test_simulated.py tests/chain/test_goodput.py
	HPCTRAIN_SOAK=34 tests/setup/test.sh -m torch tests/hangs
	HPCTRAIN_SOAK=90 tests/setup/test.sh -m slurm tests/guards
	HPCTRAIN_SOAK=1 tests/setup/test.sh -s tests/chain/test_story.py
	HPCTRAIN_SOAK=120 tests/setup/test.sh tests/kills
fuzz: $(VENV)/.installed
	$(BIN)/python -m bench.fuzz $(if $(ROUNDS),--rounds $(ROUNDS))
bench: $(VENV)/.installed
	tests/setup/demo.sh --once
	$(BIN)/python -m bench
	$(BIN)/python -m bench.data
	$(BIN)/python -m bench.report
	$(BIN)/python -m bench.goodput
	$(BIN)/python -m bench.pulse "$$(tests/setup/torch.sh)"
	$(BIN)/python -m bench.convert --peers "$$(tests/setup/torch.sh deepspeed)"
clean:
	rm -rf $(VENV) build dist .cache hpctrain-demo .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/.made: dev-requirements.txt tests/setup/venv.sh
	tests/setup/venv.sh $(VENV) -r dev-requirements.txt
# Building and trying need none of the developers' tools: this one has pip and what pyproject.toml builds with.
$(SMALL)/.made: tests/setup/venv.sh pyproject.toml
	tests/setup/venv.sh $(SMALL) $$(sed -n 's/^requires = //p' pyproject.toml | tr -d '[",]')
dist/.made: $(SMALL)/.made $(SOURCES)
	rm -rf dist
	$(SMALL)/bin/pip wheel -q --no-deps --no-build-isolation -w dist $(MEMBERS)
	@touch $@ && ls dist
$(SMALL)/.demo: dist/.made
	$(SMALL)/bin/pip install -q --find-links dist 'hpctrain[local,convert]'
	$(SMALL)/bin/pip install -q --no-deps --force-reinstall dist/hpctrain-[0-9]*.whl dist/hpctrain_plugins-*.whl
	@touch $@
$(VENV)/.installed: $(VENV)/.made dist/.made
	$(BIN)/pip install -q dist/*.whl
	$(BIN)/pip install -q --no-deps --force-reinstall dist/*.whl
	@touch $@
