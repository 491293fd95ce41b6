#!/usr/bin/env bash
# Checks the code: gofmt, go vet, staticcheck (at the version tools/go.mod names).
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/go.sh

unformatted=$(find . \( -path ./.git -o -path ./bin -o -name testdata \) -prune -o -name '*.go' -print0 | xargs -0r gofmt -l)
if [ -n "$unformatted" ]; then
  printf 'lint: not formatted, run gofmt -w on:\n%s\n' "$unformatted" >&2
  exit 1
fi
go vet ./...
# Behind a tag, so the line above does not see it.
if [ -d test/chaos ]; then go vet -tags chaos ./test/chaos/...; fi
go build -C tools -buildvcs=false -o ../bin/tools/staticcheck honnef.co/go/tools/cmd/staticcheck
bin/tools/staticcheck ./...
echo "lint: gofmt, go vet, staticcheck: no findings"
