# SPDX-License-Identifier: Apache-2.0
"""OTLP/JSON beside the Go collector: what is taken and refused, what it says at the back-end, and
what both write. The rows name differences."""

import json
import signal

from google.protobuf.json_format import MessageToDict
from support import case, client, compare, otlp, peers
from support.compare import Question
from support.ports import free_port

JSON = "application/json"
TYPE = {"Content-Type": JSON}
TAKEN = (200, JSON, {"partialSuccess": {}})
REFUSED = (400, JSON, 3)
WHY_TEXT = "Go cannot put its own error into the response, since it is not UTF-8"
WHY_MORE = "Go drops what stands behind the first value"
WHY_CONTROL = "RFC 8259 has no raw control characters; Go looks for them before the first escape only"
WHY_ESCAPES = "some libraries write every slash as an escape"
WHY_DEEP = "values 30 deep, as in protobuf"
ID = "5b8efff798038103d269b633813fc60c"


def config(http, exporters="  nop:\n", exporter="nop"):
    pipelines = "".join(
        f"    {signal}:\n      receivers: [otlp]\n      exporters: [{exporter}]\n"
        for signal in case.SIGNALS
    )
    return (
        "receivers:\n  otlp:\n    protocols:\n      http:\n"
        f"        endpoint: 127.0.0.1:{http}\n"
        f"exporters:\n{exporters}service:\n{case.QUIET}  pipelines:\n{pipelines}"
    )


def post(port, signal, text):
    body = text if isinstance(text, bytes) else text.encode()
    return client.request(port, "POST", f"/v1/{signal}", body, TYPE)


def outcome(response):
    """Status, media type, and the response or the code of the status."""
    document = json.loads(response.body)
    return (
        response.status,
        response.headers.get("content-type", "").split(";")[0],
        document if response.status == 200 else document["code"],
    )


def span(text):
    return '{"resourceSpans":[{"scopeSpans":[{"spans":[%s]}]}]}' % text


def value(text):
    return span('{"attributes":[{"key":"k","value":%s}]}' % text)


def metric(text):
    return '{"resourceMetrics":[{"scopeMetrics":[{"metrics":[%s]}]}]}' % text


def log(text):
    return '{"resourceLogs":[{"scopeLogs":[{"logRecords":[%s]}]}]}' % text


def nested(depth):
    return '{"arrayValue":{"values":[' * depth + "{}" + "]}}" * depth


def ask(text, signal="traces"):
    return lambda server: outcome(post(server.http, signal, text))


