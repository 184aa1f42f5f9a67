// SPDX-License-Identifier: Apache-2.0

// Sends known spans by Jaeger's own client for Node and prints, as JSON, what it sent.
// Usage: emit.js udp|http HOST:PORT SERVICE; over UDP it speaks Thrift's binary protocol.
'use strict';

const { initTracer, opentracing } = require('jaeger-client');

const [transport, endpoint, service] = process.argv.slice(2);
const [host, port] = endpoint.split(':');
const START_MS = 1700000000123;
const TEXT = 'ä€𝄞';
const reporter = transport === 'udp' ? { agentHost: host, agentPort: Number(port) }
  : { collectorEndpoint: `http://${endpoint}/api/traces` };
let failed = 0;
const logger = {
  info() {},
  error(message) {
    failed += 1;
    console.error(message);
  },
};
// UDP with trace ids of 64 bits, HTTP with those of 128.
const tracer = initTracer(
  {
    serviceName: service,
    sampler: { type: 'const', param: 1 },
    reporter,
  },
  { logger, traceId128bit: transport === 'http', tags: { 'deployment': 'eu', 'replica': 3, 'canary': true } },
);
const sent = [];

function record(name, options, { tags = {}, logs = [], took }) {
  const span = tracer.startSpan(name, options);
  for (const [key, value] of Object.entries(tags)) span.setTag(key, value);
  for (const { time_ms: time, fields } of logs) span.log(fields, time);
  span.finish(options.startTime + took);
  const context = span.context();
  const one = {
    trace_id: context.traceIdStr,
    span_id: context.spanIdStr,
    parent_id: context.parentIdStr || null,
    name,
    start_ms: options.startTime,
    end_ms: options.startTime + took,
    tags: { ...tags },
    logs,
  };
  for (const [key, value] of Object.entries(tags))
    if (value instanceof Buffer) one.tags[key] = { hex: value.toString('hex') };
  sent.push(one);
  return span;
}

const root = record('GET /cart', { startTime: START_MS }, {
  took: 25,
  tags: { 'span.kind': 'server', 'http.status_code': 200, 'ratio': 0.5, 'text': TEXT, 'flag': false, 'raw': Buffer.from([0, 255, 10]) },
  logs: [
    { time_ms: START_MS + 1, fields: { event: 'looked up', rows: 2, hit: true } },
    { time_ms: START_MS + 2, fields: { message: TEXT } },
  ],
});
record('price', { startTime: START_MS + 3, childOf: root }, {
  took: 5,
  tags: { 'span.kind': 'client', 'error': true, 'peer.service': 'prices' },
});
record('mail', { startTime: START_MS + 9, references: [opentracing.followsFrom(root.context())] }, { took: 0 });

tracer.close(() => {
  console.log(JSON.stringify({ spans: sent, process: { deployment: 'eu', replica: 3, canary: true } }));
  process.exit(failed ? 1 : 0);
});
