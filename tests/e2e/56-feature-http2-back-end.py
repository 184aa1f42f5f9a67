# SPDX-License-Identifier: Apache-2.0
"""An https back-end with HTTP/2: Node's server, which reports the version of each request."""

import json
import os
import subprocess

from support import case, certificates, client, otlp, peers
from support.ports import free_port

# Tells its port when it listens, then one line for each request.
SERVER = """
const fs = require('fs');
const options = {key: fs.readFileSync('key.pem'), cert: fs.readFileSync('cert.pem')};
const server = require('http2').createSecureServer(options, (request, response) => {
  const parts = [];
  request.on('data', part => parts.push(part));
  request.on('end', () => {
    console.log(JSON.stringify({version: request.httpVersion, path: request.url,
                                body: Buffer.concat(parts).toString('hex')}));
    response.writeHead(200, {'content-type': 'application/x-protobuf'});
    response.end();
  });
});
server.listen(0, '127.0.0.1', () => console.log(JSON.stringify(server.address())));
"""
REQUESTS = 20


class Http2BackEnd(case.Case):
    def back_end(self):
        """Node's lines, the first of which is its address."""
        peers.need("node")
        certificate, _ = certificates.self_signed(self)
        node = subprocess.Popen(
            ["node", "-e", SERVER],
            cwd=os.path.dirname(certificate),
            stdout=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(node.stdout.close)
        self.addCleanup(node.wait, 10)
        self.addCleanup(node.kill)
        return node.stdout, certificate

    def test_requests_arrive_whole_over_http2(self):
        lines, certificate = self.back_end()
        port = json.loads(lines.readline())["port"]
        grpc, http = free_port(), free_port()
        exporter = case.UNCOMPRESSED + case.DIRECT + f"    tls:\n      ca_file: {certificate}\n"
        self.daemon(
            case.otlp_config(grpc, http, f"https://localhost:{port}", exporter=exporter)
        )
        for count in range(1, REQUESTS + 1):
            body = otlp.traces(count).SerializeToString()
            self.assertEqual(client.post(http, "traces", body).status, 200)
            arrived = json.loads(lines.readline())
            self.assertEqual(arrived["version"], "2.0")
            self.assertEqual(arrived["path"], "/v1/traces")
            self.assertEqual(arrived["body"], body.hex())


if __name__ == "__main__":
    case.main()