SPANS = {
    "a span": '{"traceId":"%s","spanId":"eee19b7ec3c1b174","name":"n","kind":2,"flags":257}' % ID,
    "upper-case ids": '{"traceId":"%s"}' % ID.upper(),
    "empty ids": '{"traceId":"","spanId":""}',
    "snake case": '{"trace_id":"%s","start_time_unix_nano":"5"}' % ID,
    "an enum by name": '{"kind":"SPAN_KIND_CLIENT","status":{"code":"STATUS_CODE_ERROR"}}',
    "an unknown enum value": '{"kind":77}',
    "a time as number": '{"startTimeUnixNano":1544712660000000000}',
    "a time as text": '{"startTimeUnixNano":"1544712660000000000"}',
    "leading zeros in text": '{"startTimeUnixNano":"007"}',
    "nulls": '{"name":null,"status":null,"attributes":null,"links":[null]}',
    "unknown fields": '{"x":{"y":[1,{"z":null}],"w":"\\u0041"},"v":-1.5e3,"name":"n"}',
    "messages twice": '{"status":{"code":2},"status":{"message":"m"}}',
    "scalars twice": '{"name":"a","name":"b","kind":3,"kind":0}',
    "lists twice": '{"events":[{"name":"a"}],"name":"x","events":[{"name":"b"}]}',
    "escapes": '{"name":"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\udd25"}',
    "lone surrogates": '{"name":"\\ud83d","traceState":"\\udd25x"}',
    "an escaped name": '{"n\\u0061me":"n"}',
    "unicode": '{"name":"ä€🔥"}',
}
VALUES = {
    "text": '{"stringValue":"x"}',
    "no text": '{"stringValue":null}',
    "a number": '{"intValue":-5}',
    "a number as text": '{"intValue":"-5"}',
    "a number with a sign": '{"intValue":"+5"}',
    "the largest number": '{"intValue":"9223372036854775807"}',
    "a real": '{"doubleValue":-1.5e-7}',
    "a real as text": '{"doubleValue":"1.5"}',
    "a real of many digits": '{"doubleValue":3.14159265358979323846264338327950288}',
    "a tiny real": '{"doubleValue":1e-400}',
    "infinite": '{"doubleValue":"-Infinity"}',
    "inf": '{"doubleValue":"inf"}',
    "bytes": '{"bytesValue":"AQIDBA=="}',
    "a list": '{"arrayValue":{"values":[{"boolValue":true},{},null]}}',
    "a map": '{"kvlistValue":{"values":[{"key":"a","value":{"boolValue":false}}]}}',
    "the last of a oneof": '{"intValue":1,"arrayValue":{"values":[{}]},"stringValue":"x"}',
    "the same of a oneof twice": '{"arrayValue":{"values":[{}]},"arrayValue":{"values":[{},{}]}}',
    "an empty list": '{"arrayValue":null}',
}
METRICS = {
    "a gauge": '{"name":"m","gauge":{"dataPoints":[{"asInt":"3","timeUnixNano":"1"}]}}',
    "the last of a oneof": '{"sum":{"isMonotonic":true},"gauge":{"dataPoints":[{"asDouble":1}]}}',
    "a histogram": '{"histogram":{"aggregationTemporality":"AGGREGATION_TEMPORALITY_DELTA",'
    '"dataPoints":[{"count":"3","sum":0,"bucketCounts":["1",2],"explicitBounds":[0.5,"1"],'
    '"min":-1,"exemplars":[{"asInt":"0","spanId":"eee19b7ec3c1b174"}]}]}}',
    "an exponential histogram": '{"exponentialHistogram":{"dataPoints":[{"scale":-3,"positive":'
    '{"offset":-7,"bucketCounts":["18446744073709551615"]},"zeroThreshold":0.25}]}}',
    "a summary": '{"summary":{"dataPoints":[{"quantileValues":[{"quantile":0.5,"value":2}]}]}}',
}
LOGS = {
    "a log": '{"severityNumber":"SEVERITY_NUMBER_ERROR2","body":{"stringValue":"b"},"eventName":"e"}',
    "a body of numbers": '{"body":{"intValue":"7"},"traceId":"%s","flags":1}' % ID,
}
WHOLE = {
    "old and new scopes": '{"resourceSpans":[{"deprecatedScopeSpans":[{"spans":[{"name":"old"}]}],'
    '"scopeSpans":[{"spans":[{"name":"new"}]}]}]}',
    "two resources": '{"resourceSpans":[{"resource":{"attributes":[{"key":"a"}]},"scopeSpans":[{"spans"'
    ':[{"name":"a"}]}]},{"scopeSpans":[{"scope":{"name":"s"},"spans":[{"name":"b"}]}]}]}',
}


