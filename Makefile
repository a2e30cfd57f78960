# `make help` lists the targets. Each installs its requirements; see scripts/setup.sh.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-portable check-portable soak studies docs check bench build-times fuzz packages package-binary package-wheel package-sdist package-deb package-rpm package-oci package-native try-packages package-lists audit audit-advisories release clean

export PATH := $(PATH):$(HOME)/.cargo/bin

# Duration of each fuzz target.
SECONDS := 10
# Sections of `make bench`: closed, open, truth, memory, scenario, scripts, http2, grpc, streams, websocket, llm, watched, serve, gate, client, smart, overload, harm, send, delivery, shared, verdicts, agents or all; --quick, --publish, ...
BENCH := all

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' Makefile | expand -t 20

demo: ## start a service, load it in two ways, and explain the results (40 s)
	@scripts/setup.sh demo
	@scripts/demo.sh

# What the compiler keeps for the next change takes it a minute and 3.4 GB; the inner loop (CONTRIBUTING.md) builds by crate.
test test-all: export CARGO_INCREMENTAL = 0

test: ## whether a change is right: tests in Rust, and those of the Python package
	scripts/setup.sh test
	scripts/test.sh test

test-all: ## the tests that `make test` leaves out: pages in a browser, the site, examples, packages, studies, fuzz targets
	scripts/setup.sh test-all
	scripts/test.sh test-all

test-portable: ## the tests in Rust, with the interfaces of other systems than Linux
	scripts/setup.sh check
	WEIR_EXAMPLES_BUILT=1 RUST_TEST_THREADS=$$((4 * $$(nproc))) RUSTFLAGS="--cfg weir_portable" cargo test --workspace --locked --no-fail-fast --target-dir target/portable

check-portable: ## the command's crates, type-checked for macOS and FreeBSD; fetches the standard libraries of both
	scripts/setup.sh check
	scripts/check_portable.sh

soak: ## what takes long: properties with 1,000 values, agents on a Ray cluster, imports beside their tools, gRPC beside grpc-go and grpc-java, a minute of fuzzing per target
	scripts/setup.sh soak
	PROPTEST_CASES=1000 .venv/bin/python scripts/rust_tests.py unit
	.venv/bin/python -m pytest -q -m soak
	scripts/fuzz.sh 60

studies: ## run every study of studies/ for a minute
	scripts/setup.sh studies
	.venv/bin/python studies/run.py all --quick

docs: ## the documentation as a site: target/docs/html/index.html
	scripts/setup.sh docs
	.venv/bin/python docs/site/make_site.py

check: ## formatting, lints, types and docs; warnings are errors
	scripts/setup.sh check
	cargo fmt --all --check
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy --strict & types=$$!; scripts/lint.sh && wait $$types

bench: ## weir beside its peers, over two hours; BENCH="closed --quick" for less
	scripts/setup.sh bench
	-benches/peers.sh
	.venv/bin/python benches/run.py $(BENCH)

build-times: ## what building costs, cold and after a change; some 20 minutes
	scripts/setup.sh check
	python3 scripts/build_times.py

fuzz: ## search for inputs that break the parsers; SECONDS=10 for each target
	scripts/setup.sh fuzz
	scripts/fuzz.sh $(SECONDS)

packages: ## all packages for x86_64 Linux, in dist/; or one: make package-wheel, -sdist, -binary, -deb, -rpm, -oci; -native: the command on any Unix
	scripts/package.sh all

package-binary package-wheel package-sdist package-deb package-rpm package-oci package-native:
	scripts/package.sh $(@:package-%=%)

try-packages: ## install the packages in dist/ in clean folders, run them, and remove them; root for deb and oci
	scripts/package/try.sh

package-lists: ## bill of materials, licences and checksums of what is in dist/
	scripts/package/lists.sh

audit: ## licences and sources of all crates, by cargo deny
	scripts/audit.sh

audit-advisories: ## the same, and known vulnerabilities; needs the internet
	scripts/setup.sh check
	scripts/audit.sh --advisories

release: ## version, changes, all packages, checksums, SBOM and licences; VERSION=1.2.3
	scripts/release.sh "$(VERSION)"

clean: ## remove everything built or installed
	rm -rf target fuzz/corpus .venv dist .mypy_cache .ruff_cache .pytest_cache
	find . -name __pycache__ -prune -exec rm -rf {} +
