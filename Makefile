# SPDX-License-Identifier: Apache-2.0
# The commands of a newcomer; everything else is CMake's. Each installs what it needs and does not find.
CONFIG ?= config/otel-collector-config.yaml
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 20
IMAGE ?= spanflame

.PHONY: help build run test tsan clang tidy coverage fuzz mutants bench image package reference format clean

help:
	@echo 'make run     build the daemon and run it on $(CONFIG)'
	@echo 'make build   leave the release binary at build/spanflame'
	@echo 'make test    everything: format, clang-tidy, clang, sanitizers, unit, pipeline, fuzz corpora, end to end'
	@echo 'make tidy    clang-tidy alone'
	@echo 'make coverage the lines that unit and pipeline tests reach, build-coverage/report/index.html'
	@echo 'make tsan    the tests under the thread sanitizer'
	@echo 'make clang   compile everything with clang, whose warnings are errors too'
	@echo 'make fuzz    every fuzz target, and the attack on the daemon, for FUZZ_SECONDS=$(FUZZ_SECONDS)'
	@echo 'make mutants break each promise of the README once, and see that a test notices'
	@echo 'make bench   the benchmark; OTELCOL=path adds a Go collector to the same run'
	@echo 'make image   the container image $(IMAGE)'
	@echo 'make package a Debian package, build/spanflame_*.deb'
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
	cmake --preset clang
	cmake --build --preset clang -j $(JOBS)

tidy:
	scripts/install-packages test
	cmake --preset dev
	cmake --build --preset dev -j $(JOBS) --target spanflame
	scripts/run-clang-tidy build-dev $(JOBS)

coverage:
	scripts/install-packages coverage
	cmake --preset coverage
	cmake --build --preset coverage -j $(JOBS) --target unit_tests
	find build-coverage -name '*.gcda' -delete
	ctest --preset coverage -j $(JOBS) -L '^(unit|pipeline)$$'
	mkdir -p build-coverage/report
	gcovr --root . --object-directory build-coverage --exclude-directories '.*CompilerId.*' --exclude-unreachable-branches --print-summary \
		--filter '(src|receivers|processors|exporters|connectors|extensions)/' --html-details build-coverage/report/index.html

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

# cpack alone would build everything, tests included.
package: build
	scripts/install-packages package
	cmake --build --preset release --target package_files -j $(JOBS)
	cd build && cpack

# What is printed from the option tables is committed, and a test compares.
reference: build
	build/spanflame config-reference > config/reference.md

format:
	scripts/check-format --fix

clean:
	rm -rf build build-*
