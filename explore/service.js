// SPDX-License-Identifier: Apache-2.0
// Services: the list, one service with its flame graph and its spans by name, and comparisons of two flame graphs.

import { h, fill, empty, tame } from "./dom.js";
import * as format from "./format.js";
import { FlamePanel, flameKeys } from "./panel.js";
import { serviceColour, serviceHue } from "./paint.js";

const RANGES = [["", "all that is kept", 0], ["5m", "last 5 minutes", 5], ["15m", "last 15 minutes", 15], ["1h", "last hour", 60], ["6h", "last 6 hours", 360]];

/** Writes changes into the view's state and the address. */
function putter(state, app) {
    return (changes) => {
        for (const [key, value] of Object.entries(changes)) {
            if (value === null || value === "") state.delete(key);
            else state.set(key, value);
        }
        app.replace(changes);
    };
}

function replaceState(state, next) {
    for (const key of [...state.keys()]) state.delete(key);
    for (const [key, value] of next) state.append(key, value);
}

/** A time range of the state, as start and end in unix nanoseconds. */
function range(state, now = Date.now()) {
    const found = RANGES.find(([key]) => key === state.get("last"));
    if (found?.[2]) return { start: format.nanoseconds(now - found[2] * 60000), end: format.nanoseconds(now) };
    const out = {};
    for (const key of ["start", "end"]) if (/^\d+$/.test(state.get(key) ?? "")) out[key] = state.get(key);
    return out;
}

const local = (ns) => {
    const date = new Date(format.milliseconds(ns));
    return new Date(date.getTime() - date.getTimezoneOffset() * 60000).toISOString().slice(0, 19);
};

/** Inputs for a range: one of the usual, or from and to. */
function rangePicker(state, onChange, words = "Time") {
    const select = h("select", { "aria-label": words, onchange: () => (select.value === "own" ? choose() : onChange({ last: select.value || null, start: null, end: null })) },
        RANGES.map(([value, text]) => h("option", { value }, text)), h("option", { value: "own" }, "from … to …"));
    const input = (key) => h("input", { type: "datetime-local", step: 1, "aria-label": `${words} ${key === "start" ? "from" : "to"}`,
        value: /^\d+$/.test(state.get(key) ?? "") ? local(state.get(key)) : "", onchange: (event) => onChange({ last: null, [key]: event.target.value ? format.nanoseconds(new Date(event.target.value).getTime()) : null }) });
    const box = h("span", { class: "range" }, select);
    const choose = () => { if (box.childElementCount === 1) box.append(input("start"), "–", input("end")); };
    if (state.has("start") || state.has("end")) {
        select.value = "own";
        choose();
    } else select.value = state.get("last") ?? "";
    return box;
}

export function openServices(container, to, app) {
    const abort = new AbortController();
    const place = h("div", {});
    fill(container, h("div", { class: "page-head" }, h("h1", {}, "Services")), place);
    const suffix = app.source.isLocal ? "?from=file" : "";
    app.title("Services");
    app.source.services(abort.signal).then(({ services }) => {
        if (!services.length) {
            fill(place, empty("No services yet", "Each trace or profile that comes names its service (service.name of its resource). Send OTLP to localhost:4317 or localhost:4318."));
            return;
        }
        fill(place, h("div", { class: "table-box" }, h("table", { class: "names" },
            h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Service"), ["Traces", "Spans", "Errors", "Error share"].map((words) => h("th", { scope: "col", class: "num" }, words)), h("th", { scope: "col" }, "Profiles"))),
            h("tbody", {}, services.slice(0, 1000).map((service) => {
                const dot = h("span", { class: "dot" });
                dot.style.backgroundColor = serviceColour(serviceHue(service.name));
                return h("tr", {}, h("td", { class: "clip" }, dot, h("a", { href: `#/service/${encodeURIComponent(service.name)}${suffix}` }, tame(service.name, 200) || "(no name)")),
                    h("td", { class: "num" }, format.count(service.traces)), h("td", { class: "num" }, format.count(service.spans)),
                    h("td", { class: `num ${service.errors ? "bad" : "muted"}` }, service.errors ? format.count(service.errors) : "–"),
                    h("td", { class: "num muted" }, service.spans ? format.percent(service.errors / service.spans) : "–"),
                    h("td", {}, service.hasProfile ? "yes" : h("span", { class: "muted" }, "none came")));
            })))));
    }, (error) => app.failed(place, error, () => openServices(container, to, app)));
    return { close: () => abort.abort(), keyHelp: [] };
}

