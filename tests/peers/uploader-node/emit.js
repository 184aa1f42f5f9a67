// SPDX-License-Identifier: Apache-2.0
// Works for a while under Pyroscope's Node SDK and uploads what it saw.
// Usage: emit.js ENDPOINT SERVICE SECONDS
"use strict";

const pyroscope = require("@pyroscope/nodejs");

const [endpoint, service, seconds] = process.argv.slice(2);
const end = Date.now() + Number(seconds) * 1000;
let sum = 0;

function work() {
  for (let i = 0; i < 1e7; i++) sum += i;
  if (Date.now() < end) setImmediate(work);
  else pyroscope.stop().then(() => process.exit(0), (error) => { console.error(error); process.exit(1); });
}

pyroscope.init({
  serverAddress: endpoint,
  appName: service,
  tags: { region: "eu" },
  flushIntervalMs: 2000,
  wall: { collectCpuTime: true },
});
pyroscope.start();
work();