class Verdicts(compare.SideBySide):
    def start(self, executable):
        http = free_port()
        server = self.server(config(http), executable=executable).wait_until_ready()
        server.http = http
        return server

    def questions(self):
        return self.documents() + self.values() + self.numbers()

    def documents(self):
        spaced = ' \t\r\n{ "resourceSpans" : [ ] } \n'
        return [
            Question("an object", ask("{}"), TAKEN),
            Question("null", ask("null"), TAKEN),
            Question("white space", ask(spaced), TAKEN),
            Question("logs", ask(log("{}"), "logs"), TAKEN),
            Question("nothing", ask(""), REFUSED),
            Question("a list", ask("[]"), REFUSED),
            Question("a string", ask('"x"'), REFUSED),
            Question("cut", ask(span("{}")[:-3]), REFUSED),
            Question("a comma too many", ask('{"resourceSpans":[{},]}'), REFUSED),
            Question("a name without quotes", ask("{resourceSpans:[]}"), REFUSED),
            Question("two documents", ask("{}{}"), REFUSED, TAKEN, WHY_MORE),
            Question("trailing garbage", ask("{} x"), REFUSED, TAKEN, WHY_MORE),
            Question("a byte order mark", ask("\ufeff{}"), REFUSED, (500, JSON, 13), WHY_TEXT),
            Question("UTF-16", ask("{}".encode("utf-16")), REFUSED, (500, JSON, 13), WHY_TEXT),
            Question("200 levels in an unknown field", ask('{"x":' * 200 + "1" + "}" * 200), TAKEN),
            Question("20 000 levels of it", ask('{"x":' * 20_000 + "1" + "}" * 20_000), REFUSED),
            Question("100 000 lists", ask('{"x":' + "[" * 100_000), REFUSED),
            Question("values 25 deep", ask(value(nested(25))), TAKEN),
            Question("values 200 deep", ask(value(nested(200))), REFUSED, TAKEN, WHY_DEEP),
            Question("values 20 000 deep", ask(value(nested(20_000))), REFUSED, TAKEN, WHY_DEEP),
        ]

    def values(self):
        def refused(name, text):
            return Question(name, ask(span(text)), REFUSED)

        return [
            refused("a number instead of a string", '{"name":5}'),
            refused("a list for a message", '{"status":[]}'),
            refused("a message for a list", '{"events":{}}'),
            refused("a string in a list of messages", '{"events":["x"]}'),
            refused("null for an id", '{"traceId":null}'),
            refused("31 digits", '{"traceId":"%s"}' % ID[1:]),
            refused("33 digits", '{"traceId":"%s0"}' % ID),
            refused("no digits", '{"traceId":"%s"}' % ("g" * 32)),
            refused("base64 for an id", '{"spanId":"7uGbfsPBsXQ="}'),
            refused("null for an enum", '{"kind":null}'),
            refused("an enum as digits", '{"kind":"3"}'),
            refused("an enum with a point", '{"kind":2.0}'),
            refused("an enum's short name", '{"kind":"SERVER"}'),
            refused("a control character", '{"name":"a\x01b"}'),
            refused("an unknown escape", '{"name":"\\x41"}'),
            refused("a short escape", '{"name":"\\u12"}'),
            refused("an unterminated string", '{"name":"x}'),
            Question(
                "a control character behind an escape",
                ask(span('{"name":"\\n\x01b"}')),
                REFUSED,
                TAKEN,
                WHY_CONTROL,
            ),
            Question("text for a bool", ask(value('{"boolValue":"true"}')), REFUSED),
            Question("null for a bool", ask(value('{"boolValue":null}')), REFUSED),
            Question("null for bytes", ask(value('{"bytesValue":null}')), REFUSED),
            Question(
                "base64 with escapes",
                ask(value('{"bytesValue":"\\/\\/79"}')),
                TAKEN,
                REFUSED,
                WHY_ESCAPES,
            ),
            Question("base64 without padding", ask(value('{"bytesValue":"AQI"}')), REFUSED),
            Question("base64 of URLs", ask(value('{"bytesValue":"-_8="}')), REFUSED),
        ]

    def numbers(self):
        def time(name, text):
            return Question(name, ask(span('{"startTimeUnixNano":%s}' % text)), REFUSED)

        def real(name, text, expected=REFUSED):
            return Question(name, ask(value('{"doubleValue":%s}' % text)), expected)

        counted = '{"droppedEventsCount":-1}'
        return [
            time("a point", "123.0"),
            time("an exponent", "1e3"),
            time("a sign", '"+1"'),
            time("a minus", '"-1"'),
            time("a space", '" 1"'),
            time("hexadecimal", '"0x10"'),
            time("no digits", '""'),
            time("null", "null"),
            time("too large", '"18446744073709551616"'),
            time("a leading zero", "01"),
            Question("an int too large", ask(value('{"intValue":9223372036854775808}')), REFUSED),
            Question("a point in text", ask(value('{"intValue":"1.0"}')), REFUSED),
            Question("a count too large", ask(span('{"flags":4294967296}')), REFUSED),
            Question("a negative count", ask(span(counted)), REFUSED, (500, JSON, 13), WHY_TEXT),
            real("a real too large", "1e400"),
            real("a real that is no number", '"x"'),
            real("null for a real", "null"),
            real("nan", '"nan"', TAKEN),
            real("NaN bare", "NaN"),
        ]