export function openService(container, to, app) {
    const name = to.path[1] ?? "";
    const abort = new AbortController();
    const source = app.source;
    const state = to.query;
    const put = putter(state, app);
    const picker = h("span", {});
    const spans = h("div", { class: "table-box" });
    app.title(name);
    const panel = new FlamePanel({
        label: `Flame graph of ${tame(name, 60)}`, load: (query, signal) => source.flame(query, signal), state, onState: put, fileName: tame(name, 40),
        download: (kind, base, type) => {
            if (kind === "otlp-json") return null;
            if (source.isLocal) return { folded: () => source.saveFolded(base), pprof: () => source.savePprof(base, "profile") }[kind];
            const query = new URLSearchParams(base);
            if (type) query.set("type", type);
            query.set("format", kind);
            return source.download(query);
        },
    });
    const compare = h("details", { class: "menu" }, h("summary", {}, "Compare"), h("div", { class: "menu-items" }));
    const dot = h("span", { class: "dot" });
    dot.style.backgroundColor = serviceColour(serviceHue(name));
    fill(container, h("div", { class: "page-head" }, h("h1", {}, dot, tame(name, 120)), source.isLocal ? null : picker, !source.isLocal || source.filesOf(name).length > 1 ? compare : null,
        h("a", { href: source.isLocal ? "#/file" : `#/traces?${new URLSearchParams({ service: name })}` }, "Its traces")),
    h("div", { class: "service-work" }, panel.element, h("section", { "aria-label": "Spans by name" }, h("h2", {}, "Spans by name"), spans)));

    function load() {
        fill(picker, rangePicker(state, (changes) => { put({ ...changes, zoom: null }); load(); }));
        const when = range(state);
        panel.show(new URLSearchParams({ service: name, ...when }));
        if (source.isLocal) {
            const [first, ...others] = source.filesOf(name);
            const side = (file) => String(new URLSearchParams({ service: name, file }));
            fill(compare.lastChild, others.slice(0, 20).map((other) => h("a", { href: `#/diff?${new URLSearchParams({ from: "file", a: side(first), b: side(other) })}` }, `${tame(other, 40)} against ${tame(first, 40)}`)));
        } else fill(compare.lastChild, [5, 15, 60].map((minutes) => h("button", { type: "button", class: "quiet", onclick: () => {
            const now = Date.now();
            const side = (from, end) => String(new URLSearchParams({ service: name, start: format.nanoseconds(now - from * 60000), end: format.nanoseconds(now - end * 60000) }));
            app.go("diff", new URLSearchParams({ a: side(2 * minutes, minutes), b: side(minutes, 0) }));
        } }, `last ${minutes} min against the ${minutes} min before`)));
        source.spans(new URLSearchParams({ service: name, ...when }), abort.signal).then(({ names }) => table(names), (error) => app.failed(spans, error, load));
    }

    function table(names) {
        if (!names.length) {
            fill(spans, empty("No spans of this service in this time"));
            return;
        }
        const key = state.get("sort") ?? "count";
        const columns = [["count", "Count"], ["rate", "Rate"], ["errors", "Errors"], ["p50", "p50"], ["p95", "p95"], ["p99", "p99"], ["cpuPerCall", "CPU per call"]];
        names.sort((a, b) => (key === "name" ? a.name.localeCompare(b.name) : b[key] - a[key]));
        const head = (id, words, type) => h("th", { scope: "col", class: type, "aria-sort": id === key ? (id === "name" ? "ascending" : "descending") : null },
            h("button", { type: "button", class: "link", onclick: () => { put({ sort: id }); table(names); } }, words, id === key ? " ↓" : ""));
        fill(spans, h("table", { class: "names" },
            h("thead", {}, h("tr", {}, head("name", "Span"), columns.map(([id, words]) => head(id, words, "num")), h("th", { scope: "col" }, h("span", { class: "visually-hidden" }, "Compare")))),
            h("tbody", {}, names.slice(0, 500).map((row) => {
                const both = (slow) => String(new URLSearchParams({ service: row.service, name: row.name, slow }));
                return h("tr", {}, h("td", { class: "clip" }, h("a", { title: tame(row.name), href: `#/traces?${new URLSearchParams({ service: row.service, name: row.name })}` }, tame(row.name, 160))),
                    h("td", { class: "num" }, format.count(row.count)), h("td", { class: "num" }, format.rate(row.rate)),
                    h("td", { class: `num ${row.errors ? "bad" : "muted"}` }, row.errors ? `${format.count(row.errors)} · ${format.percent(row.errors / row.count)}` : "–"),
                    ["p50", "p95", "p99"].map((one) => h("td", { class: "num" }, format.duration(row[one]))),
                    h("td", { class: "num" }, row.samples ? h("span", { class: "cpu", title: format.confidence(row.samples) }, format.duration(row.cpuPerCall)) : h("span", { class: "muted" }, "–")),
                    h("td", {}, source.isLocal ? null : h("a", { title: "The flame graphs of slow and fast spans of this name", href: `#/diff?${new URLSearchParams({ a: both("0"), b: both("1") })}` }, "slow against fast")));
            }))));
    }

    load();
    return {
        update(next) { replaceState(state, next.query); load(); },
        close() { abort.abort(); panel.close(); },
        keyHelp: [flameKeys],
    };
}

