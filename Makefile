# What people do with this repository, one word each. `make help` lists them.

CARGO ?= cargo
# The program that `make run` starts.
CMD ?= mcp-filesystem
# What it is started with, for example `make run ARGS=check`.
ARGS ?=
# The config file that `make run` serves.
CONFIG ?= config/$(CMD).yaml

# How long `make fuzz` runs each target.
FUZZ_SECONDS ?= 60

# How many clients `make load` has, and how long they go on.
LOAD_CLIENTS ?= 1000
LOAD_SECONDS ?= 120

# How many reads, and as many writes, `make bench-race` makes; 100000 are 200,000 operations.
CALLS ?= 20000

# The target of the binary that needs no library.
STATIC_TARGET ?= $(shell uname -m)-unknown-linux-musl

.PHONY: help build run test fmt-check lint docs product-features unit corpus test-clients test-admin test-limits test-shared test-histories test-rolling simulate test-exhaustive load fuzz bench bench-quick bench-starve bench-rights bench-micro bench-calls bench-agent bench-cluster bench-race pictures docker-build static packages test-packages

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t 20

build: ## build the release binary, target/release/mcp-filesystem
	$(CARGO) build --release --locked --package $(CMD)

run: ## serve ./workspace with config/mcp-filesystem.yaml on 127.0.0.1:8091
	@mkdir -p workspace
	@[ -e target/release/$(CMD) ] || echo "The first build takes some minutes; later starts take a second."
	@$(CARGO) run --release --locked --package $(CMD) -- --config $(CONFIG) $(ARGS)

# The tests come last, so that the last line is the runner's own summary.
test: fmt-check lint docs product-features unit ## everything that has to pass: format, lints, docs, tests

fmt-check: ## the format is rustfmt's
	$(CARGO) fmt --all --check

lint: ## clippy without a single warning
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

docs: ## the documentation builds without a single warning
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --document-private-items --locked

# The client that tests are written with brings them into every build of the workspace. So the product is always built by
# itself, as its package.
product-features: ## the product builds alone, with neither the server nor the transports of rmcp
	@features=$$($(CARGO) tree --locked --package mcp-filesystem --edges features,no-dev --invert rmcp) || exit 1; \
	if echo "$$features" | grep -E 'rmcp feature "(server|transport)'; then \
		echo "the product uses these features of rmcp"; exit 1; \
	fi
	$(CARGO) build --locked --package $(CMD)

unit: ## every test of the workspace
	@if $(CARGO) nextest --version >/dev/null 2>&1; then \
		$(CARGO) nextest run --workspace --locked; \
	else \
		$(CARGO) test --workspace --locked; \
	fi

corpus: ## every recorded reply, byte for byte but for what is meant to differ (needs Python; half a minute)
	$(CARGO) build --locked --package $(CMD)
	tests/corpus/corpus.py compare target/debug/$(CMD) tests/corpus/replies.jsonl --differences tests/corpus/differences.json

test-clients: corpus ## the recorded replies, other people's clients, the official conformance suite, and the packages (needs Node and Python)
	tests/clients/run target/debug/mcp-filesystem
	packaging/build target/debug/mcp-filesystem target/debug/packages
	packaging/test target/debug/packages

test-admin: ## the operator's page in a browser for ten minutes under 500 calls a second (needs Chromium, Node and Python)
	$(CARGO) build --release --locked --package $(CMD)
	tests/clients/run target/release/$(CMD) admin

test-limits: ## what one client can take at most, with all the connections, bodies and large replies: 188 bodies, 40 readers, 1,024 connections (a minute)
	$(CARGO) build --release --locked --package $(CMD)
	LIMITS_EXHAUSTIVE=1 TESTED_PROGRAM=$(CURDIR)/target/release/$(CMD) \
		$(CARGO) test --locked --package mcp-filesystem --test spec -- --nocapture --test-threads 1 \
		http_access::bytes http_access::connections large_replies::

test-shared: ## three replicas on bindfs, mergerfs, exfat-fuse, sshfs, MooseFS, CephFS, NFSv4.2 and a root that does not answer: fails on a lost change (minutes; root; installs Debian packages)
	$(CARGO) build --release --locked --package $(CMD)
	tests/shared/run target/release/$(CMD)

test-histories: ## the tests of histories on ext4, XFS, Btrfs, tmpfs, overlayfs, bindfs, fuse-overlayfs and exfat-fuse (a quarter of an hour; root; installs Debian packages)
	tests/shared/histories

test-rolling: ## restarts three replicas behind nginx and haproxy while clients call; fails where a call does (needs both)
	$(CARGO) build --release --locked --package $(CMD)
	tests/shared/rolling target/release/$(CMD)

bench-cluster: ## what `cluster` costs an edit and a read on one machine, and what one and three replicas answer; fails if it costs too much
	$(CARGO) build --release --locked --package $(CMD)
	tests/shared/cost target/release/$(CMD)
	tests/shared/throughput target/release/$(CMD)

simulate: ## the model of docs/scale.md: replicas for 10,000 to 1,000,000 agents, with its plots (needs Python; a minute)
	bench/simulate/simulate.py docs

