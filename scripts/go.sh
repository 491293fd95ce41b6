#!/usr/bin/env bash
# Checks that the Go this project needs is there. Prints nothing when it is.
set -euo pipefail
cd "$(dirname "$0")/.."

need=$(awk '$1 == "go" { print $2; exit }' go.mod)
hint="install Go $need or newer from https://go.dev/dl/ and put its bin folder first on PATH"
command -v go >/dev/null 2>&1 || { echo "go: Go is not installed; $hint" >&2; exit 1; }
# An older go fetches the newer toolchain by itself where GOTOOLCHAIN allows it; what counts is the one used here.
have=$(go env GOVERSION 2>&1) || { echo "go: $have; $hint" >&2; exit 1; }
have=${have#go}
have=${have%% *}
[ "$(printf '%s\n' "$need" "$have" | sort -V | head -n 1)" = "$need" ] || { echo "go: this is Go $have; $hint" >&2; exit 1; }