/** What a side of a comparison is, in words. */
function words(text) {
    const query = new URLSearchParams(text);
    const when = query.has("start") || query.has("end")
        ? `, ${["start", "end"].map((key) => (/^\d+$/.test(query.get(key) ?? "") ? format.time(query.get(key), false) : "…")).join(" – ")}` : "";
    const name = [query.get("service"), query.get("name")].filter(Boolean).map((one) => tame(one, 80)).join(" ");
    if (query.has("file")) return `${name} in ${tame(query.get("file"), 80)}`;
    if (query.has("not-trace")) return `all other traces of ${name}`;
    if (query.has("trace")) return `${query.has("span") ? "selected spans of trace" : "trace"} ${tame(query.get("trace").slice(0, 8))}${when}`;
    if (query.get("slow") === "1") return `slow ${name}${when}`;
    if (query.get("slow") === "0") return `fast ${name}${when}`;
    return `${name || "everything"}${when}`;
}

export function openDiff(container, to, app) {
    const state = to.query;
    const put = putter(state, app);
    const sides = h("div", { class: "sides" });
    app.title("Comparison");
    const panel = new FlamePanel({ label: "Comparison of two flame graphs", isDiff: true, state, onState: put, load: (query, signal) => app.source.diff(query, signal), fileName: "comparison" });
    const swap = h("button", { type: "button", title: "Swap A and B", onclick: () => { put({ a: state.get("b"), b: state.get("a"), zoom: null }); load(); } }, "Swap");
    fill(container, h("div", { class: "page-head" }, h("h1", {}, "Comparison"), sides, swap), h("div", { class: "service-work diff" }, panel.element));

    function side(key) {
        const query = new URLSearchParams(state.get(key) ?? "");
        const isRange = !app.source.isLocal && query.has("service") && !query.has("trace") && !query.has("not-trace");
        return h("div", { class: "side-of" }, h("b", {}, key.toUpperCase()), " ", words(state.get(key) ?? ""),
            isRange && rangePicker(query, (changes) => {
                for (const [name, value] of Object.entries(changes)) {
                    if (value === null) query.delete(name);
                    else query.set(name, value);
                }
                const when = range(query);
                query.delete("last");
                for (const [name, value] of Object.entries(when)) query.set(name, value);
                put({ [key]: String(query), zoom: null });
                load();
            }, `Time of ${key.toUpperCase()}`));
    }

    function load() {
        if (!state.get("a") || !state.get("b")) {
            fill(sides);
            fill(container, empty("Two sides are needed", "Start a comparison from a trace, a span, or a service."));
            return;
        }
        fill(sides, side("a"), side("b"));
        panel.show(new URLSearchParams({ a: state.get("a"), b: state.get("b") }));
    }

    load();
    return {
        update(next) { replaceState(state, next.query); load(); },
        close() { panel.close(); },
        keyHelp: [flameKeys],
    };
}
