// SPDX-License-Identifier: Apache-2.0

// Sends known spans by Zipkin's own client for Node and prints them as the client's JSON of API v2.
// Usage: emit.js v1-json|v2-json HOST:PORT SERVICE
'use strict';

const zipkin = require('zipkin');
const { HttpLogger } = require('zipkin-transport-http');

const [format, endpoint, service] = process.argv.slice(2);
const START_US = 1700000000123456;
const TEXT = 'ä€𝄞';
const DEADLINE_MS = 60000;
const { Annotation, InetAddress } = zipkin;
const { JSON_V1, JSON_V2 } = zipkin.jsonEncoder;

const http = new HttpLogger({
  endpoint: `http://${endpoint}/api/${format.slice(0, 2)}/spans`,
  jsonEncoder: format === 'v1-json' ? JSON_V1 : JSON_V2,
  httpInterval: 20,
});
const sent = [];
const logger = {
  logSpan(span) {
    sent.push(JSON_V2.encode(span));
    http.logSpan(span);
  },
};
const tracer = new zipkin.Tracer({
  ctxImpl: new zipkin.ExplicitContext(),
  recorder: new zipkin.BatchRecorder({ logger }),
  localServiceName: service,
  // Of 64 bits in v2, as by default.
  traceId128Bit: format === 'v1-json',
  defaultTags: { deployment: 'eu' },
});

function record(id, { name, first, last, remote, start, took, tags = {}, messages = {} }) {
  tracer.letId(id, () => {
    tracer.recordAnnotation(first, START_US + start);
    tracer.recordServiceName(service);
    tracer.recordAnnotation(new Annotation.LocalAddr({ host: new InetAddress('10.0.0.1'), port: 8080 }));
    tracer.recordRpc(name);
    for (const [key, value] of Object.entries(tags)) tracer.recordBinary(key, value);
    for (const [text, time] of Object.entries(messages))
      tracer.recordAnnotation(new Annotation.Message(text), START_US + time);
    if (remote) tracer.recordAnnotation(remote);
    tracer.recordAnnotation(last, START_US + start + took);
  });
}

const root = tracer.createRootId();
const [child, job] = tracer.letId(root, () => [tracer.createChildId(), tracer.createChildId()]);
record(root, {
  name: 'get /cart',
  first: new Annotation.ServerRecv(),
  last: new Annotation.ServerSend(),
  remote: new Annotation.ClientAddr({ host: new InetAddress('10.0.0.9'), port: 40000 }),
  start: 0,
  took: 25000,
  tags: { 'http.path': '/cart', text: TEXT, rows: 2, hit: true },
  messages: { 'looked up': 1000, [TEXT]: 2000 },
});
record(child, {
  name: 'price',
  first: new Annotation.ClientSend(),
  last: new Annotation.ClientRecv(),
  remote: new Annotation.ServerAddr({
    serviceName: 'prices',
    host: new InetAddress('10.0.0.7'),
    port: 9000,
  }),
  start: 3000,
  took: 5001,
  tags: { error: 'no such price' },
});
record(job, {
  name: 'mail',
  first: new Annotation.LocalOperationStart('mail'),
  last: new Annotation.LocalOperationStop(),
  start: 9000,
  took: 10,
});

// All spans are in one request: nothing gave up the thread since the first.
http.on('success', () => {
  console.log(`{"spans": [${sent}]}`);
  process.exit(0);
});
http.on('error', (error) => {
  console.error(error);
  process.exit(1);
});
setTimeout(() => {
  console.error('no response');
  process.exit(1);
}, DEADLINE_MS);
