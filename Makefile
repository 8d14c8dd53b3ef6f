# Every command a contributor needs. `make demo` shows the product, `make test` proves it.
.DEFAULT_GOAL := help
SHELL := /bin/bash
CARGO ?= cargo
TARGET := $(if $(CARGO_TARGET_DIR),$(CARGO_TARGET_DIR),target)

.PHONY: help lib demo release image check test faults fuzz soak bench

help: ## List the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort | expand -t 12

lib: ## Fetch the prebuilt DuckDB library
	@scripts/duckdb-lib

demo: lib ## Build, start the sidecar, play captured agent traffic through it, show the verdicts
	@$(CARGO) build --workspace
	@$(TARGET)/debug/iris-sidecar demo

release: lib ## Build the release binary, with the DuckDB library beside it
	@$(CARGO) build --release
	@cp -L .duckdb/current/libduckdb.so $(TARGET)/release/

image: release ## Build the image's last stage without Docker and run it once, read-only and without capabilities
	@scripts/image $(TARGET)/release/iris-sidecar || { code=$$?; [ $$code -eq 77 ] && echo "skipped"; }

check: lib ## The quick loop: format, lints, licences, core tests
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	@scripts/cargo-deny || { code=$$?; [ $$code -eq 77 ] && echo "skipped"; }
	$(CARGO) test -p iris-core

test: lib ## Every test, with a table of suites at the end
	@scripts/test

faults: lib ## Harm files and kill processes, many times over
	IRIS_FAULTS=long $(CARGO) test --workspace --test it -- faults field_cases_8 acknowledged --nocapture --test-threads 1
	IRIS_FAULTS=long $(CARGO) test --workspace --lib fuzz

soak: lib ## Half an hour under load: memory, handles and disk stay flat
	IRIS_SOAK_SECONDS=$${IRIS_SOAK_SECONDS:-1800} $(CARGO) test --release --workspace --test it soak -- --nocapture

fuzz: lib ## Look for inputs that break a parser, guided by coverage; needs nightly and cargo-fuzz
	@scripts/fuzz

bench: lib ## Measure the receiving, judging and storing of spans
	@scripts/bench
