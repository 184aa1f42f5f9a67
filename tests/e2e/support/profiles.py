# SPDX-License-Identifier: Apache-2.0
"""OTLP profiles made with the official classes, and every sample of them spelt out."""

import collections
import time

from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import (
    ExportProfilesServiceRequest,
    ExportProfilesServiceResponse,
)

from . import otlp

SERVICE = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
PATH = "/v1development/profiles"
REQUEST = ExportProfilesServiceRequest
RESPONSE = ExportProfilesServiceResponse
MINUTE_NS = 60 * 10**9


class Table:
    """A dictionary's table: values in order of first use, the zero value first."""

    def __init__(self, zero):
        self._numbers = {zero: 0}

    def __call__(self, key, make=None):
        if key not in self._numbers:
            self._numbers[key] = len(self._numbers)
            if make:
                make()
        return self._numbers[key]

    def keys(self):
        return list(self._numbers)


class Builder:
    """One request: profile() adds a Profile, sample() a sample to the last one."""

    def __init__(self, resource=None):
        self.request = ExportProfilesServiceRequest()
        self._dictionary = dictionary = self.request.dictionary
        for table in ("mapping", "location", "function", "link", "attribute", "stack"):
            getattr(dictionary, f"{table}_table").add()
        dictionary.string_table.append("")
        self._tables = collections.defaultdict(lambda: Table(None))
        self._tables["string"] = Table("")
        self._resource = self.request.resource_profiles.add()
        otlp.add_attributes(
            self._resource.resource.attributes,
            {"service.name": "e2e"} if resource is None else resource,
        )
        self._scope = self._resource.scope_profiles.add()
        self._profile = None

    def _string(self, text):
        return self._tables["string"](text, lambda: self._dictionary.string_table.append(text))

    def _entry(self, table, key, fields):
        add = getattr(self._dictionary, f"{table}_table").add
        return self._tables[table](key, lambda: add(**fields))

    def _location(self, name):
        text = self._string(name)
        function = self._entry("function", name, {"name_strindex": text})
        line = {"function_index": function, "line": 1}
        return self._entry("location", name, {"lines": [line]})

    def _attribute(self, key, value):
        def make():
            entry = self._dictionary.attribute_table.add(key_strindex=self._string(key))
            otlp.set_value(entry.value, value)

        return self._tables["attribute"]((key, repr(value)), make)

    def profile(self, kind, period=None, at_ns=None, duration_ns=10**10):
        """`kind` as "cpu:nanoseconds"; `period` as ("cpu:nanoseconds", 10000000)."""
        self._profile = self._scope.profiles.add(
            time_unix_nano=at_ns or time.time_ns() - MINUTE_NS, duration_nano=duration_ns
        )
        self._set_type(self._profile.sample_type, kind)
        if period:
            self._set_type(self._profile.period_type, period[0])
            self._profile.period = period[1]
        return self

    def _set_type(self, value_type, kind):
        value_type.type_strindex, value_type.unit_strindex = map(self._string, kind.split(":"))

    def sample(self, frames, value, link=None, **attributes):
        """`frames` from the leaf; `link` as (trace id, span id) in bytes."""
        stack = tuple(map(self._location, frames))
        sample = self._profile.samples.add(
            stack_index=self._entry("stack", stack, {"location_indices": stack}), values=[value]
        )
        sample.attribute_indices.extend(self._attribute(*pair) for pair in attributes.items())
        if link:
            fields = {"trace_id": link[0], "span_id": link[1]}
            sample.link_index = self._entry("link", link, fields)
        return self

    def bytes(self):
        return self.request.SerializeToString()


def _stack(dictionary, sample):
    locations = dictionary.stack_table[sample.stack_index].location_indices
    return tuple(
        dictionary.string_table[dictionary.function_table[line.function_index].name_strindex]
        for index in locations
        for line in dictionary.location_table[index].lines
    )


def _attributes(dictionary, sample):
    entries = (dictionary.attribute_table[index] for index in sample.attribute_indices)
    return tuple(
        sorted(
            (dictionary.string_table[entry.key_strindex], otlp.value_of(entry.value))
            for entry in entries
        )
    )


def samples_of(payloads):
    """Every sample in words, counted: type, stack, attributes, link, values, time."""
    found = collections.Counter()
    for payload in payloads:
        request = ExportProfilesServiceRequest.FromString(payload)
        strings = request.dictionary.string_table
        for resource in request.resource_profiles:
            for scope in resource.scope_profiles:
                for profile in scope.profiles:
                    kind = profile.sample_type
                    for sample in profile.samples:
                        link = request.dictionary.link_table[sample.link_index]
                        found[
                            (
                                f"{strings[kind.type_strindex]}:{strings[kind.unit_strindex]}",
                                _stack(request.dictionary, sample),
                                _attributes(request.dictionary, sample),
                                (link.trace_id, link.span_id),
                                tuple(sample.values),
                                profile.time_unix_nano,
                            )
                        ] += 1
    return found
