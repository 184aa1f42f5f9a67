# SPDX-License-Identifier: Apache-2.0
"""Clients that send numbered items without a pause, and a back-end that comes and goes: together
they know what was acknowledged and what arrived."""

import contextlib
import hashlib
import http.client
import itertools
import random
import re
import threading
import time
import urllib.parse

import grpc

from . import client, otlp, pprof_sketch, profiles, sink

REMOTE_WRITE_PATH = "/api/v1/write"
PUSH_PATH = "/push.v1.PusherService/Push"
PAD_MAX = 3000
MARK = re.compile(rb"item-(\d+)-([0-9a-f]{12})-")
AGAIN_AFTER_S = 0.02  # after a refusal or a failed connection


def mark(serial):
    """The string of an item, with a checksum of its number."""
    return f"item-{serial}-{hashlib.sha256(str(serial).encode()).hexdigest()[:12]}-"


def marks_of(payload):
    """The numbers of the items in these bytes; a broken string is an error."""
    found = []
    for number, check in MARK.findall(payload):
        if mark(int(number)).encode() != b"item-%s-%s-" % (number, check):
            raise AssertionError(f"item {number} arrived damaged")
        found.append(int(number))
    return found


def _traces(serial, pad):
    request = otlp.traces(1)
    span = request.resource_spans[0].scope_spans[0].spans[0]
    span.name = mark(serial)
    otlp.add_attributes(span.attributes, {"pad": "x" * pad})
    return request.SerializeToString()


def _logs(serial, pad):
    request = otlp.logs(1)
    record = request.resource_logs[0].scope_logs[0].log_records[0]
    record.body.string_value = mark(serial) + "x" * pad
    return request.SerializeToString()


def _metrics(serial, pad):
    request = otlp.metrics(1)
    metric = request.resource_metrics[0].scope_metrics[0].metrics[0]
    metric.name = mark(serial)
    metric.description = "x" * pad
    return request.SerializeToString()


def _profiles(serial, pad):
    builder = profiles.Builder().profile("cpu:nanoseconds", ("cpu:nanoseconds", 10**7))
    # Every other one names a span that never comes, for which a join holds it.
    link = (serial.to_bytes(16, "big"), serial.to_bytes(8, "big")) if serial % 2 else None
    return builder.sample([mark(serial), "x" * pad], 10**7, link=link).bytes()


def _push(serial, pad):
    sketch = pprof_sketch.Sketch().sample([mark(serial), "x" * pad], [10**7])
    body = sketch.bytes(["cpu:nanoseconds"], ("cpu:nanoseconds", 10**7), time.time_ns())
    return pprof_sketch.push({"__name__": "process_cpu", "service_name": "e2e"}, body)


MAKERS = {
    "traces": _traces,
    "metrics": _metrics,
    "logs": _logs,
    "profiles": _profiles,
    "push": _push,
}
class _Unread:
    """A body whose protobuf the tests have no classes for."""

    @staticmethod
    def FromString(payload):
        return payload


DECODERS = {
    REMOTE_WRITE_PATH: _Unread,
    "/v1development/profiles": profiles.REQUEST,
    **{f"/v1/{signal}": request for signal, request in otlp.REQUESTS.items()},
}
METHODS = {**client.SERVICES, "profiles": profiles.SERVICE}
URLS = {
    **{signal: f"/v1/{signal}" for signal in otlp.REQUESTS},
    "profiles": profiles.PATH,
    "push": PUSH_PATH,
}


class _Http:
    """Keeps one connection as long as it lasts."""

    def __init__(self, port, signal):
        self._port = port
        self._signal = signal
        self._connection = None
        proto = "application/proto" if signal == "push" else client.PROTOBUF
        self._headers = {"Content-Type": proto}

    def send(self, body):
        """(acknowledged, refused with a hint): neither without a response."""
        if self._connection is None:
            self._connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=10)
        try:
            self._connection.request("POST", URLS[self._signal], body, self._headers)
            response = self._connection.getresponse()
            response.read()
        except (OSError, http.client.HTTPException):
            self.close()
            return False, None
        if response.status == 200:
            return True, None
        return False, (str(response.status), bool(response.getheader("Retry-After")))

    def close(self):
        if self._connection is not None:
            self._connection.close()
        self._connection = None


class _Grpc:
    def __init__(self, port, signal):
        options = [("grpc.initial_reconnect_backoff_ms", 20), ("grpc.max_reconnect_backoff_ms", 50)]
        options += [("grpc.min_reconnect_backoff_ms", 20), ("grpc.use_local_subchannel_pool", 1)]
        self._channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=options)
        self._call = self._channel.unary_unary(
            METHODS[signal], request_serializer=bytes, response_deserializer=bytes
        )

    def send(self, body):
        try:
            self._call(body, timeout=10)
        except grpc.RpcError as error:
            details = error.trailing_metadata() or ()
            is_hinted = any(key == "grpc-status-details-bin" for key, _ in details)
            # What the channel itself says when the port is closed has no details either.
            return False, (error.code().name, is_hinted) if is_hinted else None
        return True, None

    def close(self):
        self._channel.close()


