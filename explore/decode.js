// SPDX-License-Identifier: Apache-2.0
// Bytes of a file to spans (in OTLP/JSON's shape) and samples (stacks of names): OTLP as JSON, JSON lines or protobuf, and pprof. gzip
// is taken off first. All bounded: a broken file ends in an error with words.

const INFLATED_MAX = 512 * 1024 * 1024;
const DEPTH_MAX = 32;
const text = new TextDecoder();

class Reader {
    constructor(bytes) {
        this.bytes = bytes;
        this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
        this.at = 0;
    }

    varint() {
        let value = 0;
        for (let shift = 0; shift < 49; shift += 7) {
            const byte = this.byte();
            value += (byte & 127) * 2 ** shift;
            if (byte < 128) return value;
        }
        let high = 0n;
        for (let shift = 49n; shift < 70n; shift += 7n) {
            const byte = this.byte();
            high |= BigInt(byte & 127) << shift;
            if (byte < 128) return Number(BigInt.asIntN(64, high + BigInt(value)));
        }
        throw new Error("a number does not end");
    }

    byte() {
        if (this.at >= this.bytes.length) throw new Error("it ends too early");
        return this.bytes[this.at++];
    }

    /** The next field, [number, wire type, value]; null at the end. Messages are subarrays, fixed64 are BigInts. */
    next() {
        if (this.at >= this.bytes.length) return null;
        const tag = this.varint();
        const number = Math.floor(tag / 8);
        const wire = tag % 8;
        if (number === 0) throw new Error("a field has number 0");
        const need = (size) => {
            if (!(size >= 0 && this.at + size <= this.bytes.length)) throw new Error("it ends too early");
        };
        if (wire === 0) return [number, wire, this.varint()];
        if (wire === 1) {
            need(8);
            this.at += 8;
            return [number, wire, this.view.getBigUint64(this.at - 8, true)];
        }
        if (wire === 5) {
            need(4);
            this.at += 4;
            return [number, wire, this.view.getUint32(this.at - 4, true)];
        }
        if (wire !== 2) throw new Error(`a field has wire type ${wire}`);
        const size = this.varint();
        need(size);
        this.at += size;
        return [number, wire, this.bytes.subarray(this.at - size, this.at)];
    }
}

/** Calls set[number](value) for each field of the message. */
function fields(bytes, set) {
    const reader = new Reader(bytes);
    for (let field = reader.next(); field; field = reader.next()) {
        const take = set[field[0]];
        if (take && (field[1] === 2) !== (take.scalar === true)) take(field[2], field[1]);
        else if (take) take.packed?.(field[2]);
    }
}

const scalar = (take) => Object.assign(take, { scalar: true });

/** Numbers, packed or one at a time. */
function numbers(out) {
    return Object.assign((value) => out.push(Number(value)), {
        scalar: true,
        packed(bytes) {
            const reader = new Reader(bytes);
            while (reader.at < bytes.length) out.push(reader.varint());
        },
    });
}

const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
const string = (bytes) => text.decode(bytes);

function anyValue(bytes, depth = 0) {
    if (depth > DEPTH_MAX) return {};
    let out = {};
    const reader = new Reader(bytes);
    for (let field = reader.next(); field; field = reader.next()) {
        const [number, wire, value] = field;
        if (number === 1 && wire === 2) out = { stringValue: string(value) };
        else if (number === 2 && wire === 0) out = { boolValue: value !== 0 };
        else if (number === 3 && wire === 0) out = { intValue: String(value) };
        else if (number === 4 && wire === 1) out = { doubleValue: new Float64Array(new BigUint64Array([value]).buffer)[0] };
        else if (number === 5 && wire === 2) {
            const values = [];
            fields(value, { 1: (one) => values.push(anyValue(one, depth + 1)) });
            out = { arrayValue: { values } };
        } else if (number === 6 && wire === 2) {
            const values = [];
            fields(value, { 1: (one) => values.push(keyValue(one, depth + 1)) });
            out = { kvlistValue: { values } };
        } else if (number === 7 && wire === 2) out = { bytesValue: hex(value) };
    }
    return out;
}

function keyValue(bytes, depth = 0) {
    const out = { key: "", value: {} };
    fields(bytes, { 1: (value) => { out.key = string(value); }, 2: (value) => { out.value = anyValue(value, depth); } });
    return out;
}

