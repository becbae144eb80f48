# SPDX-License-Identifier: Apache-2.0
# Short names for presets (CMakePresets.json) and scripts (tools/). Nothing is built here.

.PHONY: help setup build test demo bench headers asan tsan tidy fuzz format clean

help:
	@echo "make demo      sets up, builds, then trains DCGAN at 256x256 on real pictures under a budget (about two minutes of work)"
	@echo "make test      sets up, builds, then runs all tests"
	@echo "make build | setup | bench | headers | asan | tsan | tidy | fuzz | format | clean"

setup:
	@tools/setup

build: setup
	@tools/build dev

test: build
	@tools/test dev

demo: build
	@tools/demo

bench: build
	@bench/run

headers: build
	@echo "ullage: compiling every header alone"
	@cmake --build --preset headers

asan tsan: setup
	@tools/build $@
	@tools/test $@

tidy: setup
	@tools/setup tidy
	@tools/tidy

fuzz: setup
	@tools/fuzz

format: setup
	@tools/setup format
	@tools/format

clean:
	rm -rf build
