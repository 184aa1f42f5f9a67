# SPDX-License-Identifier: Apache-2.0
"""Certificates for localhost, made by openssl while the test runs."""

import os
import subprocess
import tempfile

COMMAND = (
    "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
    "-subj /CN=localhost -addext subjectAltName=DNS:localhost -keyout key.pem -out cert.pem"
)


def self_signed(test):
    """Paths of a certificate and its key, which go when the test ends."""
    directory = tempfile.TemporaryDirectory()
    test.addCleanup(directory.cleanup)
    subprocess.run(COMMAND.split(), cwd=directory.name, check=True, capture_output=True)
    return tuple(os.path.join(directory.name, name) for name in ("cert.pem", "key.pem"))
