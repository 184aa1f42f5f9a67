// SPDX-License-Identifier: Apache-2.0
// Samples that the browser holds as a pprof file (profile.proto): what local.js has read of files is saved without the daemon.

class Writer {
    constructor() {
        this.bytes = new Uint8Array(4096);
        this.size = 0;
    }

    room(more) {
        if (this.size + more <= this.bytes.length) return;
        const grown = new Uint8Array(2 * (this.size + more));
        grown.set(this.bytes);
        this.bytes = grown;
    }

    varint(value) {
        this.room(10);
        let left = value < 0 ? BigInt.asUintN(64, BigInt(Math.round(value))) : BigInt(Math.round(value));
        for (; left >= 128n; left >>= 7n) this.bytes[this.size++] = Number(left & 127n) | 128;
        this.bytes[this.size++] = Number(left);
    }

    number(field, value) {
        if (!value) return;
        this.varint(field * 8);
        this.varint(value);
    }

    block(field, bytes) {
        this.varint(field * 8 + 2);
        this.varint(bytes.length);
        this.room(bytes.length);
        this.bytes.set(bytes, this.size);
        this.size += bytes.length;
    }

    message(field, write) {
        const inner = new Writer();
        write(inner);
        this.block(field, inner.taken());
    }

    packed(field, values) {
        if (values.length) this.message(field, (inner) => values.forEach((value) => inner.varint(value)));
    }

    taken() { return this.bytes.subarray(0, this.size); }
}

/** Numbers of texts from 0 on, in the order in which they are first asked for. */
class Numbers {
    constructor(first) {
        this.all = new Map(first.map((text, i) => [text, i]));
    }

    of(text) {
        if (!this.all.has(text)) this.all.set(text, this.all.size);
        return this.all.get(text);
    }
}

/** samples: [{stack (root first), type, unit, value, traceId, spanId, service}]. Returns the file's bytes, gzip-compressed. */
export async function pprofOf(samples) {
    const out = new Writer();
    const strings = new Numbers([""]);
    const names = new Numbers([""]); // functions, and locations, by their ids
    const types = new Numbers([]);
    const rows = new Map();
    for (const sample of samples) {
        const type = types.of(`${sample.type}\n${sample.unit}`);
        const ids = sample.stack.map((name) => names.of(name)).reverse();
        const labels = [["trace_id", sample.traceId], ["span_id", sample.spanId], ["service_name", sample.service]].filter(([, value]) => value);
        const key = JSON.stringify([ids, labels]);
        if (!rows.has(key)) rows.set(key, { ids, labels, values: [] });
        const { values } = rows.get(key);
        values[type] = (values[type] ?? 0) + sample.value;
    }
    for (const text of types.all.keys()) {
        const [type, unit] = text.split("\n");
        out.message(1, (inner) => {
            inner.number(1, strings.of(type));
            inner.number(2, strings.of(unit));
        });
    }
    for (const { ids, labels, values } of rows.values())
        out.message(2, (inner) => {
            inner.packed(1, ids);
            inner.packed(2, Array.from({ length: types.all.size }, (_, i) => values[i] ?? 0));
            for (const [key, value] of labels)
                inner.message(3, (label) => {
                    label.number(1, strings.of(key));
                    label.number(2, strings.of(value));
                });
        });
    for (const [name, id] of names.all) {
        if (id === 0) continue;
        out.message(4, (inner) => {
            inner.number(1, id);
            inner.message(4, (line) => line.number(1, id));
        });
        out.message(5, (inner) => {
            inner.number(1, id);
            inner.number(2, strings.of(name));
        });
    }
    const encoder = new TextEncoder();
    for (const text of strings.all.keys()) out.block(6, encoder.encode(text));
    const stream = new Blob([out.taken()]).stream().pipeThrough(new CompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
}
