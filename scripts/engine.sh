#!/usr/bin/env bash
# Makes sure a Docker engine answers: engine.sh [start|status|stop].
#   start   uses the engine that is there (DOCKER_HOST honoured); else, as root on Debian or Ubuntu,
#           installs docker.io and starts dockerd; else says exactly what to do. The default.
#   status  tells whether an engine answers, changes nothing.
#   stop    stops the dockerd that start started, and no other.
set -euo pipefail

state=${SANDBOXD_ENGINE_STATE:-/var/lib/sandboxd-engine}
host=${DOCKER_HOST:-unix:///var/run/docker.sock}
log=$state/dockerd.log
say() { printf 'engine: %s\n' "$*"; }
die() { printf 'engine: %s\n' "$*" >&2; exit 1; }

# Asks the engine itself, not a docker client: the client may be absent or foreign.
ask() {
  case $host in
    unix://*) curl -fsS --max-time 5 --unix-socket "${host#unix://}" "http://engine$1" 2>/dev/null ;;
    tcp://*)  curl -fsS --max-time 5 "http://${host#tcp://}$1" 2>/dev/null ;;
  esac
}
answers() { [ "$(ask /_ping)" = OK ]; }

# The one way out that means success. API 1.41 is that of Engine 20.10.
ready() {
  local api
  api=$(ask /version | grep -o '"ApiVersion":"[0-9.]*"' | head -n 1 | cut -d'"' -f4 || true)
  [ "$(printf '%s\n' 1.41 "${api:-0}" | sort -V | head -n 1)" = 1.41 ] ||
    die "the engine at $host speaks API ${api:-unknown}; Docker Engine 20.10 (API 1.41) or newer is needed"
  say "$1 at $host (API $api)"
  exit 0
}

# Checks a recorded "pid start-time": a pid alone may be another process by now.
started() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }
ours() {
  local pid start
  read -r pid start 2>/dev/null <"$state/dockerd.pid" || return 1
  [ -n "$start" ] && [ "$(started "$pid")" = "$start" ] && echo "$pid"
}

install_engine() {
  grep -qE '^ID(_LIKE)?=.*(debian|ubuntu)' /etc/os-release 2>/dev/null ||
    die "no engine answers and this system is not Debian or Ubuntu; install Docker Engine 20.10 or newer and start dockerd"
  "$(dirname "$0")/deps.sh" dockerd iptables
  sleep 1 # the package may have started it
}

# A dockerd that runs without answering yet: started by its package, by hand, or busy with its containers.
dockerd_runs() {
  local pid
  pid=$(cat /var/run/docker.pid 2>/dev/null) && [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = dockerd ]
}

# Waits a minute for an answer; the condition given must hold meanwhile.
await() {
  for _ in $(seq 1 300); do
    if answers; then return 0; fi
    "$@" || return 1
    sleep 0.2
  done
  return 1
}

# What a killed dockerd leaves behind keeps the next from starting: its pid file, and a containerd pid that
# by now may belong to another process, whose socket dockerd would wait on for a minute.
clear_leftovers() {
  rm -f /var/run/docker.pid
  local pid
  pid=$(cat /var/run/docker/containerd/containerd.pid 2>/dev/null || true)
  if [ -n "$pid" ] && [ "$(cat "/proc/$pid/comm" 2>/dev/null)" != containerd ]; then
    rm -f /var/run/docker/containerd/containerd.pid
  fi
}

# Starts dockerd with the given options and waits until it answers or is dead.
start_dockerd() {
  clear_leftovers
  setsid nohup dockerd "$@" >>"$log" 2>&1 </dev/null 9>&- &
  local pid=$!
  echo "$pid $(started "$pid")" >"$state/dockerd.pid"
  await kill -0 "$pid" 2>/dev/null
}

start() {
  "$(dirname "$0")/deps.sh" curl
  if answers; then ready "an engine answers"; fi
  [ -z "${DOCKER_HOST:-}" ] || die "no engine answers at DOCKER_HOST=$DOCKER_HOST; start it, or unset DOCKER_HOST to use a local one"
  [ "$(id -u)" = 0 ] || die "no engine answers at $host, or you may not use it; run 'sudo make engine', or install Docker (Debian: sudo apt-get install docker.io), start it and join its group"

  mkdir -p "$state"
  # Two at once would start two daemons; the second waits and finds the first one's.
  exec 9>"$state/lock"
  flock -w 120 9 || die "another engine.sh has held $state/lock for 2 minutes"
  if answers; then ready "an engine answers"; fi
  command -v dockerd >/dev/null 2>&1 || install_engine

  if [ -d /run/systemd/system ]; then
    say "starting docker.service"
    systemctl start docker.service || die "systemctl start docker.service failed; see 'journalctl -u docker.service'"
    if await true; then ready "the engine answers"; fi
    die "docker.service does not answer at $host; see 'journalctl -u docker.service'"
  fi
  if dockerd_runs; then
    say "waiting for the dockerd that runs"
    if await dockerd_runs; then ready "the engine answers"; fi
    if dockerd_runs; then die "dockerd (pid $(cat /var/run/docker.pid)) runs and does not answer at $host; see its log, or stop it and try again"; fi
  fi
  say "starting dockerd (log: $log)"
  if [ -f "$log" ]; then mv "$log" "$log.1"; fi
  if start_dockerd; then ready "the engine answers"; fi
  # Jobs run without a network, so an engine that cannot set up its bridge here is good enough.
  if [ -z "$(ours)" ] && grep -qiE 'iptables|nf_tables|bridge' "$log"; then
    say "dockerd could not set up its network; starting it without a bridge"
    if start_dockerd --bridge=none --iptables=false --ip6tables=false; then ready "the engine answers"; fi
  fi
  tail -n 20 "$log" >&2 || true
  die "dockerd did not answer at $host within 60 s, or ended; its log stands above"
}

stop() {
  local pid
  pid=$(ours) || { say "no dockerd of ours runs"; exit 0; }
  say "stopping dockerd, pid $pid"
  kill -TERM "$pid"
  for _ in $(seq 1 150); do
    [ -n "$(ours)" ] || { rm -f "$state/dockerd.pid"; exit 0; }
    sleep 0.2
  done
  die "dockerd (pid $pid) did not stop within 30 s; its log: $log"
}

case $host in
  unix://*|tcp://*) ;;
  *) die "DOCKER_HOST=$host: only unix:///path and tcp://host:port are supported" ;;
esac
case ${1:-start} in
  start) start ;;
  status) if answers; then ready "an engine answers"; fi; die "no engine answers at $host" ;;
  stop) stop ;;
  *) die "usage: engine.sh [start|status|stop]" ;;
esac
