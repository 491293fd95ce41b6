#!/usr/bin/env bash
# Makes sure programs are there: deps.sh PROGRAM... Installs the Debian package of each missing one, as root;
# else says what to install.
set -euo pipefail

die() { printf 'deps: %s\n' "$*" >&2; exit 1; }

packages_of() {
  case $1 in
    busybox)   echo busybox-static ;;
    curl)      echo curl ca-certificates ;;
    dockerd)   echo docker.io ;;
    flock)     echo util-linux ;;
    gcc)       echo gcc libc6-dev ;;
    mkfs.ext4) echo e2fsprogs ;;
    *)         echo "$1" ;;
  esac
}

PATH=$PATH:/usr/sbin:/sbin
missing=() packages=()
for program in "$@"; do
  command -v "$program" >/dev/null 2>&1 && continue
  missing+=("$program")
  read -ra more <<<"$(packages_of "$program")"
  packages+=("${more[@]}")
done
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
  die "missing: ${missing[*]}; install them (Debian, Ubuntu: sudo apt-get install ${packages[*]}) and try again"
fi
printf 'deps: missing %s; installing %s with apt-get\n' "${missing[*]}" "${packages[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() { apt-get install -y --no-install-recommends "${packages[@]}" >"$log" 2>&1 </dev/null; }
# The lists may be absent or old: fetch them when the first try fails.
install || { apt-get update >"$log" 2>&1 && install; } || {
  tail -n 20 "$log" >&2
  die "apt-get install ${packages[*]} failed; its last lines stand above"
}
