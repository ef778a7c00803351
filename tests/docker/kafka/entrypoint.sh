#!/bin/bash
# As the public image does: KAFKA_SOME_NAME is some.name of server.properties, and an empty data
# folder is formatted.
set -e
CONFIG=/opt/kafka/config/server.properties
env | sed -n 's/^KAFKA_\([A-Z0-9_]*\)=\(.*\)$/\1 \2/p' | while read -r name value; do
    case $name in HEAP_OPTS | OPTS | VERSION) continue ;; esac
    name=${name,,}
    printf '%s=%s\n' "${name//_/.}" "$value"
done >"$CONFIG"
data=$(sed -n 's/^log\.dirs=//p' "$CONFIG")
jvm=(-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dorg.slf4j.simpleLogger.log.org.apache.kafka.common.config.AbstractConfig=warn)
if [ ! -e "$data/meta.properties" ]; then
    java "${jvm[@]}" -cp '/opt/kafka/libs/*' kafka.tools.StorageTool format \
        -t "${CLUSTER_ID:-5L6g3nShT-eMCtK--X86sw}" -c "$CONFIG"
fi
# shellcheck disable=SC2086 # options, one a word
exec java $KAFKA_HEAP_OPTS "${jvm[@]}" -cp '/opt/kafka/libs/*' kafka.Kafka "$CONFIG"
