"""A proxy in front of a MongoDB server that sees every command and its reply, and may change them.

    proxy = MgProxy(port_of_the_server)
    def meddle(command, forward):
        if "getMore" in command:
            return error(43, "CursorNotFound", "by order of the test")   # the server is not asked
        return None                                                     # as it is
    proxy.meddle = meddle

meddle gets the command and a function that asks the server; it returns a reply, None (the server's
own), or CUT (both connections are closed). Clients must use directConnection=true, or they go past
it. Commands are OP_MSG without checksums and compression, which is what drivers send when they are
not told otherwise."""
import socket
import struct
import threading

import mgcase  # makes bson available
import bson

CUT = object()
OP_MSG = 2013


def error(code, name, message, labels=()):
    reply = {"ok": 0.0, "errmsg": message, "code": code, "codeName": name}
    if labels:
        reply["errorLabels"] = list(labels)
    return reply


class MgProxy:
    def __init__(self, port):
        self.target = port
        self.meddle = None
        self.commands = []  # those that were seen, by name
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.sockets = set()
        self.closed = False
        threading.Thread(target=self.accept, daemon=True).start()

    def url(self):
        return "mongodb://127.0.0.1:%d/?directConnection=true" % self.port

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        server = None
        try:
            server = socket.create_connection(("127.0.0.1", self.target))
            self.sockets |= {client, server}
            while self.one(client, server):
                pass
        except OSError:
            pass
        for s in (client, server):
            if s is not None:
                self.sockets.discard(s)
                s.close()

    @staticmethod
    def message(s):
        """One message of the wire, or b"" at the end."""
        data = b""
        need = 16
        while len(data) < need:
            more = s.recv(min(need - len(data), 1 << 20))
            if not more:
                return b""
            data += more
            if len(data) == 16:
                need = struct.unpack("<i", data[:4])[0]
        return data

    def one(self, client, server):
        request = self.message(client)
        if not request:
            return False

        def ask():
            server.sendall(request)
            return self.message(server)

        reply = None
        if struct.unpack("<i", request[12:16])[0] == OP_MSG and self.meddle and request[20] == 0:
            command = bson.decode(request[21:21 + struct.unpack("<i", request[21:25])[0]], mgcase.CODEC)
            self.commands.append(next(iter(command)))
            answers = []

            def forward():
                answers.append(ask())
                if not answers[-1]:
                    raise OSError("the server closed the connection")
                return bson.decode(answers[-1][21:], mgcase.CODEC)
            answer = self.meddle(command, forward)
            if answer is CUT:
                return False
            if answer is not None:
                body = bson.encode(answer, codec_options=mgcase.CODEC)
                reply = struct.pack("<iiiiIb", 21 + len(body), 1, struct.unpack("<i", request[4:8])[0], OP_MSG, 0, 0) + body
            elif answers:
                reply = answers[-1]
        if reply is None:
            reply = ask()
        client.sendall(reply)
        return bool(reply)

    def cut(self):
        """Closes every connection."""
        for s in list(self.sockets):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self.listener.close()
        self.cut()
