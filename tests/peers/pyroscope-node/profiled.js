// SPDX-License-Identifier: Apache-2.0

// Works while Pyroscope's SDK profiles it and OpenTelemetry's traces it; prints, as JSON, which spans
// it had. The options are those of every Pyroscope peer: see tests/peers/README.md.
'use strict';

const { parseArgs } = require('node:util');
const { default: Pyroscope } = require('@pyroscope/nodejs');
const { OTLPTraceExporter } = require('@opentelemetry/exporter-trace-otlp-proto');
const { resourceFromAttributes } = require('@opentelemetry/resources');
const { BasicTracerProvider, BatchSpanProcessor } = require('@opentelemetry/sdk-trace-base');

const FLUSH_MS = 1000;

function render(ms) {
  const until = Date.now() + ms;
  let sum = 0;
  while (Date.now() < until) for (let i = 0; i < 1e6; i++) sum += i * i;
  return sum;
}

function parse(ms) {
  const until = Date.now() + ms;
  let sum = 0;
  while (Date.now() < until) for (let i = 0; i < 1e6; i++) sum ^= i * i;
  return sum;
}

const REQUESTS = [
  ['search', parse, 400],
  ['checkout', render, 1500],
  ['list', parse, 400],
];

/** A slow request, and fast ones before and after it. This SDK has no integration: the program names
 * the span itself. */
async function serve(tracer) {
  const spans = [];
  for (const [name, work, ms] of REQUESTS) {
    const span = tracer.startSpan(name, { attributes: { 'http.route': `/${name}` } });
    const { traceId, spanId } = span.spanContext();
    Pyroscope.wrapWithLabels({ trace_id: traceId, span_id: spanId }, () => work(ms));
    span.end();
    spans.push({ name, trace_id: traceId, span_id: spanId });
    await new Promise(setImmediate);
  }
  return spans;
}

async function main() {
  const { values: options } = parseArgs({
    options: {
      spans: { type: 'string' },
      profiles: { type: 'string' },
      service: { type: 'string' },
      work: { type: 'string' },
    },
  });
  Pyroscope.init({
    appName: options.service,
    serverAddress: options.profiles,
    flushIntervalMs: FLUSH_MS,
    wall: { collectCpuTime: true },
  });
  Pyroscope.startWallProfiling();
  const provider = new BasicTracerProvider({
    resource: resourceFromAttributes({ 'service.name': options.service }),
    spanProcessors: [
      new BatchSpanProcessor(new OTLPTraceExporter({ url: `${options.spans}/v1/traces` }), {
        scheduledDelayMillis: 500,
      }),
    ],
  });
  const spans = await serve(provider.getTracer('peer'));
  await provider.shutdown();
  // Stopping right after work fails inside the SDK; its timer has sent everything by then.
  await new Promise((resolve) => setTimeout(resolve, 3 * FLUSH_MS));
  console.log(JSON.stringify({ sdk: 'node', spans }));
  process.exit(0);
}

main();
