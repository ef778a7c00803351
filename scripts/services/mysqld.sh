# shellcheck shell=bash disable=SC2034,SC2153
# What the throwaway MySQL and MariaDB share: binaries of Debian's unstable suite unpacked beside the
# machine's own, fresh data copied from a template, the start and the addresses. Sourced by
# scripts/services/mysql and scripts/services/mariadb after common.sh. They set
#   DAEMON        the server's binary in SVC_BIN
#   ENV_PREFIX    of the variables that `env` prints
# and define server_conf, which prints what only that server understands.

# The server has no clients that could hold up a shutdown; a dump thread ends at once.
STOP_SIGNALS=(TERM:30)
DROP_SIGNALS=() # the data go anyway

# ---- binaries ----------------------------------------------------------------------------------

# The mirror this machine installs from; CDCD_DEBIAN_MIRROR where it is no Debian.
debian_mirror() {
    if [[ -n ${CDCD_DEBIAN_MIRROR:-} ]]; then
        printf '%s\n' "$CDCD_DEBIAN_MIRROR"
        return
    fi
    apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Created-By: Packages' 2>/dev/null |
        awk '!/-security/ { print; exit }'
}

# apt with a configuration of its own in $APT_DIR: nothing of the machine's is read or changed.
sid_apt() {
    local tool=$1
    shift
    local -a own=(-o "Dir::State=$APT_DIR" -o "Dir::State::lists=$APT_DIR/lists"
        -o "Dir::State::status=$APT_DIR/status" -o "Dir::Cache=$APT_DIR/cache"
        -o "Dir::Etc::sourcelist=$APT_DIR/sources.list" -o Dir::Etc::sourceparts=/dev/null
        -o Dir::Etc::preferencesparts=/dev/null -o Acquire::Retries=3 -o Acquire::Languages=none)
    # Else apt drops to a user that cannot enter a folder below /root.
    [[ $(id -u) -ne 0 ]] || own+=(-o APT::Sandbox::User=root)
    "$tool" "${own[@]}" "$@"
}

sid_prepare() { # sid_prepare DIR: the package lists of the suite, in DIR
    local mirror keys=/usr/share/keyrings/debian-archive-keyring.gpg
    APT_DIR=$1
    need apt-get apt-cache dpkg dpkg-deb
    mirror=$(debian_mirror)
    [[ -n $mirror ]] || die "this machine installs from no Debian mirror; name one in CDCD_DEBIAN_MIRROR"
    [[ -r $keys ]] || die "no $keys; install debian-archive-keyring"
    mkdir -p "$APT_DIR/lists/partial" "$APT_DIR/cache/archives/partial"
    : >"$APT_DIR/status"
    printf 'deb [signed-by=%s] %s sid main\n' "$keys" "$mirror" >"$APT_DIR/sources.list"
    sid_apt apt-get -q update >"$APT_DIR/log" 2>&1 || {
        tail -n 20 "$APT_DIR/log" >&2
        die "could not read the package lists of $mirror; is the network there?"
    }
}

sid_version() { # sid_version PACKAGE: the candidate's upstream version, 9.7.4 of 9.7.4-2
    sid_apt apt-cache policy "$1" | sed -n 's/^ *Candidate: \([0-9]*:\)\{0,1\}\([0-9.]*[0-9]\).*/\2/p'
}

