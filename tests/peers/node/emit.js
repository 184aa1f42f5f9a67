// SPDX-License-Identifier: Apache-2.0

// Emits known telemetry through the OpenTelemetry SDK for Node and prints, as JSON, what it sent.
// The options are those of every peer: see tests/peers/README.md.
'use strict';

const { parseArgs } = require('node:util');
const { SeverityNumber } = require('@opentelemetry/api-logs');
const { resourceFromAttributes } = require('@opentelemetry/resources');
const { BasicTracerProvider, BatchSpanProcessor } = require('@opentelemetry/sdk-trace-base');
const { MeterProvider, PeriodicExportingMetricReader } = require('@opentelemetry/sdk-metrics');
const { LoggerProvider, BatchLogRecordProcessor } = require('@opentelemetry/sdk-logs');

const TEXT = 'ä€𝄞';
const PACKAGES = {
  traces: ['trace', 'OTLPTraceExporter'],
  metrics: ['metrics', 'OTLPMetricExporter'],
  logs: ['logs', 'OTLPLogExporter'],
};

function exporterOf(options, signal) {
  const [name, type] = PACKAGES[signal];
  const wire = { grpc: 'grpc', http: 'proto', json: 'http' }[options.protocol];
  const Exporter = require(`@opentelemetry/exporter-${name}-otlp-${wire}`)[type];
  const base = `${options.tls ? 'https' : 'http'}://${options.endpoint}`;
  return new Exporter({
    url: options.protocol === 'grpc' ? base : `${base}/v1/${signal}`,
    compression: options.compression,
  });
}

async function emitSpans(options, resource) {
  const provider = new BasicTracerProvider({
    resource,
    spanProcessors: [new BatchSpanProcessor(exporterOf(options, 'traces'))],
  });
  const tracer = provider.getTracer('peer');
  const sent = [];
  for (let index = 0; index < Number(options.spans); index++) {
    const name = `node-span-${index}`;
    const span = tracer.startSpan(name, {
      attributes: { 'peer.index': index, 'peer.text': TEXT, 'peer.ratio': 0.5, 'peer.flag': true },
    });
    span.addEvent('peer-event');
    span.end();
    const { traceId, spanId } = span.spanContext();
    sent.push({ trace_id: traceId, span_id: spanId, name });
  }
  await provider.forceFlush();
  await provider.shutdown();
  return sent;
}

async function emitMetrics(options, resource) {
  const reader = new PeriodicExportingMetricReader({
    exporter: exporterOf(options, 'metrics'),
    exportIntervalMillis: 3600000,
  });
  const provider = new MeterProvider({ resource, readers: [reader] });
  const meter = provider.getMeter('peer');
  const sent = {};
  for (let index = 0; index < Number(options.points); index++) {
    const name = `node.metric.${index}`;
    meter.createCounter(name).add(index + 1);
    sent[name] = index + 1;
  }
  await provider.forceFlush();
  await provider.shutdown();
  return sent;
}

async function emitLogs(options, resource) {
  const processor = new BatchLogRecordProcessor({ exporter: exporterOf(options, 'logs') });
  const provider = new LoggerProvider({ resource, processors: [processor] });
  const logger = provider.getLogger('peer');
  const sent = [];
  for (let index = 0; index < Number(options.logs); index++) {
    const body = `node-log-${index} ${TEXT}`;
    logger.emit({ body, severityNumber: SeverityNumber.INFO });
    sent.push(body);
  }
  await provider.forceFlush();
  await provider.shutdown();
  return sent;
}

async function main() {
  const { values: options } = parseArgs({
    options: {
      protocol: { type: 'string', default: 'http' },
      endpoint: { type: 'string', default: '127.0.0.1:4318' },
      tls: { type: 'boolean', default: false },
      compression: { type: 'string', default: 'none' },
      service: { type: 'string', default: 'peer-node' },
      spans: { type: 'string', default: '10' },
      points: { type: 'string', default: '3' },
      logs: { type: 'string', default: '5' },
    },
  });
  const resource = resourceFromAttributes({ 'service.name': options.service });
  const sent = {
    sdk: 'node',
    spans: await emitSpans(options, resource),
    metrics: await emitMetrics(options, resource),
    logs: await emitLogs(options, resource),
  };
  console.log(JSON.stringify(sent));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