function resource(bytes) {
    const out = { attributes: [] };
    fields(bytes, { 1: (value) => out.attributes.push(keyValue(value)) });
    return out;
}

function span(bytes) {
    const out = { traceId: "", spanId: "", parentSpanId: "", name: "", kind: 0, startTimeUnixNano: "0", endTimeUnixNano: "0", attributes: [], events: [], links: [], status: {} };
    fields(bytes, {
        1: (value) => { out.traceId = hex(value); }, 2: (value) => { out.spanId = hex(value); }, 3: (value) => { out.traceState = string(value); },
        4: (value) => { out.parentSpanId = hex(value); }, 5: (value) => { out.name = string(value); }, 6: scalar((value) => { out.kind = value; }),
        7: scalar((value) => { out.startTimeUnixNano = String(value); }), 8: scalar((value) => { out.endTimeUnixNano = String(value); }),
        9: (value) => out.attributes.push(keyValue(value)),
        11: (value) => {
            const event = { timeUnixNano: "0", name: "", attributes: [] };
            fields(value, { 1: scalar((one) => { event.timeUnixNano = String(one); }), 2: (one) => { event.name = string(one); }, 3: (one) => event.attributes.push(keyValue(one)) });
            out.events.push(event);
        },
        13: (value) => {
            const link = { traceId: "", spanId: "", attributes: [] };
            fields(value, { 1: (one) => { link.traceId = hex(one); }, 2: (one) => { link.spanId = hex(one); }, 4: (one) => link.attributes.push(keyValue(one)) });
            out.links.push(link);
        },
        15: (value) => fields(value, { 2: (one) => { out.status.message = string(one); }, 3: scalar((one) => { out.status.code = one; }) }),
    });
    return out;
}

/** TracesData, or an export request: one layout. */
function tracesOf(bytes, out) {
    fields(bytes, {
        1: (value) => {
            let of = { attributes: [] };
            const scopes = [];
            fields(value, { 1: (one) => { of = resource(one); }, 2: (one) => scopes.push(one) });
            for (const one of scopes) {
                const scope = {};
                const spans = [];
                fields(one, { 1: (inner) => fields(inner, { 1: (name) => { scope.name = string(name); }, 2: (version) => { scope.version = string(version); } }), 2: (inner) => spans.push(span(inner)) });
                for (const inner of spans) out.spans.push({ span: inner, resource: of, scope });
            }
        },
    });
}

const named = (resourceOf) => resourceOf?.attributes?.find((pair) => pair.key === "service.name")?.value?.stringValue ?? "";

/** Samples of profiles whose tables are read: dictionary {strings, stacks: [names root first], links}. */
function samplesOf(profile, dictionary, service, out) {
    const type = dictionary.strings[profile.type] || "samples";
    const unit = dictionary.strings[profile.unit] || "count";
    for (const sample of profile.samples) {
        const link = dictionary.links[sample.link];
        const value = sample.values.length ? sample.values.reduce((all, one) => all + one, 0) : sample.times;
        out.samples.push({ stack: dictionary.stacks[sample.stack] ?? [], type: type.toLowerCase(), unit, value, count: Math.max(1, sample.times), service,
            traceId: link?.traceId ?? "", spanId: link?.spanId ?? "" });
    }
}

const address = (mapping, at) => `${(mapping || "unknown").split("/").pop()} 0x${at.toString(16)}`;

function stacksOf(dictionary) {
    const names = dictionary.locations.map((location) => (location.lines.length
        ? location.lines.map((line) => dictionary.strings[dictionary.functions[line] ?? 0] || "?").reverse()
        : [address(dictionary.strings[dictionary.mappings[location.mapping] ?? 0], location.address)]));
    dictionary.stacks = dictionary.rawStacks.map((stack) => stack.flatMap((_, i) => names[stack[stack.length - 1 - i]] ?? ["?"]));
}

const newDictionary = () => ({ strings: [], functions: [], mappings: [], locations: [], rawStacks: [], links: [], stacks: [] });