class Load:
    """One thread for each of `roads`: ("grpc" or "http" or "push", signal). `note`, if given, is
    called before an item is sent, with "sent", its number, its signal and its pad's size, and after
    it was acknowledged, with "ok" and its number."""

    def __init__(self, roads, ports, seed=0, pad_max=PAD_MAX, first=1, note=None):
        self._changed = threading.Condition()
        self._serials = itertools.count(first)
        self._note = note or (lambda *what: None)
        self._is_over = threading.Event()
        self._is_paused = False
        self._sending = 0
        self.acknowledged = {}  # serial: the road it took
        self._silent = set(roads)
        self.sent = 0
        self.refusals = {}  # (signal, status, whether it had a hint): how often
        self._threads = [
            threading.Thread(target=self._run, args=(kind, signal, ports[kind], seed + i, pad_max))
            for i, (kind, signal) in enumerate(roads)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, kind, signal, port, seed, pad_max):
        choice = random.Random(seed)
        connection = (_Grpc if kind == "grpc" else _Http)(port, signal)
        while not self._is_over.is_set():
            with self._changed:
                self._changed.wait_for(lambda: not self._is_paused or self._is_over.is_set())
                serial = next(self._serials)
                self.sent += 1
                self._sending += 1
            pad = choice.randrange(pad_max)
            body = MAKERS[signal](serial, pad)
            self._note("sent", serial, signal, pad)
            is_acknowledged, refusal = connection.send(body)
            if is_acknowledged:
                self._note("ok", serial)
            with self._changed:
                self._sending -= 1
                if is_acknowledged:
                    self.acknowledged[serial] = (kind, signal)
                    self._silent.discard((kind, signal))
                elif refusal is not None:
                    refusal = (signal, *refusal)
                    self.refusals[refusal] = self.refusals.get(refusal, 0) + 1
                self._changed.notify_all()
            if not is_acknowledged:
                self._is_over.wait(AGAIN_AFTER_S)
        connection.close()

    def count(self):
        with self._changed:
            return len(self.acknowledged)

    def roads_without_ok(self):
        with self._changed:
            return sorted(self._silent)

    def wait(self, predicate, within):
        """Until predicate(self) holds; says whether it does."""
        with self._changed:
            return self._changed.wait_for(lambda: predicate(self), within)

    def wait_for_more(self, count, within):
        """Until so many more were acknowledged; says whether they were."""
        wanted = self.count() + count
        return self.wait(lambda load: len(load.acknowledged) >= wanted, within)

    def pause(self, within=30):
        """Nothing is on its way any more."""
        with self._changed:
            self._is_paused = True
            if not self._changed.wait_for(lambda: self._sending == 0, within):
                raise AssertionError("a request never got a response")

    def go_on(self):
        with self._changed:
            self._is_paused = False
            self._changed.notify_all()

    def close(self):
        self._is_over.set()
        with self._changed:
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()


class BackEnd:
    """A sink on one port that is up, responds with 503, or is down."""

    def __init__(self, port, make_sink=sink.Sink):
        self.port = port
        self._make_sink = make_sink
        self.url = f"http://127.0.0.1:{port}"
        self._sink = None
        self._sinks = []  # every one that there was, and how many of its requests are read
        self._seen = {}  # serial: how often

    def up(self):
        if self._sink is None:
            self._sink = self._make_sink(self.port)
            self._sinks.append([self._sink, 0])
        self._sink.respond_with(sink.Reply())

    def refuse(self, status=503):
        self.up()
        self._sink.respond_with(sink.Reply(status))

    def hold(self):
        """Requests are read; their responses wait for release()."""
        self.up()
        self._sink.hold()

    def release(self):
        self._sink.release()

    def away(self):
        if self._sink is None:
            return
        # Connections that are open outlive the listener.
        self._sink.respond_with(sink.Reply(503, {"Connection": "close"}))
        self._sink.close()
        self._sink = None

    def collect(self):
        """Reads what has come since; returns how often each item has arrived so far."""
        for place in self._sinks:
            requests = list(place[0].requests)
            for request in requests[place[1] :]:
                if request.status != 200:
                    continue
                path = urllib.parse.urlsplit(request.path).path
                DECODERS[path].FromString(request.payload)
                for serial in set(marks_of(request.payload)):
                    self._seen[serial] = self._seen.get(serial, 0) + 1
            place[1] = len(requests)
        return self._seen

    def wait_for(self, serials, within):
        """Until all of them have come; returns those that have not."""
        with contextlib.suppress(AssertionError):
            self._sink.wait(lambda requests: not serials - self.collect().keys(), within)
        return serials - self.collect().keys()

    def close(self):
        self.away()
