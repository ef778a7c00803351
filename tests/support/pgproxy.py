"""A TCP proxy before PostgreSQL that does to the server's bytes what networks and bad memory do.

    with Proxy(port) as proxy:
        url = "postgresql://postgres@127.0.0.1:%d/db?sslmode=disable&gssencmode=disable" % proxy.port
        proxy.cuts = [100, 5000]     # the next connections end after so many bytes from the server
        proxy.garble = function      # (bytes of a pgoutput message) -> bytes, or None: as it is
"""
import socket
import struct
import threading


class Proxy:
    def __init__(self, port):
        self.target = int(port)
        self.cuts = []
        self.garble = None
        self.garbled = 0
        self.connections = 0
        self.lock = threading.Lock()
        self.open = set()
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
        self.drop_all()

    def drop_all(self):
        with self.lock:
            for s in list(self.open):
                self.close(s)

    def close(self, s):
        try:
            s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        s.close()
        self.open.discard(s)

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                client.close()
                continue
            with self.lock:
                self.connections += 1
                self.open |= {client, server}
                cut = self.cuts.pop(0) if self.cuts else None
            threading.Thread(target=self.copy, args=(client, server), daemon=True).start()
            down = self.messages if self.garble else self.bytes
            threading.Thread(target=down, args=(server, client, cut), daemon=True).start()

    def copy(self, a, b):
        self.bytes(a, b, None)

    def bytes(self, a, b, cut):
        try:
            while cut is None or cut > 0:
                data = a.recv(65536 if cut is None else min(65536, cut))
                if not data:
                    break
                b.sendall(data)
                if cut is not None:
                    cut -= len(data)
        except OSError:
            pass
        with self.lock:
            self.close(a)
            self.close(b)

    def messages(self, a, b, cut):
        """From server to client, message by message: a type, a length that counts itself, a body.
        CopyData with XLogData is d LENGTH w START END TIME pgoutput."""
        rest = b""
        try:
            while True:
                data = a.recv(65536)
                if not data:
                    break
                rest += data
                out = []
                while len(rest) >= 5:
                    size = 1 + struct.unpack("!I", rest[1:5])[0]
                    if len(rest) < size:
                        break
                    out.append(self.message(rest[:size]))
                    rest = rest[size:]
                b.sendall(b"".join(out))
        except OSError:
            pass
        with self.lock:
            self.close(a)
            self.close(b)

    def message(self, m):
        if m[:1] != b"d" or m[5:6] != b"w" or not self.garble:
            return m
        new = self.garble(m[30:])
        if new is None:
            return m
        self.garbled += 1
        body = m[5:30] + new
        return b"d" + struct.pack("!I", 4 + len(body)) + body
