# What a person types. `make help` lists it.

.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c

# Programs that are built once and used by every checkout live here, outside the repository.
export BRINGUP_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/bringup

TOOLS := $(BRINGUP_CACHE)/tools
DENY_VERSION := 0.20.2
MDBOOK_VERSION := 0.5.4
FUZZ_VERSION := 0.13.2
FUZZ := $(TOOLS)/cargo-fuzz-$(FUZZ_VERSION)/bin/cargo-fuzz
FUZZ_SECONDS ?= 60
DENY := $(TOOLS)/cargo-deny-$(DENY_VERSION)/bin/cargo-deny
# Finds the control plane's programs, building them the first time.
ASSETS := BRINGUP_TESTBED_ASSETS="$$(testbed/build.sh)"
# What the demo and the simulator need of them.
API_SERVER := BRINGUP_TESTBED_ASSETS="$$(testbed/build.sh etcd kube-apiserver kubectl)"
# Where cargo leaves programs. They are started from there: `cargo run` of one package would compile the
# dependencies again, with other features.
BUILT := $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)/debug
# Compiles what the demo and the simulator need. The first time takes minutes.
COMPILE_DEMO := scripts/progress.sh "compiling bringup and the demo" cargo build --locked -p bringup-cli -p bringup-end-to-end

say = @printf '\n== %s\n' '$(1)' >&2

.PHONY: help demo screenshots docs sim test test-all fresh lint unit windows windows-tools windows-where-possible extension charts check manifests eval conformance karpenter bench bench-scale bench-flex bench-machines bench-memory bench-node fuzz testbed chart-tools cargo

help: ## Lists these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: cargo ## Shows nodes that fail: what Karpenter says, what bringup says (KEEP=1 keeps it up)
	@$(COMPILE_DEMO)
	@$(API_SERVER) KEEP=$(KEEP) BRINGUP=$(BUILT)/bringup $(BUILT)/bringup-demo

screenshots: cargo ## Draws the screens of the documentation anew, from the demo
	@$(COMPILE_DEMO)
	@$(API_SERVER) BRINGUP=$(BUILT)/bringup BRINGUP_SCREENSHOTS=$(CURDIR)/docs/images $(BUILT)/bringup-demo >/dev/null

MDBOOK := $(TOOLS)/mdbook-$(MDBOOK_VERSION)/bin/mdbook
docs: cargo $(MDBOOK) ## Builds the documentation site into target/site, and checks its links
	$(MDBOOK) build
	scripts/check_site.py target/site

sim: cargo ## Starts a real control plane and a simulated Azure to look around in
	@$(COMPILE_DEMO)
	@$(API_SERVER) $(BUILT)/bringup-sim --scenario $(or $(SCENARIO),tests/scenarios/demo.yaml)

# Parts of `make test`, in their order, and those that only `make test-all` has.
PARTS := lint unit charts karpenter eval conformance windows-where-possible
LONG_PARTS := docs bench-memory

test: cargo ## Runs everything: lint, unit, end-to-end, chart, Karpenter, evaluation and conformance tests
	@MAKE="$(MAKE)" scripts/parts.sh $(PARTS)

test-all: cargo ## Runs everything and what takes longer or needs more tools
	@BRINGUP_LONG=1 MAKE="$(MAKE)" scripts/parts.sh $(PARTS) $(LONG_PARTS)

# Which targets `make fresh` makes there.
FRESH_TARGETS ?= demo test
fresh: cargo ## Runs demo and test as on a new machine: a clean clone, every cache empty; takes over an hour
	@scripts/fresh.sh $(FRESH_TARGETS)

check: cargo ## Checks what has changed, in under a minute: format, lints, unit tests
	@scripts/check.sh

