# SPDX-License-Identifier: Apache-2.0
"""A decoder of snappy's block format (google/snappy, format_description.txt)."""


def decode(data):
    size, at = _number(data)
    out = bytearray()
    while at < len(data):
        tag = data[at]
        at += 1
        if tag & 3 == 0:
            length = (tag >> 2) + 1
            if length > 60:
                more = length - 60
                length = int.from_bytes(data[at : at + more], "little") + 1
                at += more
            out += data[at : at + length]
            at += length
            continue
        if tag & 3 == 1:
            length, offset = (tag >> 2 & 7) + 4, (tag >> 5) << 8 | data[at]
            at += 1
        else:
            more = 2 if tag & 3 == 2 else 4
            length, offset = (tag >> 2) + 1, int.from_bytes(data[at : at + more], "little")
            at += more
        if not 0 < offset <= len(out):
            raise ValueError(f"a copy from {offset} bytes before byte {len(out)}")
        while length > 0:
            part = out[-offset:][:length] if offset < len(out) else bytes(out)[:length]
            out += part
            length -= len(part)
    if len(out) != size:
        raise ValueError(f"{len(out)} bytes instead of {size}")
    return bytes(out)


def _number(data):
    number, at = 0, 0
    while True:
        number |= (data[at] & 0x7F) << 7 * at
        at += 1
        if data[at - 1] < 0x80:
            return number, at
