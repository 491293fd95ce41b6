# sandboxd. `make` lists the targets; what they do stands in scripts/.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
# The targets share one engine and bin/, so they run one after the other.
.NOTPARALLEL:
.PHONY: help run test engine images build daemon stop lint bench chaos fuzz cover

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

run: engine images build ## from a fresh clone to a first job: engine, images, programs, daemon, demo
	@scripts/run.sh

test: engine images build lint ## everything CI runs: lint, then all tests with the race detector, on the real engine
	@scripts/test.sh

engine: ## make sure a Docker engine answers; on Debian as root install and start one
	@scripts/engine.sh

images: ## build the images tiny and base and load them; cached by recipe (IMAGES_FLAGS=-force builds again)
	@scripts/go.sh
	@go run -buildvcs=false ./images $(IMAGES_FLAGS) tiny base

build: ## build the static programs bin/sandboxd, bin/sbx, bin/sbx-init
	@scripts/build.sh

daemon: engine images build ## start the daemon in the background (SANDBOXD_FLAGS are passed to it)
	@scripts/daemon.sh start

stop: ## stop the daemon that 'make daemon' started
	@scripts/daemon.sh stop

lint: ## check the code: gofmt, go vet, staticcheck
	@scripts/lint.sh

bench: engine images build ## measure latency and throughput on this machine
	@SANDBOXD_TEST_BIN=$(CURDIR)/bin go test -buildvcs=false -count=1 -run "^$$" -bench . -benchtime 1x ./test/bench

chaos: engine images build ## break the daemon, the engine and the disk under load, and count what is lost
	@scripts/chaos.sh

fuzz: ## fuzz every target for FUZZTIME (60s) each
	@scripts/fuzz.sh

cover: engine images build ## test coverage of all packages, into bin/cover.out
	@SANDBOXD_TEST_BIN=$(CURDIR)/bin go test -coverpkg=./... -coverprofile=bin/cover.out ./... >bin/cover.log || { tail -n 40 bin/cover.log; exit 1; }
	@go tool cover -func=bin/cover.out | tail -n 1