class Meaning(case.Case):
    """Both pass on what they read; their back-ends get equal messages."""

    def start(self, executable=None, extra=""):
        sink, http = self.sink(), free_port()
        exporter = f"  otlphttp:\n    endpoint: {sink.url}\n" + case.UNCOMPRESSED + case.DIRECT
        text = config(http, exporter + extra, "otlphttp")
        server = self.server(text, executable=executable).wait_until_ready()
        if executable is None:
            self.addCleanup(self._stop_cleanly, server)
        return sink, http

    def arrived(self, started, signal, text):
        sink, http = started
        before = len(sink.accepted())
        response = post(http, signal, text)
        self.assertEqual(response.status, 200, response.body)
        (request,) = sink.accepted()[before:]
        return without_empty(MessageToDict(otlp.decode(signal, request.payload)))

    def rows(self):
        for name, text in SPANS.items():
            yield name, "traces", span(text)
        for name, text in VALUES.items():
            yield name, "traces", value(text)
        for name, text in METRICS.items():
            yield name, "metrics", metric(text)
        for name, text in LOGS.items():
            yield name, "logs", log(text)
        for name, text in WHOLE.items():
            yield name, "traces", text

    def test_both_read_the_same(self):
        ours = self.start()
        found = [self.arrived(ours, signal, text) for _, signal, text in self.rows()]
        go = self.start(peers.otelcol())
        for (name, signal, text), said in zip(self.rows(), found, strict=True):
            with self.subTest(name):
                self.assertEqual(said, self.arrived(go, signal, text))

    def test_scopes_under_their_old_name_arrive(self):
        """The Go collector responds with 200 and drops them."""
        text = '{"resourceSpans":[{"deprecatedScopeSpans":[{"spans":[{"name":"old"}]}]}]}'
        found = self.arrived(self.start(), "traces", text)
        expected = {"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "old"}]}]}]}
        self.assertEqual(found, expected)

    def written(self, started, signal, body):
        sink, http = started
        before = len(sink.accepted())
        response = client.post(http, signal, body)
        self.assertEqual(response.status, 200, response.body)
        (request,) = sink.accepted()[before:]
        self.assertEqual(request.headers["content-type"], JSON)
        return json.loads(request.payload)

    def test_both_write_the_same(self):
        extra = "    encoding: json\n"
        plain, ours = self.start(), self.start(extra=extra)
        found = []
        for _, signal, text in self.rows():
            before = len(plain[0].accepted())
            self.assertEqual(post(plain[1], signal, text).status, 200)
            body = plain[0].accepted()[before].payload
            found.append((body, self.written(ours, signal, body)))
        go = self.start(peers.otelcol(), extra)
        for (name, signal, _), (body, said) in zip(self.rows(), found, strict=True):
            with self.subTest(name):
                self.assertEqual(said, self.written(go, signal, body))

    def test_there_and_back(self):
        """spanflame -> JSON -> collector -> JSON -> spanflame."""
        sink, last = self.start()
        first, middle = free_port(), free_port()
        exporter = "  otlphttp:\n    endpoint: http://127.0.0.1:{}\n    encoding: json\n" + case.DIRECT
        self.server(
            config(middle, exporter.format(last), "otlphttp"), executable=peers.otelcol()
        ).wait_until_ready()
        self.daemon(config(first, exporter.format(middle), "otlphttp"))
        for signal in case.SIGNALS:
            body = otlp.sample(signal, 20)
            self.assertEqual(client.post(first, signal, body.SerializeToString()).status, 200)
            (request,) = sink.accepted(signal)
            found = without_empty(MessageToDict(otlp.decode(signal, request.payload)))
            self.assertEqual(found, without_empty(MessageToDict(body)))


PROFILE = {
    "resourceProfiles": [
        {
            "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]},
            "scopeProfiles": [
                {
                    "scope": {"name": "s"},
                    "profiles": [
                        {
                            "sampleType": {"typeStrindex": 1, "unitStrindex": 2},
                            "samples": [
                                {
                                    "stackIndex": 1,
                                    "linkIndex": 1,
                                    "values": ["-5", "7"],
                                    "attributeIndices": [1],
                                    "timestampsUnixNano": ["1", "18446744073709551615"],
                                }
                            ],
                            "timeUnixNano": "1544712660000000000",
                            "durationNano": "60",
                            "periodType": {"typeStrindex": 1},
                            "period": "10000000",
                            "profileId": ID,
                            "originalPayloadFormat": "pprof",
                            "originalPayload": "AAECAw==",
                        }
                    ],
                }
            ],
        }
    ],
    "dictionary": {
        "mappingTable": [{}, {"memoryStart": "4096", "memoryLimit": "8192", "filenameStrindex": 4}],
        "locationTable": [
            {},
            {"mappingIndex": 1, "address": "4097", "lines": [{"functionIndex": 1, "line": "3"}]},
        ],
        "functionTable": [{}, {"nameStrindex": 3, "filenameStrindex": 4, "startLine": "1"}],
        "linkTable": [{}, {"traceId": ID, "spanId": "eee19b7ec3c1b174"}],
        "stringTable": ["", "cpu", "nanoseconds", "main", "main.go", "worker"],
        "attributeTable": [{}, {"keyStrindex": 5, "value": {"intValue": "3"}, "unitStrindex": 2}],
        "stackTable": [{}, {"locationIndices": [1]}],
    },
}


class Profiles(case.Case):
    """Received and sent as JSON, under the same field names."""

    PATH = "/v1development/profiles"

    def passed_on(self, executable=None, arguments=()):
        sink, http = self.sink(), free_port()
        server = self.server(
            f"receivers:\n  otlp:\n    protocols:\n      http:\n        endpoint: 127.0.0.1:{http}\n"
            f"exporters:\n  otlphttp:\n    endpoint: {sink.url}\n    encoding: json\n"
            + case.UNCOMPRESSED
            + case.DIRECT
            + f"service:\n{case.QUIET}  pipelines:\n    profiles:\n      receivers: [otlp]\n"
            "      exporters: [otlphttp]\n",
            executable=executable,
            arguments=arguments,
        ).wait_until_ready()
        response = client.request(http, "POST", self.PATH, json.dumps(PROFILE).encode(), TYPE)
        self.assertEqual(outcome(response), TAKEN)
        (request,) = sink.accepted(self.PATH)
        self.assertEqual(request.headers["content-type"], JSON)
        # The Go collector heeds signals only some time after it says that it is ready.
        codes = (0,) if executable is None else (0, -signal.SIGTERM)
        self.assertIn(server.stop(), codes)
        return json.loads(request.payload)

    def test_spanflame_passes_on_what_came(self):
        self.assertEqual(without_empty(self.passed_on()), PROFILE)

    def test_the_go_collector_says_the_same(self):
        gates = ("--feature-gates=service.profilesSupport",)
        self.assertEqual(self.passed_on(peers.otelcol(), gates), self.passed_on())


def without_empty(node):
    """An empty message equals an absent one, except in lists and as a value."""
    if isinstance(node, dict):
        kept = {key: without_empty(child) for key, child in node.items()}
        names = ("resource", "scope", "status", "value", "body", "positive", "negative")
        return {key: child for key, child in kept.items() if child != {} or key not in names}
    if isinstance(node, list):
        return [without_empty(child) for child in node]
    return node


if __name__ == "__main__":
    case.main()
