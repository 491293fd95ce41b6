#!/usr/bin/env bash
# Fuzzes every target for FUZZTIME (60s), then runs the property tests of algebra and ledger RAPIDCHECKS (10000) times each:
# fuzz.sh [PACKAGE...]. Inputs that fail are kept in testdata.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/go.sh

time=${FUZZTIME:-60s}
[ $# -gt 0 ] || set -- ./...
# go test lists a package's targets, then "ok PACKAGE".
listed=$(go test -vet=off -list '^Fuzz' "$@")
targets=$(awk '/^Fuzz/ { names[n++] = $1 } /^ok/ { for (i = 0; i < n; i++) print $2, names[i]; n = 0 }' <<<"$listed")
[ -n "$targets" ] || { echo "fuzz: no fuzz target in $*" >&2; exit 1; }

failed=0
while read -r package name; do
  echo "fuzz: $package $name for $time"
  go test -vet=off -run '^$' -fuzz "^$name\$" -fuzztime "$time" "$package" </dev/null || failed=$((failed + 1))
done <<<"$targets"
echo "fuzz: $(wc -l <<<"$targets") targets, $failed failed"

checks=${RAPIDCHECKS:-10000}
for suite in ./internal/envelope:. ./internal/budget:. ./internal/store:Model ./internal/scheduler:WhateverHappens; do
  echo "fuzz: ${suite%%:*}, $checks cases of each property"
  go test -vet=off -count=1 -timeout 4h -run "${suite##*:}" "${suite%%:*}" -rapid.checks="$checks" </dev/null || failed=$((failed + 1))
done
[ "$failed" = 0 ]
