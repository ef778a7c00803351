"""Tables for people, JSON for machines, and where the figures were taken."""
import json
import os
import platform
import re
import subprocess

import measure


def hardware():
    cpu, memory = "", 0
    with open("/proc/cpuinfo") as f:
        m = re.search(r"model name\s*: (.*)", f.read())
        cpu = m.group(1) if m else platform.machine()
    with open("/proc/meminfo") as f:
        memory = int(re.search(r"MemTotal:\s*(\d+)", f.read()).group(1)) * 1024
    return {"cpu": cpu, "cores": os.cpu_count(), "memory_bytes": memory,
            "kernel": platform.release(), "load": os.getloadavg()[0]}


def first_line(argv):
    try:
        return subprocess.run(argv, capture_output=True, text=True).stdout.split("\n")[0].strip()
    except OSError:
        return None


def versions(root, cdcd, bench):
    v = {"cdcd": first_line([cdcd, "--version"]),
         "commit": first_line(["git", "-C", root, "rev-parse", "HEAD"]),
         "changed": bool(first_line(["git", "-C", root, "status", "--porcelain", "-uno"]))}
    v.update(bench.versions())
    if bench.kafka:
        v["kafka"] = bench.kafka.env.get("CDCD_KAFKA_VERSION")
    return v


COLUMNS = [
    # title, key, format, divisor; a key with a dot goes into a nested dictionary
    ("seconds", "seconds", "%.2f", 1),
    ("rows/s", "rate", "%.0f", 1),
    ("limit/s", "limit.rate", "%.0f", 1),
    ("ratio", "ratio", "%.2f", 1),
    ("CPU s/M", "cpu_per_million", "%.2f", 1),
    ("raw/s", "raw.rate", "%.0f", 1),
    ("walsender CPU s", "walsender_cpu", "%.2f", 1),
    ("server CPU s", "server_cpu", "%.2f", 1),
    ("broker CPU s", "broker_cpu", "%.2f", 1),
    ("peak MB", "peak_bytes", "%.1f", 1e6),
    ("p50 ms", "p50_ms", "%.1f", 1),
    ("p99 ms", "p99_ms", "%.1f", 1),
    ("spill MB", "spill_bytes", "%.0f", 1e6),
    ("restart s", "restart_seconds", "%.2f", 1),
]


def pick(run, key):
    for part in key.split("."):
        run = run.get(part) if isinstance(run, dict) else None
    return run


def table(runs):
    """One line a benchmark, shape and sink, with the medians of its pairs."""
    groups = {}
    for r in runs:
        groups.setdefault((r["what"], r.get("shape", ""), r["sink"]), []).append(r)
    used = [c for c in COLUMNS if any(pick(r, c[1]) is not None for r in runs)]
    lines = [["benchmark", "sink", "rows", *(c[0] for c in used), "runs"]]
    for (what, shape, sink), group in groups.items():
        line = [" ".join(filter(None, (what, shape))), sink, "%d" % group[0]["rows"]]
        for _, key, fmt, divisor in used:
            value = measure.median([pick(r, key) for r in group])
            if key == "cpu_per_million" and what in ("latency", "tables"):
                value = None  # dominated by the fixed costs of a start
            line.append("" if value is None else fmt % (value / divisor))
        lines.append(line + [str(len(group))])
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    out = []
    for line in lines:
        out.append("  ".join(c.ljust(w) if i < 2 else c.rjust(w)
                             for i, (c, w) in enumerate(zip(line, widths))).rstrip())
    return "\n".join(out)


def write_json(path, result):
    with open(path + ".new", "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")
    os.replace(path + ".new", path)
