# SPDX-License-Identifier: Apache-2.0
# The commands of a newcomer; everything else is CMake's. Each installs what it needs and does not find.
CONFIG ?= config/otel-collector-config.yaml
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 20
IMAGE ?= spanflame

.PHONY: help build run test tsan clang fuzz mutants bench image reference format clean

help:
	@echo 'make run     build the daemon and run it on $(CONFIG)'
	@echo 'make build   leave the release binary at build/spanflame'
	@echo 'make test    everything: sanitizers, unit, pipeline, fuzz corpora, end to end'
	@echo 'make tsan    the tests under the thread sanitizer'
	@echo 'make clang   compile everything with clang, whose warnings are errors too'
	@echo 'make fuzz    every fuzz target, and the attack on the daemon, for FUZZ_SECONDS=$(FUZZ_SECONDS)'
	@echo 'make mutants break each promise of the README once, and see that a test notices'
	@echo 'make bench   the benchmark; OTELCOL=path adds a Go collector to the same run'
	@echo 'make image   the container image $(IMAGE)'
	@echo 'make clean   take away what was built'

build:
	scripts/install-packages build
	cmake --preset release
	cmake --build --preset release --target spanflame -j $(JOBS)

run: build
	build/spanflame --config $(CONFIG)

test:
	scripts/install-packages test
	scripts/run-tests

tsan:
	scripts/install-packages test
	cmake --preset tsan
	cmake --build --preset tsan -j $(JOBS)
	ctest --preset tsan -j $(JOBS) -LE peer

clang:
	scripts/install-packages test
	scripts/install-packages fuzz
	cmake --preset clang
	cmake --build --preset clang -j $(JOBS)

fuzz:
	scripts/install-packages fuzz
	cmake --preset fuzz
	cmake --build --preset fuzz -j $(JOBS) --target fuzzers
	scripts/run-fuzzers build-fuzz $(FUZZ_SECONDS)

mutants:
	scripts/install-packages test
	python3 -B tests/mutants/run.py --build build-mutants --jobs $(JOBS)

bench:
	scripts/install-packages bench
	cmake --preset release
	cmake --build --preset release -j $(JOBS)
	tests/bench/run

image:
	scripts/install-packages image
	docker info >/dev/null # says so when no engine answers
	docker build -t $(IMAGE) .

# What is printed from the option tables is committed, and a test compares.
reference: build
	build/spanflame config-reference > config/reference.md

format:
	git ls-files '*.c' '*.h' '*.cc' | xargs clang-format -i

clean:
	rm -rf build build-*
