# shellcheck shell=bash disable=SC2034,SC2153
# What the throwaway services share: arguments, folders, free ports, locks, and processes that are
# ended only by a pid that is still the one we started. Sourced by scripts/services/NAME, which sets
# SVC_NAME and defines the svc_* hooks listed at svc_main, then calls `svc_main "$@"`.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
CACHE=${CDCD_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/cdcd}

say() { printf '%s: %s\n' "$SVC_NAME" "$*" >&2; }
die() { say "error: $*"; exit 1; }

need() { # need COMMAND... : stop with what to do when one is missing
    local c
    for c in "$@"; do
        command -v "$c" >/dev/null 2>&1 || die "'$c' is not installed; run scripts/setup"
    done
}

# ---- folders -----------------------------------------------------------------------------------

# The one folder outside the checkout: locks, port reservations, and whatever an unprivileged server
# must reach when the checkout or the cache lies under a folder that only we can enter.
runtime_dir() {
    local d
    d=/tmp/cdcd-services-$(id -u)
    if [[ ! -d $d ]]; then
        mkdir -m 0755 "$d" 2>/dev/null || [[ -d $d ]] || die "cannot create $d"
    fi
    [[ ! -L $d && -O $d ]] || die "$d belongs to somebody else; remove it"
    mkdir -p "$d/ports" "$d/locks"
    printf '%s\n' "$d"
}

hash_of() { printf '%s' "$1" | cksum | cut -d' ' -f1; }

# lock_take NAME: waits for and holds a lock until lock_drop or exit. A server must be launched with
# `8>&- 9>&-`, or it would inherit the lock and keep it.
lock_take() { exec 9>"$RUNTIME/locks/$1"; flock -w 300 9 || die "waited 300 s for $RUNTIME/locks/$1"; }
lock_drop() { exec 9>&-; }

# ---- ports -------------------------------------------------------------------------------------

port_listening() { # any socket in state LISTEN (0A) on this port, either family
    local hex
    hex=$(printf ':%04X' "$1")
    awk -v h="$hex" '$4 == "0A" && substr($2, length($2) - 4) == h { f = 1 } END { exit !f }' \
        /proc/net/tcp /proc/net/tcp6 2>/dev/null
}

# Below the kernel's ephemeral range, so that no outgoing connection takes it before the server does.
# A reservation of two minutes keeps two starts at the same time apart.
port_pick() {
    local p i
    exec 8>"$RUNTIME/ports/.lock"
    flock 8
    find "$RUNTIME/ports" -name '[0-9]*' -mmin +2 -delete 2>/dev/null || true
    for ((i = 0; i < 500; i++)); do
        p=$((20000 + RANDOM % 12000))
        [[ -e $RUNTIME/ports/$p ]] && continue
        port_listening "$p" && continue
        : >"$RUNTIME/ports/$p"
        exec 8>&-
        printf '%s\n' "$p"
        return 0
    done
    die "found no free port between 20000 and 32000"
}

# ---- processes ---------------------------------------------------------------------------------

proc_stat() { # proc_stat PID N: the N-th field of /proc/PID/stat, counted from 3 (the state) = 1
    local line
    local -a f
    { read -r line <"/proc/$1/stat"; } 2>/dev/null || return 1
    read -r -a f <<<"${line##*) }"
    printf '%s\n' "${f[$(($2 - 1))]}"
}

proc_start() { proc_stat "$1" 20; }

# Ours and alive: same pid, same start time, same command line mark, and no zombie.
proc_is() { # proc_is PID START MARK
    local state
    [[ -n $1 ]] || return 1
    state=$(proc_stat "$1" 1) || return 1
    [[ $state != Z && $state != X && $(proc_start "$1") == "$2" ]] || return 1
    [[ -z $3 ]] && return 0
    tr '\0' ' ' <"/proc/$1/cmdline" 2>/dev/null | grep -F -- "$3" >/dev/null
}

