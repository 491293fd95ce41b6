#!/usr/bin/env bash
# Builds the static programs into bin/: sandboxd, sbx, sbx-init.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/go.sh

# Static, because sbx and sbx-init run inside any image; without paths of this machine.
CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w" -o bin/ ./cmd/...
for program in sandboxd sbx sbx-init; do
  [ -x "bin/$program" ] || { echo "build: bin/$program was not built; is cmd/$program there?" >&2; exit 1; }
done
echo "build: bin/sandboxd bin/sbx bin/sbx-init"
