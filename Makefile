# SPDX-License-Identifier: Apache-2.0
# Short names for presets (CMakePresets.json) and scripts (tools/). Nothing is built here.

.PHONY: help setup build test demo bench headers soak asan tsan tidy fuzz format clean

help:
	@echo "make demo      sets up, builds what it runs, then trains DCGAN at 256x256 plainly and under a budget, and draws both (two minutes of work)"
	@echo "make test      sets up, builds, then runs all tests"
	@echo "make build | setup | bench | headers | soak | asan | tsan | tidy | fuzz | format | clean"

setup:
	@tools/setup

build: setup
	@tools/build dev

test: build
	@tools/test dev

soak: build
	@tools/test soak

demo: setup
	@tools/build dev ullage_cli ullage_dcgan_program
	@tools/demo

bench: build
	@bench/run

TORCH_HEADERS ?= ON
headers: build
	@echo "ullage: compiling every header alone"
	@cmake -DULLAGE_TORCH_HEADERS_ALONE=$(TORCH_HEADERS) build > build/configure-headers.log
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
