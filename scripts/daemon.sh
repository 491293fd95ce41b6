#!/usr/bin/env bash
# Runs bin/sandboxd in the background: daemon.sh start|stop. SANDBOXD_FLAGS are passed to it.
set -euo pipefail
cd "$(dirname "$0")/.."

socket=${SANDBOXD_SOCKET:-/run/sandboxd/sandboxd.sock}
run=$PWD/bin/run
log=$run/sandboxd.log
say() { printf 'daemon: %s\n' "$*"; }
die() { printf 'daemon: %s\n' "$*" >&2; exit 1; }

# Prints the pid of the daemon started here, if it is still that very process.
running() {
  local pid start
  read -r pid start 2>/dev/null <"$run/pid" || return 1
  [ -n "$start" ] && [ "$(started "$pid")" = "$start" ] && echo "$pid"
}
started() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }
# Whether a daemon answers: 0 with its engine, 4 without.
listening() { local code=0; SANDBOXD_SOCKET=$socket bin/sbx daemon status >/dev/null 2>&1 || code=$?; [ $code = 0 ] || [ $code = 4 ]; }

start() {
  local pid
  if pid=$(running); then
    # A daemon whose program was built anew gives way to the new one; its jobs go on.
    case $(readlink "/proc/$pid/exe") in
      *"(deleted)") say "bin/sandboxd is newer than the running daemon, which makes room for it"; (stop) ;;
      *) say "runs already, pid $pid"; exit 0 ;;
    esac
  fi
  listening && die "another daemon listens at $socket; stop it, or set SANDBOXD_SOCKET and SANDBOXD_FLAGS"
  [ -x bin/sandboxd ] || die "bin/sandboxd is not there; run 'make build'"
  mkdir -p "$run"
  # shellcheck disable=SC2086 # flags are words
  setsid nohup bin/sandboxd ${SANDBOXD_FLAGS:-} >"$log" 2>&1 </dev/null &
  pid=$!
  echo "$pid $(started "$pid")" >"$run/pid"
  for _ in $(seq 1 150); do
    if listening; then say "listens at $socket, pid $pid, log $log"; exit 0; fi
    [ -n "$(running)" ] || { tail -n 20 "$log" >&2; rm -f "$run/pid"; die "sandboxd ended at once; its log stands above"; }
    sleep 0.2
  done
  die "sandboxd (pid $pid) does not listen at $socket after 30 s; its log: $log"
}

stop() {
  local pid
  pid=$(running) || { say "no daemon started here runs"; rm -f "$run/pid"; exit 0; }
  kill -TERM "$pid"
  for _ in $(seq 1 150); do
    [ -n "$(running)" ] || { rm -f "$run/pid"; say "stopped"; exit 0; }
    sleep 0.2
  done
  die "sandboxd (pid $pid) did not stop within 30 s; its log: $log"
}

case ${1:-} in
  start) start ;;
  stop) stop ;;
  *) die "usage: daemon.sh start|stop" ;;
esac
