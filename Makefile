# A thin front of CMake: `make help` lists the targets.
BUILD   := build
JOBS    := $(shell nproc)
PREFIX  ?= /usr/local

.PHONY: all demo check check-long bench eval fuzz cuda install clean help

all: ## the release program: build/sumi, build/libsumi.so
	@command -v cmake >/dev/null && command -v ninja >/dev/null || tools/install-packages build
	@test -f $(BUILD)/build.ninja || cmake --preset release -Wno-dev >/dev/null
	cmake --build $(BUILD) -j $(JOBS)

demo: ## install packages, build, serve the small model, ask it two questions
	tools/demo

check: ## every test that needs no GPU, at most 25 minutes on two cores
	tools/check

check-long: ## the same, longer: 10 minutes of fuzzing a target, large cases, scores of the small model
	tools/check --long

bench: all ## speed on this machine beside what its memory allows
	bench/run

eval: all ## scores of the small model through the server
	tools/eval/run $(if $(SEED),--seed $(SEED))

fuzz: ## a minute of fuzzing for each target
	tools/fuzz 60

cuda: ## the GPU plugin: build/libsumi-cuda.so
	@find src -name '*.cu' | grep -q . || \
	    { echo "make cuda: there is no CUDA source in src; nothing to build" >&2; exit 1; }
	@command -v nvcc >/dev/null || { echo "make cuda: nvcc is not in PATH" >&2; exit 1; }
	cmake --preset cuda && cmake --build $(BUILD) -j $(JOBS)

install: all ## into PREFIX (/usr/local), also below DESTDIR
	cmake --install $(BUILD) --prefix $(PREFIX)

clean: ## remove what was built
	rm -rf build build-asan build-fuzz build-aarch64

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20
