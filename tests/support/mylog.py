"""Rows of a binlog file as the servers' own tools print them, against those of our decoder.

mysqlbinlog and mariadb-binlog (-vv --base64-output=decode-rows) print each row as lines

    ### INSERT INTO `db`.`t`
    ### SET
    ###   @1=-5 (251) /* TINYINT meta=0 nullable=1 is_null=0 */

with strings in the column's own charset, numbers with the sign that they would have, labels of
ENUM and SET as numbers. mybinlog --raw prints the same as JSON, so that values are compared one by
one. What the tools do not print, or print wrong, is told in `skipped`.
"""
import datetime
import json
import re
import struct
import subprocess

HEAD = re.compile(rb"^### (INSERT INTO|UPDATE|DELETE FROM) `(.*)`\.`(.*)`$")
VALUE = re.compile(rb"^###   @(\d+)=(.*?)(?: /\* (\w[\w/]*)([^*]*) \*/)?$", re.S)
CONTROL = re.compile(rb"\\x([01][0-9A-Fa-f])")
ESCAPE = re.compile(rb"\\(x[0-9a-f]{2}|.)", re.S)


class Difference(Exception):
    pass


def tool_rows(command, path):
    """The rows of the tool: (operation, table, before, after) with {column: (type, text)}."""
    p = subprocess.Popen([command, "-vv", "--base64-output=decode-rows", path],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    row = part = None
    for line in p.stdout:
        if not line.startswith(b"###"):
            if row:
                yield row
            row = part = None
            continue
        line = line.rstrip(b"\n")
        head = HEAD.match(line)
        if head:
            if row:
                yield row
            op = head[1].split()[0].decode()
            row = (op, (head[2] + b"." + head[3]).decode(), {}, {})
        elif line == b"### WHERE":
            part = row[2]
        elif line == b"### SET":
            part = row[3]
        else:
            value = VALUE.match(line)
            if value and row:
                part[int(value[1])] = (value[3] or b"", value[2], value[4] or b"")
    if row:
        yield row
    error = p.stderr.read().decode(errors="replace")
    if p.wait():
        raise Difference(f"{command} {path}: {error}")


def our_rows(program, path, *options):
    p = subprocess.Popen([program, "--raw", *options, path], stdout=subprocess.PIPE)
    for line in p.stdout:
        row = json.loads(line)
        yield (row["op"], row["table"],
               {int(k): v for k, v in row.get("before", {}).items()},
               {int(k): v for k, v in row.get("after", {}).items()})
    if p.wait():
        raise Difference(f"{program} {path} failed")


def unquote(text, mariadb=False):
    if mariadb:  # only control characters are escaped, and not even the backslash
        return CONTROL.sub(lambda m: bytes([int(m[1], 16)]), text[1:-1])
    one = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"0": b"\0", b"b": b"\b"}

    def replace(m):
        e = m[1]
        return bytes([int(e[1:], 16)]) if e[:1] == b"x" and len(e) == 3 else one.get(e, e)

    assert text[:1] == text[-1:] == b"'", text
    return ESCAPE.sub(replace, text[1:-1])


EPOCH = datetime.date(1970, 1, 1)


def moment(text):
    """'2024-02-29 13:14:15.12' as mybinlog prints it, or the text where it is no moment."""
    date, clock = text.split(" ")
    year, month, day = (int(x) for x in date.split("-"))
    clock, _, fraction = clock.partition(".")
    hour, minute, second = (int(x) for x in clock.split(":"))
    leap_base = 400 if year == 0 else 0  # year 0 is a leap year as 400 is
    try:
        days = (datetime.date(year + leap_base, month, day) - EPOCH).days - (146097 if leap_base else 0)
    except ValueError:
        return "text:" + text
    seconds = days * 86400 + hour * 3600 + minute * 60 + second
    return f"ts:{seconds}.{fraction.ljust(9, '0')}"


def duration(text):
    sign = -1 if text.startswith("-") else 1
    clock, _, fraction = text.lstrip("-").partition(".")
    hour, minute, second = (int(x) for x in clock.split(":"))
    micros = (hour * 3600 + minute * 60 + second) * 1000000 + int((fraction or "0").ljust(6, "0"))
    return f"time:{sign * micros}"


def squeeze(text):
    """JSON text without the white space between tokens."""
    return re.sub(r'("(?:[^"\\]|\\.)*")|\s+', lambda m: m[1] or "", text)


