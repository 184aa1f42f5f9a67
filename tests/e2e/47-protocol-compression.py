# SPDX-License-Identifier: Apache-2.0
"""Every Content-Encoding: streams that are empty, torn, foreign or followed by something, beside
the Go collector. Real data is in 55-feature-collectors.py."""

import gzip
import pathlib
import tempfile
import zlib

from google.rpc.status_pb2 import Status
from support import case, client, compare
from support.client import grpc_by_hand, grpc_frame
from support.compare import Question
from support.ports import free_port

GZIP = gzip.compress(b"", mtime=0)
ZLIB = zlib.compress(b"")
ZSTD = bytes.fromhex("28b52ffd2000010000")
SKIPPED = bytes.fromhex("502a4d18030000000a0b0c")
LZ4 = bytes.fromhex("04224d186440a700000000055dcc02")
FRAMED = bytes.fromhex("ff060000734e61507059")
BLOCK = bytes.fromhex("00")
JUNK = b"this is in no format at all"
OK = (200, "")


def ask(encoding, body):
    """The status, and the message of an rpc.Status."""

    def asking(server):
        headers = {"Content-Type": client.PROTOBUF, "Content-Encoding": encoding}
        response = client.request(server.http, "POST", "/v1/traces", body, headers)
        is_error = response.status >= 400 and response.headers["content-type"] == client.PROTOBUF
        return response.status, Status.FromString(response.body).message if is_error else ""

    return asking


def ask_grpc(encoding, message):
    """The status code and its message."""

    def asking(server):
        headers = {"grpc-encoding": encoding}
        response = grpc_by_hand(server.grpc, grpc_frame(message, 1), headers=headers)
        return response.headers.get("grpc-status"), response.headers.get("grpc-message", "")

    return asking


class Compression(compare.SideBySide):
    def start(self, executable, environment=None):
        grpc, http = free_port(), free_port()
        server = self.server(
            "receivers:\n  otlp:\n    protocols:\n"
            f"      grpc:\n        endpoint: 127.0.0.1:{grpc}\n"
            f"      http:\n        endpoint: 127.0.0.1:{http}\n"
            "exporters:\n  nop:\nservice:\n" + case.QUIET + "  pipelines:\n"
            "    traces:\n      receivers: [otlp]\n      exporters: [nop]\n",
            executable=executable,
            environment=environment,
        ).wait_until_ready()
        server.http, server.grpc = http, grpc
        return server

    def questions(self):
        return self.whole() + self.broken() + self.followed() + self.calls()

    def whole(self):
        rows = [
            ("gzip", GZIP),
            ("zlib", ZLIB),
            ("deflate", ZLIB),
            ("zstd", ZSTD),
            ("zstd", SKIPPED),
            ("zstd", b""),
            ("snappy", BLOCK),
            ("snappy", FRAMED),
            ("x-snappy-framed", FRAMED),
            ("x-snappy-framed", b""),
            ("lz4", LZ4),
            ("lz4", b""),
        ]
        return [Question(f"{name} {body.hex()}", ask(name, body), OK) for name, body in rows]

    def broken(self):
        rows = [
            ("gzip", b"", "EOF"),
            ("gzip", JUNK, "gzip: invalid header"),
            ("gzip", GZIP[:4], "unexpected EOF"),
            ("gzip", GZIP[:-1], "unexpected EOF"),
            ("gzip", GZIP[:-8] + b"\1" + GZIP[-7:], "gzip: invalid checksum"),
            ("zlib", b"", "unexpected EOF"),
            ("zlib", JUNK, "zlib: invalid header"),
            ("zlib", ZLIB[:-1] + b"\2", "zlib: invalid checksum"),
            ("deflate", JUNK, "zlib: invalid header"),
            ("zstd", JUNK, "invalid input: magic number mismatch"),
            ("zstd", ZSTD[:-1], "unexpected EOF"),
            ("snappy", b"", "snappy: corrupt input"),
            ("snappy", b"\xff\xff\xff\xff\xff", "snappy: corrupt input"),
            ("x-snappy-framed", JUNK, "snappy: corrupt input"),
            ("x-snappy-framed", FRAMED + b"\2\0\0\0", "snappy: unsupported input"),
            ("lz4", JUNK, "lz4: bad magic number"),
        ]
        return [
            Question(f"{name} {body.hex()}", ask(name, body), (400, text))
            for name, body, text in rows
        ]

    def followed(self):
        rows = [
            ("gzip", GZIP + GZIP, OK),
            ("gzip", GZIP + JUNK, (400, "gzip: invalid header")),
            ("zlib", ZLIB + JUNK, OK),
            ("zstd", ZSTD + SKIPPED + ZSTD, OK),
            ("zstd", ZSTD + JUNK, (400, "invalid input: magic number mismatch")),
            ("x-snappy-framed", FRAMED + FRAMED, OK),
            ("lz4", LZ4 + LZ4, OK),
            ("lz4", LZ4 + JUNK, (400, "lz4: bad magic number")),
        ]
        return [
            Question(f"{name} {body.hex()}", ask(name, body), seen) for name, body, seen in rows
        ]

    def calls(self):
        read = "grpc: failed to read decompressed data: "
        rows = [
            ("gzip", GZIP, ("0", "")),
            ("snappy", FRAMED, ("0", "")),
            ("zstd", ZSTD, ("0", "")),
            ("gzip", JUNK, ("13", "grpc: failed to decompress the message: gzip: invalid header")),
            ("snappy", JUNK, ("13", read + "snappy: corrupt input")),
            ("zstd", JUNK, ("13", read + "invalid input: magic number mismatch")),
        ]
        return [
            Question(f"gRPC {name} {body.hex()}", ask_grpc(name, body), seen)
            for name, body, seen in rows
        ]


class WithoutLibraries(case.Case):
    """Encodings whose library is missing: files of its name that are not libraries."""

    PACKAGES = {"zstd": "libzstd1", "lz4": "liblz4-1", "snappy": "libsnappy1v5"}
    FILES = ("libzstd.so.1", "liblz4.so.1", "libsnappy.so.1")

    def test_senders_get_the_missing_package_and_may_retry(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for name in self.FILES:
            pathlib.Path(folder.name, name).write_bytes(b"")
        server = Compression.start(self, None, {"LD_LIBRARY_PATH": folder.name})
        for encoding, body in (("zstd", ZSTD), ("lz4", LZ4), ("snappy", BLOCK)):
            package = self.PACKAGES[encoding]
            headers = {"Content-Type": client.PROTOBUF, "Content-Encoding": encoding}
            response = client.request(server.http, "POST", "/v1/traces", body, headers)
            self.assertEqual(response.status, 503)
            self.assertIn("retry-after", response.headers)
            self.assertIn(package, Status.FromString(response.body).message)
            server.wait_for_line(f"A compressed request cannot be read.*{package}")
        for encoding, message in (("zstd", ZSTD), ("snappy", FRAMED)):
            code, text = ask_grpc(encoding, message)(server)
            self.assertEqual(code, "14")
            self.assertIn(self.PACKAGES[encoding], text)
        for encoding, body in (("gzip", GZIP), ("zlib", ZLIB)):
            self.assertEqual(ask(encoding, body)(server), OK)
        self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    case.main()
