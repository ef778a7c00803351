#!/bin/bash
# kafka-topics.sh --bootstrap-server HOST:PORT --list, and no more.
exec java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dorg.slf4j.simpleLogger.defaultLogLevel=error \
    -cp '/opt/kafka/classes:/opt/kafka/libs/*' Topics "$@"