def expect(kind, text, ours, mariadb):
    """Compares one value. `text` is the tool's. Returns the expected form, or None: equal."""
    if kind in (b"TINYINT", b"SHORTINT", b"MEDIUMINT", b"INT", b"LONGINT", b"YEAR"):
        return "int:" + text.split(b" ")[0].decode()
    if kind == b"DECIMAL":
        return "decimal:" + text.decode()
    if kind in (b"FLOAT", b"DOUBLE"):
        value = float(ours.split(":")[1])
        want = float(text)
        if kind == b"FLOAT":  # six digits
            same = struct.pack("f", value) == struct.pack("f", want)
            return None if same or abs(value - want) <= abs(want) * 1e-5 else f"float:{want}"
        return None if value == want else f"float:{want}"
    if kind == b"BIT":
        bits = text[2:-1]
        n = (len(bits) + 7) // 8
        return "bytes:" + int(bits, 2).to_bytes(n, "little").hex()
    if kind == b"DATE":
        year, month, day = (int(x) for x in unquote(text).split(b":"))
        got = moment(f"{year:04}-{month:02}-{day:02} 00:00:00")
        if got.startswith("text:"):
            return got.split(" ")[0]
        return f"date:{int(got[3:].split('.')[0]) // 86400}"
    if kind == b"TIME":
        return duration(unquote(text).decode())
    if kind == b"DATETIME":
        return moment(unquote(text).decode())
    if kind == b"TIMESTAMP":
        seconds, _, fraction = text.decode().partition(".")
        if seconds == "0" and not fraction.strip("0"):
            return "text:0000-00-00 00:00:00" + ("." + fraction if fraction else "")
        return f"ts:{seconds}.{fraction.ljust(9, '0')}"
    if kind == b"ENUM":
        return "text:" + (text.decode() if text != b"0" else "")
    if kind == b"SET":
        bits = int(text[2:-1], 2)
        return "text:" + ",".join(str(i + 1) for i in range(64) if bits >> i & 1)
    if kind == b"JSON":
        ours_json, theirs = ours[5:], unquote(text).decode()
        if ours_json.startswith('"'):
            return None if json.loads(ours_json, strict=False) == theirs else "text:" + theirs
        short = re.sub(r"(?<![\w.\"])(-?\d{8,})\.0(?=[,\]}]|$)", r"\1", squeeze(theirs))
        return "text:" + short
    if kind.startswith(b"VECTOR"):  # with six digits
        theirs, mine = json.loads(text), [float(x) for x in ours[5:].split(",")]
        same = len(theirs) == len(mine) and all(abs(a - b) <= abs(a) * 1e-5
                                                for a, b in zip(theirs, mine))
        return None if same else f"list:{theirs}"
    if kind == b"GEOMETRY":
        raw = unquote(text, mariadb)
        return f"geom:{struct.unpack('<I', raw[:4])[0]}:{raw[4:].hex()}"
    return "bytes:" + unquote(text, mariadb).hex()


class Comparison:
    def __init__(self):
        self.rows = self.values = 0
        self.skipped = {}

    def skip(self, why):
        self.skipped[why] = self.skipped.get(why, 0) + 1

    def image(self, where, tool, ours, mariadb):
        """True: the tool gave the row up."""
        unknown = False
        for column, (kind, text, detail) in tool.items():
            if text.startswith(b"!! Don't know") or unknown:
                unknown = True  # mysqlbinlog gives up a row at a geometry or vector
                self.skip("column types that the tool does not know")
                continue
            if column not in ours:
                raise Difference(f"{where} @{column}: we have none, the tool {text!r}")
            got = ours[column]
            self.values += 1
            if text == b"NULL":
                want = None
            elif re.match(rb"JSON_\w+\(|@\d+$", text):
                self.skip("partial updates, which the tool prints as calls")
                continue
            elif b"COMPRESSED" in detail:
                self.skip("compressed columns, which the tool prints as they are")
                continue
            elif got is None:
                want = text
            else:
                want = expect(kind, text, got, mariadb)
                if want is None:
                    continue
            if kind == b"YEAR" and want == "int:1900" and got == "int:0":
                self.skip("YEAR 0000, which the tool prints as 1900")
                continue
            if got != want:
                raise Difference(f"{where} @{column} {kind.decode()}{detail.decode()}: "
                                 f"we have {got!r:.300}, the tool {want!r:.300}")
        extra = set(ours) - set(tool)
        if extra and not unknown:
            raise Difference(f"{where}: we have columns {extra} that the tool has not")
        return unknown

    def file(self, command, program, path, *options):
        mariadb = "mariadb" in command
        tool = tool_rows(command, path)
        ours = our_rows(program, path, *options)
        for number, theirs in enumerate(tool, 1):
            got = next(ours, None)
            where = f"{path}: row {number}, {theirs[0]} {theirs[1]}"
            if got is None:
                raise Difference(f"{where}: we have no more rows")
            if got[:2] != theirs[:2]:
                raise Difference(f"{where}: we have {got[:2]}")
            if not self.image(where + " before", theirs[2], got[2], mariadb):
                self.image(where + " after", theirs[3], got[3], mariadb)
            self.rows += 1
        if next(ours, None) is not None:
            raise Difference(f"{path}: we have more rows than the tool")
