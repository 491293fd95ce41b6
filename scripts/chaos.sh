#!/usr/bin/env bash
# Runs the chaos rounds: crashes, hangs and full disks under load, against a real engine.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ ! -d test/chaos ]; then
  echo "chaos: there is no test/chaos yet; the chaos rounds come with the recovery work" >&2
  exit 1
fi
scripts/go.sh
scripts/deps.sh gcc strace mkfs.ext4
export SANDBOXD_TEST_BIN=$PWD/bin
go test -race -tags chaos -count 1 -v -timeout 3h ./test/chaos/...
