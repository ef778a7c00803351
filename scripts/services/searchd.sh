# shellcheck shell=bash disable=SC2034,SC2154
# What the services opensearch and elasticsearch share: one node in a JVM, from published jars, without
# the distribution's start scripts. Sourced after common.sh by scripts, which set:
#
#   PACKAGE    org.opensearch or org.elasticsearch
#   SOURCES    imports and names in which the two differ, see launcher()
#   pom_dependencies   prints Maven dependencies for $SVC_VERSION
#   ENV_PREFIX         of the variables that `env` prints

STOP_SIGNALS=(TERM:15)
DROP_SIGNALS=() # the data go anyway
JVM=("-Xmx${CDCD_SEARCH_HEAP:-512m}" "-Xms${CDCD_SEARCH_HEAP:-512m}" -XX:+UseSerialGC -XX:TieredStopAtLevel=1)
export CDCD_SERVICE_TIMEOUT=${CDCD_SERVICE_TIMEOUT:-180}

svc_check_version() {
    [[ $VERSION =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || die "'$VERSION' is no version: $VERSION_HELP"
}

svc_prepare() {
    need java
    SVC_BIN=$CACHE/$SVC_NAME-$SVC_VERSION
    [[ -e $SVC_BIN/classes/Launcher.class ]] && return 0
    exec 7>"$RUNTIME/locks/$SVC_NAME-$SVC_VERSION"
    flock -w 600 7 || die "waited 600 s for another download of $SVC_NAME $SVC_VERSION"
    [[ -e $SVC_BIN/classes/Launcher.class ]] || fetch
    exec 7>&-
}

fetch() {
    local new=$SVC_BIN.new
    need mvn javac
    rm -rf "$new" "$SVC_BIN"
    mkdir -p "$new/classes"
    say "fetching $SVC_NAME $SVC_VERSION into $CACHE"
    {
        printf '%s\n' '<project xmlns="http://maven.apache.org/POM/4.0.0">' \
            '  <modelVersion>4.0.0</modelVersion>' \
            "  <groupId>cdcd</groupId><artifactId>$SVC_NAME</artifactId><version>1</version><packaging>pom</packaging>" \
            '  <dependencies>'
        pom_dependencies
        printf '%s\n' '  </dependencies>' '</project>'
    } >"$new/pom.xml"
    mvn -B -q -Dstyle.color=never -f "$new/pom.xml" dependency:copy-dependencies \
        -DincludeScope=runtime -DoutputDirectory="$new/libs" >"$new/mvn.log" 2>&1 || {
        tail -n 20 "$new/mvn.log" >&2
        die "could not fetch $SVC_NAME $SVC_VERSION with mvn; is the network there, and that version published?"
    }
    launcher >"$new/Launcher.java"
    javac -nowarn -d "$new/classes" -cp "$new/libs/*" "$new/Launcher.java" >"$new/javac.log" 2>&1 || {
        tail -n 20 "$new/javac.log" >&2
        die "could not compile the launcher of $SVC_NAME $SVC_VERSION"
    }
    mv "$new" "$SVC_BIN"
}

dependency() { # dependency GROUP ARTIFACT VERSION
    printf '    <dependency><groupId>%s</groupId><artifactId>%s</artifactId><version>%s</version></dependency>\n' "$@"
}

# The server's own start refuses root and wants a folder of modules; a node that is made by hand does not.
launcher() {
    cat <<JAVA
import java.nio.file.*;
import java.util.*;
$(printf 'import %s;\n' "${SOURCES[@]}")

/** One node until it is told to stop. Arguments: a file of NAME=VALUE settings. */
public class Launcher {
    static class One extends Node {
        One(Settings settings, List<Class<? extends Plugin>> plugins) {
            super(InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), null, () -> "cdcd"), plugins, false);
        }
    }

    public static void main(String[] arguments) throws Exception {
        Settings.Builder settings = Settings.builder();
        for (String line : Files.readAllLines(Path.of(arguments[0]))) {
            int at = line.indexOf('=');
            if (at > 0)
                settings.put(line.substring(0, at), line.substring(at + 1));
        }
        List<Class<? extends Plugin>> plugins = new ArrayList<>();
        plugins.add($NETTY.class);
        for (String name : new String[] {${MODULES:-}})
            plugins.add(Class.forName(name).asSubclass(Plugin.class));
        Node node = new One(settings.build(), plugins);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            try {
                node.close();
            } catch (Exception e) {
                e.printStackTrace();
            }
        }));
        node.start();
        System.out.println("the node has started");
        Thread.currentThread().join();
    }
}
JAVA
}

svc_init() { mkdir -p "$SVC_DIR/data/config"; }

svc_configure() {
    if [[ -z ${SVC_PORT2:-} ]] || port_listening "$SVC_PORT2"; then SVC_PORT2=$(port_pick); fi
    cat >"$SVC_DIR/server.properties" <<CONF
path.home=$SVC_DIR/data
path.data=$SVC_DIR/data/data
path.logs=$SVC_DIR/data/logs
cluster.name=cdcd-throwaway
node.name=n1
discovery.type=single-node
network.host=127.0.0.1
http.port=$SVC_PORT
transport.port=$SVC_PORT2
transport.type=netty4
http.type=netty4
cluster.routing.allocation.disk.threshold_enabled=false
node.store.allow_mmap=false
CONF
    cat "$SVC_DIR/sets" >>"$SVC_DIR/server.properties"
}

# In a chroot whose root is no mount point, Java finds no file store for a path, and the node none for its
# data: there it sees the same root as a mount of its own, which goes with it. That mount lies in a private
# one, so that nobody else ever sees it, who might remove what is in it.
root_unmounted() {
    if awk '$2 == "/" { f = 1 } END { exit !f }' /proc/self/mounts; then return 1; fi
    unshare --mount --propagation unchanged true 2>/dev/null
}

svc_launch() {
    local -a within=()
    SVC_MARK=$SVC_DIR/server.properties
    if root_unmounted; then
        mkdir -p "$SVC_DIR/run"
        # shellcheck disable=SC2016
        within=(unshare --mount --propagation unchanged
            sh -c 'mount -t tmpfs none "$1" && mount --make-private "$1" && mkdir "$1/root" &&
                mount --rbind / "$1/root" && root=$1/root && shift && exec chroot "$root" "$@"' sh "$SVC_DIR/run")
    fi
    setsid ${within[@]+"${within[@]}"} java "${JVM[@]}" -Djava.io.tmpdir="$SVC_DIR/data" -Dlog4j2.disable.jmx=true \
        -cp "$SVC_BIN/classes:$SVC_BIN/libs/*" Launcher "$SVC_MARK" </dev/null >>"$SVC_DIR/log" 2>&1 7>&- 8>&- 9>&- &
    SVC_PID=$!
}

svc_ready() { grep -q 'the node has started' "$SVC_DIR/log" && port_listening "$SVC_PORT"; }

svc_env() {
    export_line "${ENV_PREFIX}_URL" "http://127.0.0.1:$SVC_PORT"
    export_line "${ENV_PREFIX}_PORT" "$SVC_PORT"
    export_line "${ENV_PREFIX}_PID" "$SVC_PID"
    export_line "${ENV_PREFIX}_DIR" "$SVC_DIR"
    export_line "${ENV_PREFIX}_VERSION" "$SVC_VERSION"
    export_line "${ENV_PREFIX}_LOG" "$SVC_DIR/log"
}
