# Set-up needs no other command than these two:
#   make demo    build, run 4,000 tasks and 4,000 instances on 100 cells, leave a report
#   make test    everything that must pass, on any machine
# The rest is for development: `make help`.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:

CARGO ?= cargo
TARGET := $(or $(CARGO_TARGET_DIR),target)
HEADROOM := $(TARGET)/release/headroom
# All pages come of one build, this one last.
PAGE := web/dist/compliance.html
PAGE_SOURCES := $(shell find web -path web/node_modules -prune -o -path web/dist -prune -o -type f -print)

.PHONY: demo
demo: release ## Build, run the road to 100 cells, and leave a report to open
	$(HEADROOM) run experiments/road-to-100-cells.toml

.PHONY: release
release: $(PAGE) ## The optimised binary
	$(CARGO) build --release --locked -p headroom

.PHONY: dist
dist: $(PAGE) ## A static binary, target/dist/headroom, tested in an empty root
	scripts/build-static $(TARGET)/dist/headroom
	scripts/test-static $(TARGET)/dist/headroom

.PHONY: test
test: test-tools lint test-web test-rust test-page test-demo ## Everything that must pass
	@echo "make test: all passed"

.PHONY: test-tools
test-tools: ## Install what tests need and the machine lacks (a browser, a NATS server)
	scripts/install-test-tools

.PHONY: lint
lint: $(PAGE) ## Formatting and clippy, warnings denied
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --features fuzz/targets --locked -- -D warnings

.PHONY: test-web
test-web: $(PAGE) ## Types and unit tests of the pages
	cd web && npm run --silent check && npm test --silent

# Runs of the scheduler in virtual time, half a minute of two processors.
SEEDS ?= 10000

.PHONY: test-rust
test-rust: $(PAGE) ## Unit, property, integration and end-to-end tests
	HEADROOM_SEEDS=$(SEEDS) CARGO=$(CARGO) scripts/test-rust

TRUTHS ?= 20

.PHONY: truth
truth: $(PAGE) ## Every planted truth TRUTHS (20) times: what is said of it, and how often that is wrong
	$(CARGO) test --locked --quiet -p headroom --test truth -- --times $(TRUTHS)

.PHONY: test-page
test-page: release ## Every control of the pages, on sample runs, on a graph and on a run that goes on, in a real browser
	rm -rf $(TARGET)/samples
	$(CARGO) run --release --locked --quiet -p lab-report --example sample -- $(TARGET)/samples
	cd web && npm run --silent e2e -- $(abspath $(TARGET))/samples
	cd web && npm run --silent e2e:graph -- $(abspath $(HEADROOM))
	cd web && npm run --silent e2e:compliance -- $(abspath $(HEADROOM))
	cd web && npm run --silent e2e:live -- $(abspath $(HEADROOM))

.PHONY: test-demo
test-demo: release ## The demo itself, then its report in a real browser
	scripts/test-demo $(HEADROOM)

.PHONY: web
web: $(PAGE) ## Build the pages that the binary embeds

$(PAGE): web/node_modules/.package-lock.json $(PAGE_SOURCES)
	cd web && npm run --silent build
	@touch $@

web/node_modules/.package-lock.json: web/package.json web/package-lock.json
	cd web && npm ci --no-audit --no-fund --silent
	@touch $@

.PHONY: bench
bench: release ## Every benchmark, one after the other (many minutes)
	for bench in bench/*; do [[ -x $$bench && -f $$bench && $$bench != bench/gate ]] && "$$bench"; done

.PHONY: gate
gate: release ## Is this tree slower than the revision BASE? By processor time, in random pairs (an hour or less)
	bench/gate "$(BASE)"
ifeq ($(filter gate,$(MAKECMDGOALS))$(BASE),gate)
$(error say with BASE what this tree is compared with: make gate BASE=main)
endif

FUZZ_SECONDS ?= 60

.PHONY: fuzz
fuzz: ## Every fuzz target for FUZZ_SECONDS (60); needs cargo-fuzz and a nightly compiler
	for target in $$($(CARGO) +nightly fuzz list); do \
	  $(CARGO) +nightly fuzz run --features fuzzer "$$target" -- -max_total_time=$(FUZZ_SECONDS) -max_len=4096 \
	    -dict=fuzz/words.dict -verbosity=0 -print_final_stats=1; \
	done

.PHONY: clean
clean: ## Remove what builds and runs leave behind
	$(CARGO) clean
	rm -rf web/dist web/node_modules runs

.PHONY: help
help: ## This list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20
