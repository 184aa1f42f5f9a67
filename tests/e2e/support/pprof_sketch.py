# SPDX-License-Identifier: Apache-2.0
"""pprof profiles and PushRequests from a few words, byte by byte."""


def varint(number):
    number &= (1 << 64) - 1
    encoded = b""
    while number > 127:
        encoded += bytes([number & 127 | 128])
        number >>= 7
    return encoded + bytes([number])


def field(number, value):
    """A number, a string, or bytes as a protobuf field."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, str):
        value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


class Sketch:
    """One profile; stacks are lists of names, the leaf first; labels are strings or numbers."""

    def __init__(self):
        self._texts = [""]
        self._functions = {}
        self._body = b""

    def _text(self, text):
        if text not in self._texts:
            self._texts.append(text)
        return self._texts.index(text)

    def _location(self, name):
        if name not in self._functions:
            number = self._functions[name] = len(self._functions) + 1
            self._body += field(5, field(1, number) + field(2, self._text(name)))
            self._body += field(4, field(1, number) + field(4, field(1, number)))
        return self._functions[name]

    def sample(self, stack, values, **labels):
        locations = b"".join(varint(self._location(name)) for name in stack)
        message = field(1, locations) + field(2, b"".join(varint(value) for value in values))
        for key, value in labels.items():
            number = isinstance(value, int)
            content = field(3, value) if number else field(2, self._text(value))
            message += field(3, field(1, self._text(key)) + content)
        self._body += field(2, message)
        return self

    def bytes(self, types, period, at_ns):
        """Types and the period's type as "cpu:nanoseconds"."""

        def value_type(text):
            kind, unit = text.split(":")
            return field(1, self._text(kind)) + field(2, self._text(unit))

        head = b"".join(field(1, value_type(text)) for text in types)
        head += field(11, value_type(period[0])) + field(12, period[1]) + field(9, at_ns)
        return head + self._body + b"".join(field(6, text) for text in self._texts)


def push(labels, *profiles):
    """A PushRequest with one series."""
    series = b"".join(field(1, field(1, key) + field(2, text)) for key, text in labels.items())
    series += b"".join(field(2, field(1, profile)) for profile in profiles)
    return field(1, series)


def form(**parts):
    """A form's content type and body."""
    body = b""
    for name, content in parts.items():
        head = f'--XY\r\nContent-Disposition: form-data; name="{name}"; filename="{name}"\r\n\r\n'
        body += head.encode() + content + b"\r\n"
    return "multipart/form-data; boundary=XY", body + b"--XY--\r\n"
