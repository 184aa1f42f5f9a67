# SPDX-License-Identifier: Apache-2.0
"""Profiles that async-profiler writes of a busy Java program, in the layout of each release."""

import os
import pathlib
import platform
import subprocess
import tempfile

from . import otlp, peers, profiles

VERSIONS = ("4.1", "4.2", "4.3", "4.4")
LAYOUTS = {"4.1": "1.7", "4.2": "1.7", "4.3": "1.9", "4.4": "1.9"}
BUSY_MS = 400
WITHIN_S = 120


def record(version, event, more="", service=None):
    """The request of a run; `service` is put in front as a Resource, since the agent writes none."""
    peers.need("async-profiler")
    built = pathlib.Path(os.environ["SPANFLAME_PEERS"]) / "async-profiler" / "target"
    machine = {"x86_64": "linux-x64", "aarch64": "linux-arm64"}[platform.machine()]
    agent = built / version / machine / "libasyncProfiler.so"
    with tempfile.TemporaryDirectory() as directory:
        file = pathlib.Path(directory) / "profile.otlp"
        subprocess.run(
            [
                "java",
                f"-agentpath:{agent}=start,event={event}{more},otlp,file={file}",
                "-cp",
                str(built / "classes"),
                "peer.Busy",
                str(BUSY_MS),
            ],
            check=True,
            capture_output=True,
            timeout=WITHIN_S,
        )
        return file.read_bytes() if service is None else with_service(file.read_bytes(), service)


def _varint(number):
    text = bytearray()
    while number > 127:
        text.append(number & 127 | 128)
        number >>= 7
    return bytes([*text, number])


def _read_varint(data, at):
    number = shift = 0
    while True:
        number |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return number, at


def with_service(body, service):
    """The same request, byte for byte, whose profiles belong to a service: fields of a message may
    come in any order, so the Resource goes behind what is there. Official classes would rewrite the
    older layouts."""
    wanted = profiles.REQUEST()
    resource_profiles = wanted.resource_profiles.add()
    otlp.add_attributes(resource_profiles.resource.attributes, {"service.name": service})
    resource = resource_profiles.SerializeToString()
    out, at = b"", 0
    while at < len(body):
        tag, start = _read_varint(body, at)
        size, start = _read_varint(body, start)
        field = body[start : start + size]
        if tag >> 3 == profiles.REQUEST.RESOURCE_PROFILES_FIELD_NUMBER:
            field += resource
        out += _varint(tag) + _varint(len(field)) + field
        at = start + size
    return out
