"""Processes under measurement: wall time, CPU seconds, peak memory."""
import os
import signal
import statistics
import subprocess
import time

TICK = os.sysconf("SC_CLK_TCK")


class Ended(Exception):
    """A measured process ended on its own."""


def cpu_of(pid):
    """User and system seconds of a live process, its threads included; 0 when it is gone."""
    try:
        with open("/proc/%d/stat" % pid) as f:
            fields = f.read().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICK


def peak_of(pid):
    """Peak resident memory in bytes. Unlike ru_maxrss it does not count what this Python
    process had when it forked."""
    try:
        with open("/proc/%d/status" % pid) as f:
            for line in f:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def folder_size(path):
    total = 0
    for top, _, names in os.walk(path):
        for name in names:
            try:
                total += os.stat(os.path.join(top, name)).st_blocks * 512
            except OSError:
                pass  # unlinked meanwhile
    return total


class Process:
    """A child whose resources are known when it has been reaped."""

    def __init__(self, argv, log, stdin=None, stdout=None):
        self.argv = argv
        self.log_path = log
        self.began = time.monotonic()
        with open(log, "ab") as err:
            self.child = subprocess.Popen(argv, stdin=stdin or subprocess.DEVNULL, stderr=err,
                                          stdout=subprocess.DEVNULL if stdout is None else stdout)
        self.pid = self.child.pid
        self.peak = 0
        self.cpu = self.user = self.system = None
        self.code = None

    def sample(self):
        """Called now and then: remembers the peak, since a zombie has none. Raises when the
        process has ended."""
        self.peak = max(self.peak, peak_of(self.pid))
        done, status, usage = os.wait4(self.pid, os.WNOHANG)
        if done:
            self._reaped(status, usage)
            raise Ended("%s ended with exit code %s:\n%s" % (self.argv[0], self.code, self.tail()))

    def stop(self, sig=signal.SIGTERM):
        self.peak = max(self.peak, peak_of(self.pid))
        if self.code is None:
            os.kill(self.pid, sig)
        return self.wait()

    def wait(self):
        """Waits for the end, keeping the peak."""
        while self.code is None:
            self.peak = max(self.peak, peak_of(self.pid))
            done, status, usage = os.wait4(self.pid, os.WNOHANG)
            if done:
                self._reaped(status, usage)
            else:
                time.sleep(0.005)
        return self.code

    def kill(self):
        if self.code is None:
            try:
                self.stop(signal.SIGKILL)
            except ProcessLookupError:
                pass

    def tail(self):
        with open(self.log_path, errors="replace") as f:
            return f.read()[-4000:]

    def _reaped(self, status, usage):
        self.ended = time.monotonic()
        self.code = os.waitstatus_to_exitcode(status)
        self.child.returncode = self.code
        self.user, self.system = usage.ru_utime, usage.ru_stime
        self.cpu = self.user + self.system
        self.seconds = self.ended - self.began


def median(values):
    values = [v for v in values if v is not None]
    return statistics.median(values) if values else None


def lsn(text):
    high, low = text.split("/")
    return int(high, 16) << 32 | int(low, 16)