function profilesOf(bytes, out) {
    const dictionary = newDictionary();
    const resources = [];
    fields(bytes, {
        1: (value) => resources.push(value),
        2: (value) => fields(value, {
            1: (one) => { let file = 0; fields(one, { 4: scalar((inner) => { file = inner; }) }); dictionary.mappings.push(file); },
            2: (one) => {
                const location = { mapping: 0, address: 0, lines: [] };
                fields(one, { 1: scalar((inner) => { location.mapping = inner; }), 2: scalar((inner) => { location.address = inner; }),
                    3: (inner) => { let of = 0; fields(inner, { 1: scalar((index) => { of = index; }) }); location.lines.push(of); } });
                dictionary.locations.push(location);
            },
            3: (one) => { let name = 0; fields(one, { 1: scalar((inner) => { name = inner; }) }); dictionary.functions.push(name); },
            4: (one) => { const link = { traceId: "", spanId: "" }; fields(one, { 1: (inner) => { link.traceId = hex(inner); }, 2: (inner) => { link.spanId = hex(inner); } }); dictionary.links.push(link); },
            5: (one) => dictionary.strings.push(string(one)),
            7: (one) => { const stack = []; fields(one, { 1: numbers(stack) }); dictionary.rawStacks.push(stack); },
        }),
    });
    stacksOf(dictionary);
    for (const value of resources) {
        let of = null;
        const scopes = [];
        fields(value, { 1: (one) => { of = resource(one); }, 2: (one) => scopes.push(one) });
        for (const scope of scopes)
            fields(scope, { 2: (one) => {
                const profile = { type: 0, unit: 0, samples: [] };
                fields(one, {
                    1: (inner) => fields(inner, { 1: scalar((index) => { profile.type = index; }), 2: scalar((index) => { profile.unit = index; }) }),
                    2: (inner) => {
                        const sample = { stack: 0, link: 0, values: [], times: 0 };
                        fields(inner, { 1: scalar((index) => { sample.stack = index; }), 3: scalar((index) => { sample.link = index; }), 4: numbers(sample.values),
                            5: Object.assign(() => { sample.times++; }, { scalar: true, packed: (times) => { sample.times += times.length / 8; } }) });
                        profile.samples.push(sample);
                    },
                });
                samplesOf(profile, dictionary, named(of), out);
            } });
    }
}

function pprofOf(bytes, out, fileName) {
    const types = [];
    const samples = [];
    const locations = new Map();
    const functions = new Map();
    const mappings = new Map();
    const strings = [];
    fields(bytes, {
        1: (value) => { const type = [0, 0]; fields(value, { 1: scalar((one) => { type[0] = one; }), 2: scalar((one) => { type[1] = one; }) }); types.push(type); },
        2: (value) => {
            const sample = { stack: [], values: [], labels: [] };
            fields(value, { 1: numbers(sample.stack), 2: numbers(sample.values),
                3: (one) => { const label = [0, 0]; fields(one, { 1: scalar((inner) => { label[0] = inner; }), 2: scalar((inner) => { label[1] = inner; }) }); sample.labels.push(label); } });
            samples.push(sample);
        },
        3: (value) => { let id = 0; let file = 0; fields(value, { 1: scalar((one) => { id = one; }), 5: scalar((one) => { file = one; }) }); mappings.set(id, file); },
        4: (value) => {
            const location = { id: 0, mapping: 0, address: 0, lines: [] };
            fields(value, { 1: scalar((one) => { location.id = one; }), 2: scalar((one) => { location.mapping = one; }), 3: scalar((one) => { location.address = one; }),
                4: (one) => { let of = 0; fields(one, { 1: scalar((inner) => { of = inner; }) }); location.lines.push(of); } });
            locations.set(location.id, location);
        },
        5: (value) => { let id = 0; let name = 0; fields(value, { 1: scalar((one) => { id = one; }), 2: scalar((one) => { name = one; }) }); functions.set(id, name); },
        6: (value) => strings.push(string(value)),
    });
    const names = new Map([...locations].map(([id, location]) => [id, location.lines.length
        ? location.lines.map((line) => strings[functions.get(line) ?? 0] || "?").reverse()
        : [address(strings[mappings.get(location.mapping) ?? 0], location.address)]]));
    for (const sample of samples) {
        const labels = new Map(sample.labels.map(([key, value]) => [strings[key], strings[value]]));
        const stack = sample.stack.flatMap((_, i) => names.get(sample.stack[sample.stack.length - 1 - i]) ?? ["?"]);
        sample.values.forEach((value, i) => {
            if (value === 0 || !types[i]) return;
            out.samples.push({ stack, type: (strings[types[i][0]] || "samples").toLowerCase(), unit: strings[types[i][1]] || "count", value, count: 1,
                service: labels.get("service_name") ?? fileName, traceId: labels.get("trace_id") ?? "", spanId: labels.get("span_id") ?? labels.get("profile_id") ?? "" });
        });
    }
}