lint: cargo $(DENY) ## Checks format, lints, licences, sources, advisories and shell scripts
	$(call say,lint)
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet
	scripts/module_cycles.py runtime observe provision flex explain
	$(DENY) --log-level error check licenses sources bans
	@scripts/advisories.sh $(DENY)
	@for script in scripts/*.sh testbed/build.sh testbed/cluster-api/build.sh karpenter/build.sh charts/*.sh charts/tools/build.sh conformance/run.sh crates/node/units/*.sh crates/node/extension/*.sh crates/node/extension/linux/bin/ext tests/guest/*.sh .ci/run; do bash -n "$$script"; done
	@test -z "$$(gofmt -l testbed karpenter)" || { echo "gofmt: testbed or karpenter is not formatted" >&2; exit 1; }

unit: cargo testbed chart-tools ## Runs unit and end-to-end tests
	$(call say,unit and end-to-end tests)
	$(ASSETS) cargo test --workspace --locked --quiet

charts: chart-tools ## Checks the Helm charts, the plain manifests, the alerts and the dashboard
	$(call say,charts)
	charts/check.sh

manifests: cargo chart-tools ## Writes anew what is generated: the definitions in the charts, the plain manifests
	cargo run --quiet --locked -p bringup-objects --example definitions >charts/bringup/definitions/bootstrapreports.bringup.dev.yaml
	cargo run --quiet --locked -p bringup-objects --example flex_definitions >karpenter/charts/karpenter/crds/flex.aks.azure.com_azureflexnodeclasses.yaml
	cp karpenter/charts/karpenter/crds/flex.aks.azure.com_azureflexnodeclasses.yaml charts/bringup/definitions/flex/azureflexnodeclasses.flex.aks.azure.com.yaml
	cargo run --quiet --locked -p bringup-objects --example flex_definitions -- AzureFlexMachine >charts/bringup/definitions/flex/azureflexmachines.flex.aks.azure.com.yaml
	charts/render.sh >manifests/bringup.yaml

# Labelled data is kept outside the repository. Only this target reads it.
EVAL_DATA ?= ../shared/data
eval: cargo ## Measures diagnosis and redaction on labelled data, compares node configurations (RAISE=1 raises the baseline, MISSES=1 lists misses)
	$(call say,evaluation)
	@if [ ! -d $(EVAL_DATA) ]; then echo "eval: skipped, $(EVAL_DATA) is absent"; exit 0; fi; \
	cargo run --quiet --locked -p bringup-diagnosis --example eval -- $(EVAL_DATA) $(if $(RAISE),--raise) $(if $(MISSES),--misses); \
	cargo run --quiet --locked -p bringup-observe --example secrets -- $(EVAL_DATA); \
	if [ -e $(EVAL_DATA)/nodeconfig-golden/INDEX.json ]; then \
	  cargo run --quiet --locked -p bringup-contract --example goldens -- $(EVAL_DATA); \
	  BRINGUP_NODE_RECORD=$(abspath $(EVAL_DATA)) cargo test --quiet --locked -p bringup-contract --test recorded_rules; \
	else echo "eval: skipped, there are no node configurations in $(EVAL_DATA)"; fi

conformance: cargo ## Drives the simulated Azure with Azure's own Python SDK
	$(call say,conformance: the simulated Azure under the SDK of the real one)
	conformance/run.sh

karpenter: ## Checks the Karpenter of bringup: vet, tests, generated code in step with the proto file
	$(call say,karpenter: the provider in Go)
	@if command -v go >/dev/null; then cd karpenter && export GOTOOLCHAIN=auto && go vet ./... && go test -count=1 ./...; \
	else echo "karpenter: skipped, there is no go in PATH"; fi

bench: cargo ## Measures; see docs/benchmarks.md
	cargo bench --workspace --locked

bench-scale: cargo ## Measures the controller in a cluster of 10,000 nodes; takes minutes
	cargo build --quiet --locked --release -p bringup-cli
	@$(ASSETS) BRINGUP=$(CURDIR)/target/release/bringup cargo run --quiet --locked -p bringup-end-to-end --bin bringup-bench

bench-flex: cargo ## Measures the controller while it makes a thousand machines; takes ten minutes
	cargo build --quiet --locked --release -p bringup-cli
	@$(ASSETS) BRINGUP=$(CURDIR)/target/release/bringup cargo run --quiet --locked -p bringup-end-to-end --bin bringup-bench-flex

bench-machines: cargo ## Measures the controller with 5,000 Machines beside 5,000 NodeClaims; takes minutes
	cargo build --quiet --locked --release -p bringup-cli
	@$(ASSETS) BRINGUP=$(CURDIR)/target/release/bringup cargo run --quiet --locked -p bringup-end-to-end --bin bringup-bench-machines

bench-memory: cargo ## Measures the controller with 200 pending nodes whose consoles have 4 MiB each; takes ten minutes
	cargo build --quiet --locked --release -p bringup-cli
	@$(ASSETS) BRINGUP=$(CURDIR)/target/release/bringup cargo run --quiet --locked -p bringup-end-to-end --bin bringup-bench-memory

MUSL := x86_64-unknown-linux-musl
bench-node: cargo ## Measures bringup-node as it is shipped, and what it says in eleven situations
	@rustup target list --installed | grep -qx $(MUSL) || rustup target add $(MUSL) || { echo "bench-node needs the compiler's target $(MUSL)" >&2; exit 1; }
	cargo build --quiet --locked --release -p bringup-node --target $(MUSL)
	@BRINGUP_NODE=$(CURDIR)/target/$(MUSL)/release/bringup-node cargo run --quiet --locked -p bringup-end-to-end --bin bringup-bench-node

WINDOWS := x86_64-pc-windows-gnu
windows: cargo windows-tools ## Checks bringup-node for Windows: builds it, runs it under wine
	$(call say,bringup-node for Windows)
	cargo clippy --locked -p bringup-node --target $(WINDOWS) -- -D warnings
	BRINGUP_REQUIRE=windows cargo test --locked --quiet -p bringup-node --test windows --test extension_windows

windows-where-possible:
	@if missing=$$($(MAKE) --no-print-directory windows-tools 2>&1); then $(MAKE) --no-print-directory windows; \
	else echo "windows: skipped, $$(grep '^missing' <<<"$$missing")"; fi

# Installs what it may: the compiler's target with rustup, linker and wine with Debian's packages, as root.
windows-tools:
	@test -d "$$(rustc --print=target-libdir --target $(WINDOWS))" || timeout 120 rustup target add $(WINDOWS) >/dev/null 2>&1 || { echo "missing: rustup target add $(WINDOWS)" >&2; exit 1; }
	@found() { command -v x86_64-w64-mingw32-gcc && command -v wine64 wine /usr/lib/wine/wine64; }; \
	found >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get && apt-get update -q && \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends gcc-mingw-w64-x86-64 wine64; } >/dev/null 2>&1 || true; \
	command -v x86_64-w64-mingw32-gcc >/dev/null || { echo "missing: a linker (Debian: gcc-mingw-w64-x86-64)" >&2; exit 1; }; \
	command -v wine64 wine /usr/lib/wine/wine64 >/dev/null || { echo "missing: wine (Debian: wine64)" >&2; exit 1; }

extension: cargo ## Packs bringup-node as a VM extension for Linux and Windows, into target/extension
	$(call say,bringup-node as a VM extension)
	crates/node/extension/package.sh

fuzz: cargo $(FUZZ) ## Fuzzes every target in fuzz/, FUZZ_SECONDS each (needs a nightly compiler)
	$(call say,fuzz)
	@for target in $(notdir $(basename $(wildcard fuzz/fuzz_targets/*.rs))); do \
	  RUSTUP_TOOLCHAIN=nightly $(FUZZ) run "$$target" -- -max_total_time=$(FUZZ_SECONDS) -max_len=65536 -timeout=10; \
	done

testbed: ## Builds the control plane for tests, once, into the cache
	@testbed/build.sh >/dev/null

chart-tools: ## Builds helm and promtool, once, into the cache
	@charts/tools/build.sh >/dev/null

cargo:
	@command -v cargo >/dev/null || { echo "bringup needs Rust $$(sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml): https://rustup.rs" >&2; exit 1; }

$(DENY):
	$(call say,installing cargo-deny $(DENY_VERSION), once)
	cargo install --locked --quiet --root $(TOOLS)/cargo-deny-$(DENY_VERSION) cargo-deny@$(DENY_VERSION)

$(MDBOOK):
	$(call say,installing mdbook $(MDBOOK_VERSION), once)
	cargo install --locked --quiet --no-default-features --features search --root $(TOOLS)/mdbook-$(MDBOOK_VERSION) mdbook@$(MDBOOK_VERSION)

$(FUZZ):
	$(call say,installing cargo-fuzz $(FUZZ_VERSION), once)
	cargo install --locked --quiet --root $(TOOLS)/cargo-fuzz-$(FUZZ_VERSION) cargo-fuzz@$(FUZZ_VERSION)