# sid_unpack ROOT PACKAGE...: the packages and what they link, unpacked into ROOT, each program callable
# as ROOT/bin/NAME with the loader and libraries beside it. Perl is for scripts that nobody calls.
sid_unpack() {
    local root=$1 p f name loader libs
    shift
    local -a names=()
    for p in "$@"; do
        while read -r name; do
            case $name in
            perl* | libperl* | libgdbm* | libdb5* | gcc-* | libc-gconv* | mecab*) ;;
            *) names+=("$name") ;;
            esac
        done < <(sid_apt apt-get install --print-uris -qq -y --no-install-recommends "$p" |
            awk '{ split($2, f, "_"); print f[1] }')
    done
    [[ ${#names[@]} -gt 0 ]] || die "apt finds no way to install $*"
    mkdir -p "$root" "$APT_DIR/debs"
    mapfile -t names < <(printf '%s\n' "${names[@]}" | sort -u)
    (cd "$APT_DIR/debs" && sid_apt apt-get -q download "${names[@]}") >"$APT_DIR/log" 2>&1 || {
        tail -n 20 "$APT_DIR/log" >&2
        die "could not download the packages; is the network there?"
    }
    for f in "$APT_DIR"/debs/*.deb; do dpkg-deb -x "$f" "$root"; done
    loader=$(cd "$root" && compgen -G 'usr/lib*/ld-linux*.so.*' | head -n 1) || true
    libs=$(cd "$root" && compgen -G 'usr/lib/*-linux-gnu' | head -n 1) || true
    [[ -n $loader && -n $libs ]] || die "no dynamic loader among the packages"
    mkdir -p "$root/bin.new"
    for f in "$root"/usr/bin/* "$root"/usr/sbin/*; do
        [[ -f $f && -x $f && $(head -c 4 "$f" | tail -c 3) == ELF ]] || continue
        {
            # shellcheck disable=SC2016
            printf '#!/bin/sh\nr=${0%%/bin/*}\nexec "$r/%s" --library-path "$r/%s" "$r/%s" "$@"\n' \
                "$loader" "$libs" "${f#"$root"/}"
        } >"$root/bin.new/${f##*/}"
        chmod 0755 "$root/bin.new/${f##*/}"
    done
    # Debian of today has /bin as a link into /usr; ours is a folder of wrappers.
    rm -rf "$root/bin"
    mv "$root/bin.new" "$root/bin"
}

# Waits for and holds the lock of what is fetched or made once; cache_unlock or exit ends it.
cache_lock() {
    exec 7>"$RUNTIME/locks/$1"
    flock -w 600 7 || die "waited 600 s for another download of $1"
}
cache_unlock() { exec 7>&-; }

# ---- the instance ------------------------------------------------------------------------------

run_user() { if [[ $(id -u) -eq 0 ]]; then printf 'user = root\n'; fi; }

# Accounts of the template: everybody may do all as root without a password, cdcd may what a pipeline
# needs. $1: more privileges of cdcd.
accounts_sql() {
    cat <<SQL
CREATE USER IF NOT EXISTS 'root'@'%' IDENTIFIED BY '';
GRANT ALL PRIVILEGES ON *.* TO 'root'@'%' WITH GRANT OPTION;
CREATE USER 'cdcd'@'%' IDENTIFIED BY 'cdcd';
GRANT SELECT, RELOAD, LOCK TABLES, SHOW DATABASES, REPLICATION CLIENT, REPLICATION SLAVE${1:+, $1}
    ON *.* TO 'cdcd'@'%';
SQL
}

prepare_data() {
    ((FRESH)) || return 0
    rm -rf -- "$SVC_HOME/data"
    # A socket's path is limited to 107 bytes.
    SVC_SOCKET=$SVC_HOME/run
    ((${#SVC_SOCKET} <= 80)) || SVC_SOCKET=$RUNTIME/s$(hash_of "$SVC_DIR")
    mkdir -p "$SVC_HOME/data/tmp" "$SVC_SOCKET"
}

svc_init() {
    cp -a "$TEMPLATE" "$SVC_HOME/data/db" || { rm -rf -- "$SVC_HOME/data"; return 1; }
}

svc_configure() {
    local name value
    {
        cat <<CONF
# Written at every start; change settings with --set NAME=VALUE.
[mysqld]
$(run_user)
bind_address = 127.0.0.1
port = $SVC_PORT
socket = $SVC_SOCKET/sock
datadir = $SVC_HOME/data/db
tmpdir = $SVC_HOME/data/tmp
pid_file = $SVC_HOME/data/pid
skip_name_resolve = ON
server_id = $SVC_PORT
max_connections = 200
max_allowed_packet = 256M
binlog_format = ROW
binlog_row_image = FULL
binlog_row_metadata = FULL
binlog_checksum = CRC32
# Written at each commit, which a killed server survives; not synced, which only the machine would need.
sync_binlog = 0
innodb_flush_log_at_trx_commit = 2
innodb_buffer_pool_size = 128M
$(server_conf)
CONF
        while IFS='=' read -r name value; do
            printf '%s%s\n' "$name" "${value:+ = $value}"
        done <"$SVC_DIR/sets"
    } >"$SVC_HOME/data/my.cnf"
    # Left by a server that was killed; a live one was ruled out before. The pid in it may be another's.
    rm -f -- "$SVC_SOCKET"/sock*
}

svc_launch() {
    SVC_MARK="--defaults-file=$SVC_HOME/data/my.cnf"
    cd "$SVC_HOME/data"
    LC_ALL=C setsid "$SVC_BIN/$DAEMON" "$SVC_MARK" </dev/null >>"$SVC_DIR/log" 2>&1 7>&- 8>&- 9>&- &
    SVC_PID=$!
    cd "$OLDPWD"
}

svc_ready() {
    grep 'ready for connections' "$SVC_DIR/log" >/dev/null && port_listening "$SVC_PORT"
}

svc_env() {
    local p=CDCD_$ENV_PREFIX
    export_line "${p}_HOST" 127.0.0.1
    export_line "${p}_PORT" "$SVC_PORT"
    export_line "${p}_URL" "mysql://cdcd:cdcd@127.0.0.1:$SVC_PORT"
    export_line "${p}_USER" cdcd
    export_line "${p}_PASSWORD" cdcd
    export_line "${p}_ROOT_URL" "mysql://root@127.0.0.1:$SVC_PORT"
    export_line "${p}_SOCKET" "$SVC_SOCKET/sock"
    export_line "${p}_BIN" "$SVC_BIN"
    export_line "${p}_CLIENT" "$(tool "${CLIENTS[@]}")"
    export_line "${p}_BINLOG" "$(tool "${BINLOG_TOOLS[@]}")"
    export_line "${p}_PID" "$SVC_PID"
    export_line "${p}_DATA" "$SVC_HOME/data/db"
    export_line "${p}_VERSION" "$SVC_VERSION"
    export_line "${p}_LOG" "$SVC_DIR/log"
}

tool() { # tool NAME...: the first that is there, beside the server or in PATH
    local t
    for t in "$@"; do
        if [[ -x $SVC_BIN/$t ]]; then printf '%s\n' "$SVC_BIN/$t"; return; fi
    done
    for t in "$@"; do
        if command -v "$t"; then return; fi
    done
}