const list = (value) => (Array.isArray(value) ? value : []);

function jsonOf(data, out) {
    if (!data || typeof data !== "object") throw new Error("it is no OTLP/JSON: an object with resourceSpans or resourceProfiles was expected");
    for (const one of list(data.resourceSpans))
        for (const scope of list(one?.scopeSpans)) for (const span of list(scope?.spans))
            if (span && typeof span === "object") out.spans.push({ span, resource: one.resource ?? {}, scope: scope.scope ?? {} });
    const tables = data.dictionary ?? {};
    if (!data.resourceProfiles) {
        if (!data.resourceSpans) throw new Error("it has neither resourceSpans nor resourceProfiles");
        return;
    }
    const dictionary = newDictionary();
    dictionary.strings = list(tables.stringTable).map(String);
    dictionary.functions = list(tables.functionTable).map((one) => one?.nameStrindex ?? 0);
    dictionary.mappings = list(tables.mappingTable).map((one) => one?.filenameStrindex ?? 0);
    dictionary.locations = list(tables.locationTable).map((one) => ({ mapping: one?.mappingIndex ?? 0, address: Number(one?.address ?? 0), lines: list(one?.lines).map((line) => line?.functionIndex ?? 0) }));
    dictionary.rawStacks = list(tables.stackTable).map((one) => list(one?.locationIndices));
    dictionary.links = list(tables.linkTable).map((one) => ({ traceId: String(one?.traceId ?? ""), spanId: String(one?.spanId ?? "") }));
    stacksOf(dictionary);
    for (const one of list(data.resourceProfiles))
        for (const scope of list(one?.scopeProfiles)) for (const profile of list(scope?.profiles))
            samplesOf({ type: profile.sampleType?.typeStrindex ?? 0, unit: profile.sampleType?.unitStrindex ?? 0,
                samples: list(profile.samples).map((sample) => ({ stack: sample.stackIndex ?? 0, link: sample.linkIndex ?? 0, values: list(sample.values).map(Number), times: list(sample.timestampsUnixNano).length })) },
            dictionary, named(one.resource), out);
}

async function inflate(bytes) {
    const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")).getReader();
    const parts = [];
    let size = 0;
    for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        size += value.length;
        if (size > INFLATED_MAX) {
            reader.cancel();
            throw new Error("it is larger than 512 MiB when unpacked");
        }
        parts.push(value);
    }
    const out = new Uint8Array(size);
    let at = 0;
    for (const part of parts) {
        out.set(part, at);
        at += part.length;
    }
    return out;
}

/** Which of the layouts: their outermost fields tell. */
function layoutOf(bytes) {
    const seen = new Set();
    const reader = new Reader(bytes);
    for (let field = reader.next(); field; field = reader.next()) seen.add(field[0]);
    if (seen.has(6)) return pprofOf;
    if (seen.has(2)) return profilesOf;
    if (seen.has(1)) return tracesOf;
    throw new Error("it has none of the fields of OTLP or pprof");
}

/** Adds what the file has to out = {spans, samples}. */
export async function decode(file, out) {
    let bytes = new Uint8Array(await file.arrayBuffer());
    for (let i = 0; i < 3 && bytes[0] === 0x1f && bytes[1] === 0x8b; i++) bytes = await inflate(bytes);
    if (!bytes.length) throw new Error("it is empty");
    let first = bytes[0] === 0xef ? 3 : 0;
    while (first < bytes.length && [9, 10, 13, 32].includes(bytes[first])) first++;
    if (bytes[first] === 0x7b && (bytes[first + 1] === 0x22 || [9, 10, 13, 32, 0x7d].includes(bytes[first + 1]))) {
        const content = text.decode(bytes.subarray(first));
        let whole;
        try {
            whole = JSON.parse(content);
        } catch (error) {
            const lines = content.split("\n").filter((line) => line.trim());
            if (lines.length < 2) throw new Error(`it is no valid JSON: ${error.message}`);
            for (const line of lines) jsonOf(JSON.parse(line), out);
            return;
        }
        jsonOf(whole, out);
        return;
    }
    layoutOf(bytes)(bytes, out, file.name);
}
