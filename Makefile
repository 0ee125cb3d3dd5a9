# Shortcuts; everything real is in CMakePresets.json and scripts/. `make demo` and `make test` are all a newcomer needs.
JOBS ?= $(shell nproc)

.PHONY: demo build train webui test dev tsan fuzz aarch64 lint format check-format clean

demo: ## build Release and let the shipped pair speak
	scripts/install_packages.sh build
	cmake --preset release -DOCTET_BUILD_TESTS=OFF >/dev/null
	cmake --build --preset release --target octet -j $(JOBS)
	scripts/demo.sh build/release/src/octet/octet

build: ## Release, with the test binaries
	scripts/install_packages.sh build test
	cmake --preset release -DOCTET_BUILD_TESTS=ON
	cmake --build --preset release -j $(JOBS)

train: ## octet-train, which needs libtorch, and octet beside it
	scripts/install_packages.sh build train
	cmake --preset release -DOCTET_BUILD_TRAIN=ON
	cmake --build --preset release --target octet-train --target octet -j $(JOBS)

webui: ## the page of `octet serve` (needs npm); the next build puts it into octet
	cd webui && npm ci --no-audit --no-fund --loglevel=error && npm run build --silent

test: ## the whole suite
	scripts/install_packages.sh build test train
	scripts/run_tests.sh

dev: ## AddressSanitizer and UndefinedBehaviorSanitizer
	scripts/install_packages.sh build test
	scripts/run_tests.sh dev

tsan: ## ThreadSanitizer
	scripts/install_packages.sh build test
	scripts/run_tests.sh tsan

fuzz: ## a short run of every fuzz target
	scripts/install_packages.sh build test
	scripts/run_tests.sh fuzz

aarch64: ## cross build, tests under qemu-user
	scripts/run_tests.sh aarch64

lint: ## clang-tidy over every source file
	scripts/install_packages.sh build test dev
	scripts/lint.sh

format:
	git ls-files '*.h' '*.cpp' | xargs clang-format -i

check-format:
	scripts/run_tests.sh format

clean:
	rm -rf build
