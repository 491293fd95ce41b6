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
for suite in ./internal/envelope ./internal/budget; do
  echo "fuzz: $suite, $checks cases of each property"
  go test -vet=off -count=1 -timeout 4h "$suite" -rapid.checks="$checks" </dev/null || failed=$((failed + 1))
done
# The models end a run when its clock says so, and in a bubble of fake time that is soon: they are run until the cases add up.
for suite in ./internal/store:TestSQLiteFollowsTheModel ./internal/scheduler:TestWhateverHappensTheBoundsHoldAndEverythingEnds \
  ./internal/scheduler:TestForestsKeepTheirBoundsWhateverHappens; do
  done=0
  while [ "$done" -lt "$checks" ]; do
    out=$(go test -vet=off -count=1 -timeout 4h -v -run "^${suite##*:}\$" "${suite%%:*}" -rapid.checks="$checks" </dev/null) ||
      { printf '%s\n' "$out"; failed=$((failed + 1)); break; }
    ran=$(grep -oE 'passed [0-9]+ tests' <<<"$out" | grep -oE '[0-9]+' | sort -n | head -n 1)
    [ -n "$ran" ] || { echo "fuzz: ${suite##*:} ran no case" >&2; failed=$((failed + 1)); break; }
    done=$((done + ran))
  done
  echo "fuzz: ${suite##*:}, $done cases"
done
[ "$failed" = 0 ]