proc_children() { # prints "pid start" of each child
    local d p
    for d in /proc/[0-9]*; do
        p=${d#/proc/}
        if [[ $(proc_stat "$p" 2 || true) == "$1" ]]; then
            printf '%s %s\n' "$p" "$(proc_start "$p" || true)"
        fi
    done
}

wait_gone() { # wait_gone PID START MARK SECONDS
    local end=$((SECONDS + $4))
    while proc_is "$1" "$2" "$3"; do
        ((SECONDS <= end)) || return 1
        sleep 0.05
    done
}

# ---- the instance ------------------------------------------------------------------------------

STATE_KEYS=(SVC_VERSION SVC_PORT SVC_PORT2 SVC_PID SVC_START SVC_MARK SVC_HOME SVC_BIN SVC_SOCKET)

state_load() { # shellcheck source=/dev/null
    [[ -r $SVC_DIR/service.env ]] && . "$SVC_DIR/service.env"
}

state_save() {
    local k
    { for k in "${STATE_KEYS[@]}"; do printf '%s=%q\n' "$k" "${!k:-}"; done
    } >"$SVC_DIR/service.env.new"
    mv "$SVC_DIR/service.env.new" "$SVC_DIR/service.env"
}

svc_running() { proc_is "${SVC_PID:-}" "${SVC_START:-}" "${SVC_MARK:-}"; }

svc_show_log() {
    [[ -s $SVC_DIR/log ]] || return 0
    say "the end of $SVC_DIR/log:"
    tail -n 25 "$SVC_DIR/log" >&2
}

# End the server: the signals of svc_signals in turn, then SIGKILL; children that outlive it too
# (they hold the port and shared memory, and would stand in the way of the next start).
svc_end() { # svc_end SIGNAL:SECONDS...
    local step pid start kids
    svc_running || return 0
    kids=$(proc_children "$SVC_PID")
    for step in "$@" KILL:30; do
        kill -s "${step%:*}" "$SVC_PID" 2>/dev/null || true
        if wait_gone "$SVC_PID" "$SVC_START" "$SVC_MARK" "${step#*:}"; then break; fi
    done
    svc_running && die "pid $SVC_PID does not end"
    while read -r pid start; do
        [[ -n $pid ]] || continue
        wait_gone "$pid" "$start" "" 2 && continue
        kill -KILL "$pid" 2>/dev/null || true
        wait_gone "$pid" "$start" "" 10 || die "child $pid of the server does not end"
    done <<<"$kids"
    SVC_PID='' SVC_START=''
    state_save
}

do_start() {
    local s asked=$PORT
    if state_load && svc_running; then
        say "already running: $SVC_VERSION on 127.0.0.1:$SVC_PORT (pid $SVC_PID)"
        return 0
    fi
    SVC_PID='' SVC_START=''
    mkdir -p "$SVC_DIR"
    if [[ -z ${SVC_HOME:-} || ! -d ${SVC_HOME:-}/data ]]; then
        SVC_VERSION=$VERSION SVC_HOME=$SVC_DIR SVC_PORT='' SVC_PORT2=''
        FRESH=1
    else
        [[ -z $VERSION_GIVEN || $VERSION == "$SVC_VERSION" ]] ||
            die "$SVC_DIR holds data of version $SVC_VERSION; run '$0 stop --dir $SVC_DIR' first"
        FRESH=0
    fi
    svc_prepare
    # scripts/test reads this, to stop what a test that was killed has left running.
    [[ -z ${CDCD_SERVICES_LIST:-} ]] || printf '%s %s\n' "$SVC_NAME" "$SVC_DIR" >>"$CDCD_SERVICES_LIST"
    SVC_PORT=${asked:-${SVC_PORT:-$(port_pick)}}
    port_listening "$SVC_PORT" &&
        die "port $SVC_PORT is taken; choose another with --port, or leave --port out for a free one"
    # Kept beside the data, so that a later start or restart has them too; the last one of a name wins.
    for s in ${SETS[@]+"${SETS[@]}"}; do printf '%s\n' "$s" >>"$SVC_DIR/sets"; done
    touch "$SVC_DIR/sets"
    if ((FRESH)); then svc_init || { svc_show_log; die "could not create the data folder"; }; fi
    svc_configure
    [[ -e $SVC_DIR/log ]] && mv -f "$SVC_DIR/log" "$SVC_DIR/log.1"
    : >"$SVC_DIR/log"
    svc_launch # sets SVC_PID and SVC_MARK
    SVC_START=$(proc_start "$SVC_PID" || true)
    state_save
    local end=$((SECONDS + ${CDCD_SERVICE_TIMEOUT:-60}))
    until svc_ready; do
        # setsid and setpriv become the server by exec: the mark may not be there in the first moment
        if ! proc_is "$SVC_PID" "$SVC_START" ""; then
            svc_show_log
            die "the server ended while starting"
        fi
        if ((SECONDS > end)); then
            svc_show_log
            svc_end
            die "not ready after ${CDCD_SERVICE_TIMEOUT:-60} s (CDCD_SERVICE_TIMEOUT allows more)"
        fi
        sleep 0.05
    done
    say "ready: $SVC_VERSION on 127.0.0.1:$SVC_PORT (pid $SVC_PID, $SVC_HOME)"
}

do_stop() {
    state_load || { say "not there: $SVC_DIR"; return 0; }
    local was=
    if svc_running; then was=$SVC_PID; fi
    if ((KEEP)); then
        svc_end "${STOP_SIGNALS[@]}"
        say "stopped${was:+ (pid $was)}; data kept in $SVC_HOME"
        return 0
    fi
    svc_end "${DROP_SIGNALS[@]}"
    [[ -n $SVC_HOME && $SVC_HOME != "$SVC_DIR" ]] && rm -rf -- "$SVC_HOME"
    [[ -n ${SVC_SOCKET:-} && $SVC_SOCKET == "$RUNTIME"/s[0-9]* ]] && rm -rf -- "$SVC_SOCKET"
    # Only what we made: --dir may name a folder that holds other things.
    rm -rf -- "$SVC_DIR/data" "$SVC_DIR/run" "$SVC_DIR/log" "$SVC_DIR/log.1" "$SVC_DIR/sets" \
        "$SVC_DIR/server.properties" "$SVC_DIR/service.env" "$SVC_DIR/service.env.new"
    rmdir -- "$SVC_DIR" 2>/dev/null || true
    say "stopped${was:+ (pid $was)}; data removed"
}

do_kill() {
    if ! state_load || ! svc_running; then die "not running: $SVC_DIR"; fi
    local was=$SVC_PID
    svc_end
    say "killed (pid $was, SIGKILL); '$0 start' goes on with its data"
}

do_restart() {
    if state_load && svc_running; then svc_end "${STOP_SIGNALS[@]}"; fi
    do_start
}

do_env() {
    if ! state_load || ! svc_running; then die "not running: $SVC_DIR; run '$0 start' first"; fi
    svc_env
}

do_status() {
    if state_load && svc_running; then
        printf '%s %s running on 127.0.0.1:%s, pid %s, %s\n' \
            "$SVC_NAME" "$SVC_VERSION" "$SVC_PORT" "$SVC_PID" "$SVC_HOME"
        return 0
    fi
    printf '%s stopped%s\n' "$SVC_NAME" "$([[ -d ${SVC_HOME:-/nonexistent}/data ]] && printf ', data kept in %s' "$SVC_HOME")"
    return 3
}

export_line() { printf 'export %s=%q\n' "$1" "$2"; }

svc_usage() {
    cat <<USAGE
usage: scripts/services/$SVC_NAME COMMAND [OPTION]...

  start     start a throwaway $SVC_NAME on 127.0.0.1 and wait until it is ready; does nothing when it runs
  stop      stop it and remove its data (--keep keeps them for the next start)
  restart   stop in good order and start again on the same port and data; starts it when it is down
  kill      SIGKILL; 'start' then recovers on the same port and data
  env       shell variables with its address: eval "\$(scripts/services/$SVC_NAME env)"
  status    one line; exit status 0 when it runs, 3 when not

  --version V       $VERSION_HELP
  --port P          default: a free port, the same one again for kept data
  --dir D           the instance's folder; default: build/services/$SVC_NAME-VERSION[-PORT]
  --set NAME=VALUE  a server setting, repeatable (start and restart); kept with the data
  --keep            with stop

The instance is found by its folder: give the same --version, --port or --dir to every command.
Environment: CDCD_SERVICES_DIR (instead of build/services), CDCD_CACHE (downloads; now $CACHE).
USAGE
}

# Hooks: svc_default_version svc_check_version svc_prepare (binaries, SVC_HOME) svc_init (fresh data)
# svc_configure svc_launch svc_ready svc_env; arrays STOP_SIGNALS and DROP_SIGNALS; VERSION_HELP.
svc_main() {
    local cmd=${1:-}
    [[ $# -gt 0 ]] && shift
    VERSION='' VERSION_GIVEN='' PORT='' SVC_DIR='' KEEP=0 FRESH=0 SETS=()
    case $cmd in
    start | stop | restart | kill | env | status) ;;
    -h | --help | help) svc_usage; exit 0 ;;
    *) svc_usage >&2; exit 2 ;;
    esac
    while [[ $# -gt 0 ]]; do
        case $1 in
        --keep) KEEP=1; shift; continue ;;
        -h | --help) svc_usage; exit 0 ;;
        --*=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" ;;
        esac
        [[ $# -ge 2 ]] || { say "'$1' needs a value or is unknown; see --help"; exit 2; }
        case $1 in
        --version) VERSION=$2 VERSION_GIVEN=1 ;;
        --port)
            [[ $2 =~ ^[0-9]{1,5}$ && $2 -ge 1 && $2 -le 65535 ]] || { say "'$2' is no port"; exit 2; }
            PORT=$2
            ;;
        --dir) SVC_DIR=$2 ;;
        --set)
            [[ $2 =~ ^[A-Za-z0-9_.-]+= ]] || { say "--set wants NAME=VALUE, not '$2'"; exit 2; }
            SETS+=("$2")
            ;;
        *) say "unknown option '$1'; see --help"; exit 2 ;;
        esac
        shift 2
    done
    [[ -n $VERSION ]] || VERSION=$(svc_default_version)
    svc_check_version
    if [[ -z $SVC_DIR ]]; then
        SVC_DIR=${CDCD_SERVICES_DIR:-$ROOT/build/services}/$SVC_NAME-$VERSION${PORT:+-$PORT}
    fi
    SVC_DIR=$(realpath -m -- "$SVC_DIR")
    RUNTIME=$(runtime_dir)
    case $cmd in
    start | stop | restart | kill)
        lock_take "$SVC_NAME-$(hash_of "$SVC_DIR")"
        ;;
    esac
    "do_$cmd"
}
