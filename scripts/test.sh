#!/usr/bin/env bash
# Runs the tests with the race detector: test.sh [PACKAGE...]. The last line counts passed, failed, skipped.
# Expects a running engine, the images and bin/ (make test sees to them).
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/go.sh
scripts/deps.sh gcc git strace mmdebstrap busybox mkfs.ext4

export SANDBOXD_TEST_BIN=$PWD/bin SANDBOXD_TEST_ENGINE=required SANDBOXD_TEST_IMAGE=sandboxd/tiny
[ $# -gt 0 ] || set -- ./...
go build -buildvcs=false -o bin/tools/testsum ./test/testsum
# -vet=off: lint has run it. Errors before any test (a go.mod that is wrong) come on stderr, beside the report.
go test -race -vet=off -timeout 20m -json "$@" | bin/tools/testsum
