# SPDX-License-Identifier: Apache-2.0
"""An HTTPS back-end on loopback for the HTTP client's tests: makes a CA and certificates in the folder
that it is given, prints its port, responds to every POST with 200 and what it saw, and ends with its
stdin. The path /to?URL redirects to that URL."""
import http.server
import os
import ssl
import subprocess
import sys
import threading


def openssl(*arguments):
    subprocess.run(("openssl",) + arguments, check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)


def make_certificates(folder):
    def path(name):
        return os.path.join(folder, name)

    def request(name, subject):
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
                subject, "-keyout", path(name + ".key"), "-out", path(name + ".csr"))

    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
            "2", "-subj", "/CN=test CA", "-keyout", path("ca.key"), "-out", path("ca.pem"))
    for name, extra in (("server", "subjectAltName=IP:127.0.0.1,DNS:backend.test"), ("client", "")):
        request(name, "/CN=" + name)
        with open(path(name + ".ext"), "w", encoding="ascii") as out:
            out.write(extra)
        openssl("x509", "-req", "-in", path(name + ".csr"), "-CA", path("ca.pem"), "-CAkey",
                path("ca.key"), "-CAcreateserial", "-days", "2", "-extfile", path(name + ".ext"),
                "-out", path(name + ".pem"))


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        certificate = self.connection.getpeercert()
        names = [value for group in (certificate or {}).get("subject", ()) for _, value in group]
        response = "%s %s %s %d %s" % (self.path, self.headers["Host"].split(":")[0],
                                     self.connection.version(), len(body), ",".join(names) or "-")
        to = self.path.startswith("/to?")
        self.send_response(307 if to else 200)
        if to:
            self.send_header("Location", self.path[len("/to?"):])
        self.send_header("Content-Length", str(len(response)))
        self.end_headers()
        self.wfile.write(response.encode())

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        """Clients that refuse our certificate are part of the tests."""


def main():
    folder = sys.argv[1]
    make_certificates(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(folder, "server.pem"), os.path.join(folder, "server.key"))
    context.load_verify_locations(os.path.join(folder, "ca.pem"))
    context.verify_mode = ssl.CERT_OPTIONAL
    server = Server(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True,
                                        do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()


main()
