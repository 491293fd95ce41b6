#!/usr/bin/env bash
# A first real job: starts the daemon in the background and runs three review tasks over this very repository at once,
# each in a hardened container of its own with the repository mounted read-only. Called by `make run`.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/daemon.sh start
export SANDBOXD_SOCKET=${SANDBOXD_SOCKET:-/run/sandboxd/sandboxd.sock}
sbx=bin/sbx
say() { printf 'run: %s\n' "$*"; }

repo=$PWD
packages="./internal/wire ./internal/supervise ./cmd/sbx-init"
goroot=$(go env GOROOT)
modules=$(go env GOMODCACHE)
# A build cache the vet task may copy: a container begins with none, and compiling the library again takes longer than
# the review.
cache=$repo/bin/run/gocache
mkdir -p "$cache"
# shellcheck disable=SC2086 # packages are words
GOCACHE=$cache CGO_ENABLED=0 GOFLAGS=-buildvcs=false go vet $packages
chmod -R o+rX "$cache"

results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
failed=0

# task NAME FLAGS... -- COMMAND: one job in the foreground, its output labelled, its result kept for the table.
task() {
  local name=$1; shift
  "$sbx" run --name "$name" --label demo=review --prefix "$name" --workspace "$repo" --timeout 3m "$@" &&
    echo 0 >"$results/$name" || echo $? >"$results/$name"
}

say "three review tasks over this repository, at once, each in a container of its own:"
began=$(date +%s%N)
task vet --cpus 2 --memory 2GiB --home-size 1GiB --mount "$goroot:go" --mount "$modules:modules" --mount "$cache:cache" \
  -e CGO_ENABLED=0 -e GOROOT=/mnt/go -e GOMODCACHE=/mnt/modules -e GOPROXY=off -e GOFLAGS=-buildvcs=false -e GOTOOLCHAIN=local \
  -- sh -c "mkdir -p ~/.cache && cp -r /mnt/cache ~/.cache/go-build && /mnt/go/bin/go vet -v $packages && echo 'go vet: nothing to complain about'" &
task secrets -- sh -c '
  cd /workspace
  found=$(git -c safe.directory=/workspace grep -InE "AKIA[0-9A-Z]{16}|-----BEGIN [A-Z ]*PRIVATE KEY-----|ghp_[A-Za-z0-9]{36}" -- . ":!*_test.go" ":!scripts/run.sh") || true
  git -c safe.directory=/workspace ls-files | wc -l | xargs printf "%s files searched for keys and tokens\n"
  if [ -n "$found" ]; then printf "%s\n" "$found"; exit 1; fi
  echo "no secrets found"' &
task history -- sh -c '
  g="git -c safe.directory=/workspace -C /workspace"
  echo "$($g rev-list --count HEAD) commits; the last five:"
  $g log -5 --format="%h %cs %s"
  echo "folders that changed most in them:"
  $g log -5 --name-only --format= | cut -d/ -f1,2 | sort | uniq -c | sort -rn | head -n 5' &
wait
took=$(( ($(date +%s%N) - began) / 1000000 ))

echo
say "results (${took} ms in all):"
"$sbx" ps -a -n 3 -f label=demo=review
for name in vet secrets history; do
  [ "$(cat "$results/$name" 2>/dev/null || echo missing)" = 0 ] || failed=1
done
cat <<TEXT

What to type next (bin/sbx, or put bin/ on your PATH):
  bin/sbx run --image sandboxd/tiny -- echo hello     one job, live
  bin/sbx run -d --workspace . -- sh -c 'ls | wc -l'  in the background; prints its id
  bin/sbx ps -a                                       all jobs
  bin/sbx logs vet                                    the output of one again
  bin/sbx inspect vet                                 what bounds it, and what the start gate saw
  make stop                                           stop the daemon
TEXT
[ "$failed" = 0 ] || { say "at least one task did not succeed; its lines stand above" >&2; exit 1; }
