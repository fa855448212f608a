# Two commands set everything up: `make demo` and `make test`.
# They need python3.11 or newer with venv, make and git; the rest comes with pinned hashes.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
READY := $(VENV)/.ready

.PHONY: help demo test check unit package editors vscode agents lint constraints samples clean

help:
	@echo "make demo         install, get the model, index the sample sessions and ask them"
	@echo "make test         everything CI checks"
	@echo "make check        only the quick part: constraints, format, lint"
	@echo "make editors      install Neovim and Emacs if they are missing, and test with them"
	@echo "make vscode       install VS Code for tests if it is missing, and test the extension in it"
	@echo "make agents       install Claude Code, Codex and pi if they are missing, and test with them"
	@echo "make constraints  pin all dependencies anew (add ARGS=--upgrade for newer ones)"
	@echo "make samples      write the sample sessions anew from tests/traces/scripts"
	@echo "make clean        remove what these commands made"

# --require-hashes refuses every file that is not listed; the project itself has none, hence the
# second line. The build backend is among the pinned packages, so nothing else is fetched.
$(READY): constraints.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install -qq --require-hashes -r constraints.txt
	$(VENV)/bin/python -m pip install -qq --no-deps --no-build-isolation -e .
	@touch $@

demo: $(READY)
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" sh scripts/demo.sh

test: check unit package
	@echo "All checks passed."

check: $(READY)
	$(VENV)/bin/python scripts/check_constraints.py
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .

lint: check

unit: $(READY)
	$(VENV)/bin/python -m pytest -n auto --durations=10

package: $(READY)
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" sh scripts/check_package.sh

# With what could be installed; an editor that could not be is skipped with the reason.
editors: $(READY)
	sh scripts/install_editors.sh || test $$? = 3
	$(VENV)/bin/python -m pytest tests/editors

# Likewise with a real VS Code, in a browser.
vscode: $(READY)
	sh scripts/install_vscode.sh || test $$? = 3
	$(VENV)/bin/python -m pytest tests/vscode

# Likewise with coding agents, which speak to a scripted model on this machine alone.
agents: $(READY)
	sh scripts/install_agents.sh || test $$? = 3
	$(VENV)/bin/python -m pytest tests/agents

constraints:
	sh scripts/lock_constraints.sh $(ARGS)

samples: $(READY)
	$(VENV)/bin/python -m tests.traces.make

clean:
	rm -rf $(VENV) .venv-editors .demo build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache
