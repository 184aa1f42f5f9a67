// SPDX-License-Identifier: Apache-2.0
// Files that were dropped on the page, as a source with the methods of api.js: what the daemon computes is computed here, from what the
// browser holds. Nothing is sent anywhere.

import { decode } from "./decode.js";
import { tame, save } from "./dom.js";
import * as format from "./format.js";
import { text } from "./span.js";
import { pprofOf } from "./pprof.js";

const FILE_BYTES_MAX = 256 * 1024 * 1024;

const CODES = { STATUS_CODE_OK: 1, STATUS_CODE_ERROR: 2 };
const KINDS = { SPAN_KIND_INTERNAL: 1, SPAN_KIND_SERVER: 2, SPAN_KIND_CLIENT: 3, SPAN_KIND_PRODUCER: 4, SPAN_KIND_CONSUMER: 5 };

function big(value) {
    try {
        return BigInt(value ?? 0);
    } catch {
        return 0n;
    }
}

function spanOf({ span, resource, scope }) {
    const start = big(span.startTimeUnixNano);
    const service = text((resource.attributes ?? []).find((pair) => pair.key === "service.name")?.value) || "unknown_service";
    return {
        raw: span, resource, scope, service, id: String(span.spanId ?? "").toLowerCase(), trace: String(span.traceId ?? "").toLowerCase(),
        parentId: String(span.parentSpanId ?? "").toLowerCase(), name: String(span.name ?? ""), kind: KINDS[span.kind] ?? (Number(span.kind) || 0),
        status: CODES[span.status?.code] ?? (Number(span.status?.code) || 0), at: start, length: Math.max(0, Number(big(span.endTimeUnixNano) - start)), kids: [],
        events: Array.isArray(span.events) ? span.events : [], links: Array.isArray(span.links) ? span.links : [], cpu: 0, samples: 0,
    };
}

/** Order, depth, own time and the critical path of one trace. */
function arrange(id, spans) {
    const byId = new Map(spans.map((span) => [span.id, span]));
    const start = spans.reduce((least, span) => (span.at < least ? span.at : least), spans[0].at);
    const roots = [];
    for (const span of spans) {
        span.start = Number(span.at - start);
        const parent = byId.get(span.parentId);
        if (parent && parent !== span) {
            span.parent = parent;
            parent.kids.push(span);
        } else roots.push(span);
    }
    const order = [];
    const seen = new Set();
    const walk = (from) => {
        const open = [...from].sort((a, b) => b.start - a.start).map((span) => [span, 0]);
        while (open.length) {
            const [span, depth] = open.pop();
            if (seen.has(span)) continue;
            seen.add(span);
            span.row = order.length;
            span.depth = depth;
            order.push(span);
            span.kids.sort((a, b) => a.start - b.start);
            for (let i = span.kids.length - 1; i >= 0; i--) open.push([span.kids[i], depth + 1]);
        }
    };
    walk(roots);
    for (const span of spans) // a circle of parents has no root: its first span is one
        if (!seen.has(span)) {
            span.parent = null;
            walk([span]);
        }
    for (let i = order.length - 1; i >= 0; i--) {
        const span = order[i];
        span.subtree = 1;
        for (let next = i + 1; next < order.length && order[next].depth > span.depth; next += order[next].subtree) span.subtree += order[next].subtree;
        let covered = 0;
        let end = span.start;
        for (const kid of span.kids) {
            const from = Math.max(kid.start, end);
            const to = Math.min(kid.start + kid.length, span.start + span.length);
            if (to > from) {
                covered += to - from;
                end = to;
            }
        }
        span.self = Math.max(0, span.length - covered);
    }
    const open = roots.map((root) => [root, root.start + root.length]);
    while (open.length) {
        const [span, until] = open.pop();
        if (span.critical) continue;
        span.critical = true;
        let at = Math.min(until, span.start + span.length);
        for (const kid of [...span.kids].sort((a, b) => b.start + b.length - a.start - a.length)) {
            if (kid.start >= at) continue;
            open.push([kid, Math.min(at, kid.start + kid.length)]);
            at = kid.start;
            if (at <= span.start) break;
        }
    }
    const duration = order.reduce((most, span) => Math.max(most, span.start + span.length), 0);
    const services = new Map();
    for (const span of order) services.set(span.service, (services.get(span.service) ?? 0) + 1);
    return { id, start, duration, order, byId, services, root: roots.find((span) => !span.parentId) ?? null, errors: order.filter((span) => span.status === 2).length, samples: 0 };
}

/** Call trees of samples: sides is a list of lists. */
class Tree {
    constructor() {
        this.names = ["all"];
        this.index = new Map([["all", 0]]);
        this.root = { name: 0, total: [0, 0], self: [0, 0], kids: new Map() };
    }

    name(text) {
        let at = this.index.get(text);
        if (at === undefined) {
            at = this.names.push(text) - 1;
            this.index.set(text, at);
        }
        return at;
    }

    add(stack, value, side) {
        let node = this.root;
        node.total[side] += value;
        for (const text of stack) {
            const name = this.name(text);
            let next = node.kids.get(name);
            if (!next) node.kids.set(name, next = { name, total: [0, 0], self: [0, 0], kids: new Map() });
            next.total[side] += value;
            node = next;
        }
        node.self[side] += value;
    }

    rows(isDiff, width) {
        const out = [];
        const sum = this.root.total[0] + this.root.total[1];
        const least = sum / (2 * (width || 2000));
        const weight = (node) => node.total[0] + node.total[1];
        const open = [this.root];
        let pruned = 0;
        while (open.length) {
            const node = open.pop();
            const kids = [...node.kids.values()].filter((kid) => weight(kid) >= least).sort((a, b) => weight(a) - weight(b));
            pruned += node.kids.size - kids.length;
            out.push(isDiff ? [node.name, ...node.total, ...node.self, kids.length] : [node.name, node.total[0], node.self[0], kids.length]);
            for (const kid of kids) open.push(kid);
        }
        return { rows: out, pruned };
    }
}

class Files {
    constructor(out, names) {
        this.isLocal = true;
        this.names = names;
        this.all = out.samples;
        const groups = new Map();
        for (const one of out.spans) {
            const span = spanOf(one);
            if (!groups.has(span.trace)) groups.set(span.trace, []);
            groups.get(span.trace).push(span);
        }
        this.byTrace = new Map([...groups].map(([id, spans]) => [id, arrange(id, spans)]));
        this.sorted = [...this.byTrace.values()].sort((a, b) => (a.start < b.start ? 1 : a.start > b.start ? -1 : 0));
        const spansById = new Map();
        for (const trace of this.sorted) for (const span of trace.order) spansById.set(span.id, [trace, span]);
        for (const sample of this.all) {
            const [trace, span] = (sample.spanId && (this.byTrace.get(sample.traceId)?.byId.has(sample.spanId)
                ? [this.byTrace.get(sample.traceId), this.byTrace.get(sample.traceId).byId.get(sample.spanId)] : spansById.get(sample.spanId))) || [];
            if (!span) continue;
            sample.span = span;
            sample.traceId = trace.id;
            span.samples += sample.count;
            trace.samples += sample.count;
            if (sample.type === "cpu" && sample.unit === "nanoseconds") span.cpu += sample.value;
        }
        this.summary = `${format.plural(out.spans.length, "span")} and ${format.plural(this.all.length, "sample")} are open, in this browser only.`;
    }

    home() {
        if (this.sorted.length === 1) return `#/trace/${encodeURIComponent(this.sorted[0].id)}?from=file`;
        if (this.sorted.length) return "#/file";
        const services = new Set(this.all.map((sample) => sample.service));
        return services.size === 1 ? `#/service/${encodeURIComponent([...services][0])}?from=file` : "#/services?from=file";
    }

    async services() {
        const out = new Map();
        const at = (name) => {
            if (!out.has(name)) out.set(name, { name, spans: 0, traces: 0, errors: 0, hasProfile: false });
            return out.get(name);
        };
        for (const trace of this.sorted) {
            for (const [name, spans] of trace.services) {
                at(name).spans += spans;
                at(name).traces++;
            }
            for (const span of trace.order) if (span.status === 2) at(span.service).errors++;
        }
        for (const sample of this.all) at(sample.service).hasProfile = true;
        return { services: [...out.values()].sort((a, b) => b.spans - a.spans) };
    }

    picked(query) {
        const get = (key) => query.get(key);
        const least = format.parseDuration(get("min") ?? "0");
        const most = get("max") ? format.parseDuration(get("max")) : Infinity;
        const attributes = query.getAll("attr").map((pair) => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)]);
        const has = (span, [key, value]) => [...(span.raw.attributes ?? []), ...(span.resource.attributes ?? [])].some((pair) => pair.key === key && text(pair.value) === value);
        return this.sorted.filter((trace) => trace.duration >= least && trace.duration <= most && (!get("error") || trace.errors) && (!get("profile") || trace.samples) &&
            (!get("start") || trace.start >= big(get("start"))) && (!get("end") || trace.start < big(get("end"))) &&
            (!(get("service") || get("name") || attributes.length) || trace.order.some((span) => (!get("service") || span.service === get("service")) && (!get("name") || span.name === get("name")) && attributes.every((one) => has(span, one)))));
    }

    head(trace) {
        return { id: trace.id, start: String(trace.start), duration: trace.duration, spans: trace.order.length, errors: trace.errors, samples: trace.samples, complete: Boolean(trace.root),
            root: trace.root && { service: trace.root.service, name: trace.root.name, kind: trace.root.kind }, services: [...trace.services].map(([name, spans]) => ({ name, spans })) };
    }

    async traces(query) {
        const picked = this.picked(query);
        const from = Number(query.get("before") ?? 0);
        const limit = Number(query.get("limit") ?? 50);
        return { traces: picked.slice(from, from + limit).map((trace, i) => ({ ...this.head(trace), cursor: String(from + i + 1) })), total: picked.length, more: picked.length > from + limit, newest: "0" };
    }

    async scatter(query) {
        const picked = this.picked(query).slice(0, 2000);
        if (!picked.length) return { start: "0", end: "1", points: [], sampled: false, histogram: { edges: [], counts: [], errors: [] } };
        const start = picked.reduce((least, trace) => (trace.start < least ? trace.start : least), picked[0].start);
        const end = picked.reduce((most, trace) => (trace.start > most ? trace.start : most), start) + 1000000n;
        return { start: String(start), end: String(end), sampled: false, points: picked.map((trace) => [Number(trace.start - start) / 1e6, trace.duration, trace.errors ? 1 : 0, trace.id]), histogram: { edges: [], counts: [], errors: [] } };
    }

    of(id) {
        const trace = this.byTrace.get(id.toLowerCase());
        if (!trace) throw new Error("The open files do not have this trace.");
        return trace;
    }

    async trace(id) {
        const trace = this.of(id);
        const names = [...trace.services.keys()];
        const step = Math.max(1, Math.floor(trace.order.length / 1000));
        const whole = trace.duration || 1;
        return { ...this.head(trace), minimap: trace.order.filter((_, i) => i % step === 0).map((span) => [span.start / whole, (span.start + span.length) / whole, span.depth, names.indexOf(span.service), span.status === 2 ? 1 : 0]),
            criticalPath: trace.order.filter((span) => span.critical).slice(0, 2000).map((span) => span.row), types: [], why: this.why(trace) };
    }

    why(trace) {
        if (trace?.samples) return null;
        return this.all.length ? "The open files have profiles, but none of their samples names a span of this trace." : "The open files have no profiles. Drop a file of profiles together with this one.";
    }

    async rows(id, from, count) {
        const trace = this.of(id);
        const names = [...trace.services.keys()];
        const events = {};
        const rows = trace.order.slice(from, from + count).map((span) => {
            if (span.events.length) events[span.row] = span.events.slice(0, 50).map((event) => [Number(big(event.timeUnixNano) - trace.start), String(event.name ?? "")]);
            return [span.row, span.id, span.parent?.row ?? -1, span.depth, span.subtree, names.indexOf(span.service), span.name, span.start, span.length, span.kind, span.status, span.events.length, span.links.length, span.samples, span.cpu, span.self, span.critical ? 1 : 0];
        });
        return { from, total: trace.order.length, rows, events };
    }

    async find(id, q) {
        const wanted = q.toLowerCase();
        const rows = this.of(id).order.filter((span) => `${span.name}\n${span.service}`.toLowerCase().includes(wanted) || (span.raw.attributes ?? []).some((pair) => `${pair.key}=${text(pair.value)}`.toLowerCase().includes(wanted))).map((span) => span.row);
        return { rows: rows.slice(0, 200), more: rows.length > 200 };
    }

    async span(id, spanId) {
        const span = this.of(id).byId.get(spanId);
        if (!span) throw new Error("The open files do not have this span.");
        const cpu = Math.min(span.cpu, span.self);
        return { span: span.raw, resource: span.resource, scope: span.scope, row: span.row, bar: { onCpu: cpu, children: span.length - span.self, unexplained: span.self - cpu }, profile: { samples: span.samples, types: [], why: null } };
    }

    samplesOf(query) {
        if (query.get("not-trace")) {
            const { root } = this.of(query.get("not-trace"));
            const others = new Set(this.sorted.filter((trace) => trace.id !== query.get("not-trace") && trace.root && trace.root.name === root?.name).map((trace) => trace.id));
            return this.all.filter((sample) => others.has(sample.traceId));
        }
        if (query.get("trace")) {
            const trace = this.of(query.get("trace"));
            const ids = (query.get("span") ?? "").split(",").filter(Boolean);
            if (!ids.length) return this.all.filter((sample) => sample.traceId === trace.id);
            const rows = new Set();
            for (const id of ids) {
                const span = trace.byId.get(id);
                const end = span ? span.row + (query.get("subtree") ? span.subtree : 1) : 0;
                for (let row = span?.row ?? 0; row < end; row++) rows.add(row);
            }
            return this.all.filter((sample) => sample.traceId === trace.id && sample.span && rows.has(sample.span.row));
        }
        return this.all.filter((sample) => (query.get("service") === null || sample.service === query.get("service")) && (query.get("file") === null || sample.file === query.get("file")));
    }

    /** The files that have samples of a service: the sides of a comparison. */
    filesOf(service) {
        return [...new Set(this.all.filter((sample) => sample.service === service).map((sample) => sample.file))];
    }

    async diff(query) {
        const sides = ["a", "b"].map((key) => this.samplesOf(new URLSearchParams(query.get(key))));
        const types = new Map();
        sides.forEach((samples, side) => {
            for (const sample of samples) {
                const of = types.get(sample.type) ?? { type: sample.type, unit: sample.unit, a: { samples: 0, total: 0 }, b: { samples: 0, total: 0 } };
                const to = side ? of.b : of.a;
                to.samples += sample.count;
                to.total += sample.value;
                types.set(sample.type, of);
            }
        });
        const size = (type) => type.a.samples + type.b.samples;
        const list = [...types.values()].sort((x, y) => size(y) - size(x));
        const type = types.get(query.get("type")) ?? types.get("cpu") ?? types.get("wall") ?? list[0];
        const none = { samples: 0, total: 0 };
        const out = { type: type?.type ?? "", unit: type?.unit ?? "", a: type?.a ?? none, b: type?.b ?? none, samples: type ? size(type) : 0, types: list, names: ["all"], tree: [], pruned: 0, truncatedDepth: false,
            why: type ? null : "The open files have no samples of either side." };
        if (!type) return out;
        const own = sides.map((samples) => samples.filter((sample) => sample.type === type.type));
        if (query.get("view") === "top") {
            const tops = own.map((samples) => this.top(samples));
            const rows = new Map();
            tops.forEach(({ names, top }, side) => {
                for (const [name, total, self] of top) {
                    const row = rows.get(names[name]) ?? [0, 0, 0, 0];
                    row[side] = total;
                    row[side + 2] = self;
                    rows.set(names[name], row);
                }
            });
            const names = [...rows.keys()];
            return { ...out, names, top: names.map((name, i) => [i, ...rows.get(name)]).sort((x, y) => y[3] + y[4] - x[3] - x[4]) };
        }
        const width = Number(query.get("width")) || 1600;
        const wanted = query.get("view") === "sandwich" ? query.get("function") ?? "" : null;
        const tree = new Tree();
        const callers = new Tree();
        if (wanted !== null) {
            callers.names = tree.names;
            callers.index = tree.index;
            callers.root.name = tree.root.name = tree.name(wanted);
        }
        own.forEach((samples, side) => {
            for (const sample of samples) {
                const first = wanted === null ? -1 : sample.stack.indexOf(wanted);
                if (wanted !== null && first < 0) continue;
                tree.add(wanted === null ? sample.stack : sample.stack.slice(sample.stack.lastIndexOf(wanted) + 1), sample.value, side);
                if (wanted !== null) callers.add(sample.stack.slice(0, first).reverse(), sample.value, side);
            }
        });
        const { rows, pruned } = tree.rows(true, width);
        if (wanted !== null) return { ...out, names: tree.names, callers: callers.rows(true, width).rows, callees: rows };
        return { ...out, names: tree.names, tree: rows, pruned };
    }

    async flame(query) {
        const samples = this.samplesOf(query);
        const types = new Map();
        for (const sample of samples) {
            const of = types.get(sample.type) ?? { type: sample.type, unit: sample.unit, samples: 0, total: 0 };
            of.samples += sample.count;
            of.total += sample.value;
            types.set(sample.type, of);
        }
        const list = [...types.values()].sort((a, b) => b.samples - a.samples);
        const type = types.get(query.get("type")) ?? types.get("cpu") ?? types.get("wall") ?? list[0];
        const out = { type: type?.type ?? "", unit: type?.unit ?? "", total: type?.total ?? 0, samples: type?.samples ?? 0, types: list, names: ["all"], tree: [], pruned: 0, truncatedDepth: false,
            why: list.length ? null : this.why(this.byTrace.get(query.get("trace") ?? "")) ?? "No sample was taken in the selected spans." };
        out.confidence = { samples: out.samples, percent: format.margin(out.samples) };
        if (!type) return out;
        const own = samples.filter((sample) => sample.type === type.type);
        if (query.get("view") === "top") return { ...out, ...this.top(own) };
        const width = Number(query.get("width")) || 1600;
        if (query.get("view") === "sandwich") {
            const wanted = query.get("function");
            const tree = new Tree();
            const callers = new Tree();
            callers.names = tree.names;
            callers.index = tree.index;
            callers.root.name = tree.root.name = tree.name(wanted ?? "");
            for (const sample of own) {
                const first = sample.stack.indexOf(wanted);
                if (first < 0) continue;
                tree.add(sample.stack.slice(sample.stack.lastIndexOf(wanted) + 1), sample.value, 0);
                callers.add(sample.stack.slice(0, first).reverse(), sample.value, 0);
            }
            return { ...out, names: tree.names, callers: callers.rows(false, width).rows, callees: tree.rows(false, width).rows };
        }
        const tree = new Tree();
        for (const sample of own) tree.add(sample.stack, sample.value, 0);
        const { rows, pruned } = tree.rows(false, width);
        return { ...out, names: tree.names, tree: rows, pruned };
    }

    top(samples) {
        const found = new Map();
        for (const sample of samples) {
            const seen = new Set();
            for (const name of sample.stack) {
                const row = found.get(name) ?? [0, 0, 0];
                if (!seen.has(name)) row[0] += sample.value;
                seen.add(name);
                found.set(name, row);
            }
            const leaf = found.get(sample.stack.at(-1));
            if (leaf) {
                leaf[1] += sample.value;
                leaf[2] += sample.count;
            }
        }
        const names = [...found.keys()];
        return { names, top: names.map((name, i) => [i, ...found.get(name)]).sort((a, b) => b[2] - a[2]).slice(0, 1000) };
    }

    saveFolded(query) {
        const sums = new Map();
        const samples = this.samplesOf(new URLSearchParams(query));
        const type = (samples.find((sample) => sample.type === "cpu") ?? samples[0])?.type;
        for (const sample of samples) {
            if (sample.type !== type) continue;
            const line = sample.stack.map((name) => name.replace(/[;\n\r]/g, ":")).join(";");
            sums.set(line, (sums.get(line) ?? 0) + sample.value);
        }
        save("stacks.folded", "text/plain", [...sums].map(([line, value]) => `${line} ${value}\n`).join(""));
    }

    async savePprof(query, fileName) {
        save(`${fileName}.pb.gz`, "application/octet-stream", await pprofOf(this.samplesOf(new URLSearchParams(query))));
    }

    async spans(query) {
        const groups = new Map();
        for (const trace of this.sorted)
            for (const span of trace.order) {
                if (query.get("service") !== null && span.service !== query.get("service")) continue;
                const key = JSON.stringify([span.service, span.name]);
                if (!groups.has(key)) groups.set(key, []);
                groups.get(key).push(span);
            }
        const newest = this.sorted[0]?.start ?? 0n;
        const seconds = Math.max(1, Number(newest - (this.sorted.at(-1)?.start ?? 0n)) / 1e9);
        return { names: [...groups.values()].map((spans) => {
            const lengths = spans.map((span) => span.length).sort((a, b) => a - b);
            const at = (share) => lengths[Math.min(lengths.length - 1, Math.floor(lengths.length * share))];
            return { service: spans[0].service, name: spans[0].name, count: spans.length, rate: spans.length / seconds, errors: spans.filter((span) => span.status === 2).length, p50: at(0.5), p95: at(0.95), p99: at(0.99),
                cpuPerCall: spans.reduce((all, span) => all + span.cpu, 0) / spans.length, samples: spans.reduce((all, span) => all + span.samples, 0) };
        }) };
    }
}

/** Reads files of traces and profiles together, so that samples find their spans. */
export async function readFiles(files) {
    const out = { spans: [], samples: [] };
    for (const file of files) {
        try {
            if (file.size > FILE_BYTES_MAX) throw new Error("it is larger than 256 MiB");
            const first = out.samples.length;
            await decode(file, out);
            for (let i = first; i < out.samples.length; i++) out.samples[i].file = file.name;
        } catch (error) {
            throw new Error(`${tame(file.name, 80)} cannot be read: ${error.message}.`);
        }
    }
    if (!out.spans.length && !out.samples.length) throw new Error("These files have no spans and no samples.");
    return new Files(out, files.map((file) => file.name));
}
