#!/bin/bash
# As the public image does: variables with dots in their names are settings.
set -e
home=/usr/share/opensearch
{
    cat <<CONF
path.home=$home
path.data=$home/data
path.logs=$home/logs
cluster.name=docker-cluster
node.name=n1
network.host=0.0.0.0
http.port=9200
transport.type=netty4
http.type=netty4
node.store.allow_mmap=false
CONF
    env -0 | tr '\n' ' ' | tr '\0' '\n' | grep -E '^[a-z_]+(\.[a-z_]+)+='
} >/tmp/settings
# shellcheck disable=SC2086 # options, one a word
exec java $OPENSEARCH_JAVA_OPTS -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dlog4j2.disable.jmx=true \
    -cp "$home/classes:$home/lib/*" Launcher /tmp/settings
