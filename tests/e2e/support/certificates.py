# SPDX-License-Identifier: Apache-2.0
"""Certificates for localhost, made by openssl while the test runs."""

import os
import pathlib
import shutil
import subprocess
import tempfile

MAKE = pathlib.Path(__file__).parents[2] / "support" / "make-certificates"
COMMAND = (
    "openssl req -x509 -newkey {key} -nodes -days 2 "
    "-subj /CN=localhost -addext subjectAltName=DNS:localhost -keyout key.pem -out cert.pem"
)


def self_signed(test, key="ec -pkeyopt ec_paramgen_curve:P-256"):
    """Paths of a certificate and its key, removed when the test ends."""
    directory = tempfile.TemporaryDirectory()
    test.addCleanup(directory.cleanup)
    subprocess.run(COMMAND.format(key=key).split(), cwd=directory.name, check=True, capture_output=True)
    return tuple(os.path.join(directory.name, name) for name in ("cert.pem", "key.pem"))


class Certificates:
    """All that tests/support/make-certificates makes, by name, until the test ends."""

    def __init__(self, test):
        directory = tempfile.TemporaryDirectory()
        test.addCleanup(directory.cleanup)
        self.directory = directory.name
        subprocess.run([MAKE, self.directory], check=True)

    def path(self, file):
        return os.path.join(self.directory, file)

    def text(self, file):
        with open(self.path(file), encoding="ascii") as text:
            return text.read()

    def copy(self, source, target):
        """Puts NAME.pem and NAME.key in the place of others, the key first."""
        for ending in (".key", ".pem"):
            shutil.copyfile(self.path(source + ending), self.path(target + ending))