test-exhaustive: ## every attack at every system call, every kill, power cut and race of moved trees, and what one client can take, nothing left out (an hour; power cuts need root)
	SANDBOX_EXHAUSTIVE=1 $(CARGO) test --locked --package sandbox --lib -- interleaving history::tests
	SANDBOX_EXHAUSTIVE=1 $(CARGO) test --locked --package sandbox --test view_race -- --nocapture
	SANDBOX_EXHAUSTIVE=1 $(CARGO) test --locked --package ops --lib -- --nocapture many_files_stays
	SANDBOX_EXHAUSTIVE=1 $(CARGO) test --locked --package mcp-filesystem --test spec -- --nocapture faults::crash faults::history faults::replica_history faults::trees faults::power faults::search reference::race rights::race rights::matrix rights::history http_access::audit::
	$(MAKE) test-limits

load: ## 1,000 clients for two minutes, every tenth misbehaving; fails where the server does not hold
	$(CARGO) build --release --locked --package $(CMD)
	$(CARGO) build --release --locked --package load
	target/release/load --clients $(LOAD_CLIENTS) --seconds $(LOAD_SECONDS) target/release/mcp-filesystem

fuzz: ## each fuzz target for FUZZ_SECONDS; with a nightly toolchain or as one, installs cargo-fuzz if it is missing
	@$(CARGO) fuzz --version >/dev/null 2>&1 || $(CARGO) install --locked cargo-fuzz
	@if $(CARGO) +nightly --version >/dev/null 2>&1; then nightly=+nightly; else export RUSTC_BOOTSTRAP=1; fi; \
	for target in $$($(CARGO) $$nightly fuzz list); do \
		$(CARGO) $$nightly fuzz run $$target -- -max_total_time=$(FUZZ_SECONDS) || exit 1; \
	done

bench: ## beside ripgrep, fd, coreutils, openssl, git and other servers; writes bench/RESULTS.md (installs peers; minutes once they are there)
	$(CARGO) build --release --locked --package $(CMD)
	$(CARGO) run --release --locked --package bench -- --save
	$(MAKE) bench-calls

bench-quick: ## the same on a tenth of the files, without saving (a minute once peers are there)
	$(CARGO) build --release --locked --package $(CMD)
	$(CARGO) run --release --locked --package bench -- --quick

bench-starve: ## 256 heavy calls of each kind by one client beside another's small reads and writes; fails where these wait too long
	$(CARGO) build --release --locked --package $(CMD)
	$(CARGO) run --release --locked --package bench -- starve

bench-rights: ## what a client's rights and denied globs cost on searches of 50,000 files and on small reads (minutes)
	$(CARGO) build --release --locked --package $(CMD)
	$(CARGO) build --release --locked --package bench-calls
	$(CARGO) run --release --locked --package bench -- rights
	target/release/calls rights

bench-micro: ## what confinement and searches cost beside the plain calls (criterion; minutes)
	$(CARGO) bench --locked --package sandbox --package ops --package guide

bench-calls: ## what a small call costs beside a tool built by hand on rmcp (instructions need valgrind; minutes)
	$(CARGO) build --release --locked --package $(CMD)
	$(CARGO) build --release --locked --package bench-calls
	target/release/calls

bench-agent: ## agents' tasks through this server and others; writes bench/AGENTS.md (needs Python and Node; installs peers)
	$(CARGO) build --release --locked --package $(CMD)
	bench/agent/run.py target/release/$(CMD) --save

bench-race: ## CALLS reads and writes while links are swapped, beside the reference server if REFERENCE names its program; writes bench/RACE.md (needs Python)
	$(CARGO) build --release --locked --package $(CMD)
	bench/race.py target/release/$(CMD) --calls $(CALLS) $(if $(REFERENCE),--reference $(REFERENCE)) --save

pictures: ## the README's recorded session, docs/pictures/session.svg (needs Python and util-linux; `docs/pictures/live.mjs` takes the other)
	$(CARGO) build --locked --bin $(CMD)
	docs/pictures/record target/debug/$(CMD)

docker-build: ## an image of the server; needs a Docker engine
	docker build --tag mcp-filesystem:0.1.0 .

static: ## a static release binary, target/STATIC_TARGET/release/mcp-filesystem (needs the target and musl-gcc; says how to get them)
	@rustc --print target-libdir --target $(STATIC_TARGET) | xargs test -e || \
		{ echo "the target is missing: rustup target add $(STATIC_TARGET)"; exit 1; }
	@command -v musl-gcc >/dev/null || { echo "musl-gcc is missing: apt install musl-tools"; exit 1; }
	$(CARGO) build --release --locked --package $(CMD) --target $(STATIC_TARGET)

packages: ## archive, .deb, .rpm, npm package, wheel and desktop bundle in target/packages; publishes nothing (needs Python)
	@if $(MAKE) --no-print-directory static; then binary=target/$(STATIC_TARGET)/release/$(CMD); else \
		echo "packages are made from the binary that needs glibc"; $(MAKE) build && binary=target/release/$(CMD); \
	fi && packaging/build $$binary target/packages

test-packages: packages ## installs each package from its file and makes calls with it (needs npm for one of them)
	packaging/test target/packages
