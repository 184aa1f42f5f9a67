// SPDX-License-Identifier: Apache-2.0
// The list of traces: filters, a scatter of durations over time, rows. What is on the screen never moves by itself:
// newer traces are announced ("12 new") and come when asked for.

import { h, fill, empty, copyable, debounce, onFrame, tame } from "./dom.js";
import * as format from "./format.js";
import { prepare, colour, onTheme, serviceColour, serviceHue } from "./paint.js";

const FILTERS = ["service", "name", "min", "max", "error", "profile", "attr", "start", "end", "last"];
const PAGE = 50;
const ROWS_MAX = 1000;
const LAST = [["", "any time"], ["5m", "last 5 minutes"], ["15m", "last 15 minutes"], ["1h", "last hour"], ["6h", "last 6 hours"]];

export function openList(container, to, app) {
    const abort = new AbortController();
    const source = app.source;
    let filters = to.query;
    let loading = null; // AbortController of the list that is asked for
    let oldest = null; // cursor
    let newest = null;
    let fresh = 0;
    let live = null;
    let shown = 0;
    let longest = 1;

    const field = (label, name, attributes) => {
        const input = h("input", { name, "aria-label": label, placeholder: label, spellcheck: "false", autocomplete: "off", ...attributes });
        return input;
    };
    const names = h("datalist", { id: "service-names" });
    const inputs = {
        service: field("Service", "service", { list: "service-names", size: 14 }),
        name: field("Span name", "name", { "data-search": true, size: 18 }),
        min: field("Min. duration", "min", { size: 9, title: "250ms, 1.5s, 2m" }),
        max: field("Max. duration", "max", { size: 9, title: "250ms, 1.5s, 2m" }),
        attr: field("key=value", "attr", { size: 18, "aria-label": "Attribute key=value", title: "Enter adds it: http.request.method=GET" }),
        last: h("select", { name: "last", "aria-label": "Time" }, LAST.map(([value, words]) => h("option", { value }, words))),
        error: h("input", { type: "checkbox", name: "error" }),
        profile: h("input", { type: "checkbox", name: "profile" }),
    };
    const chips = h("span", { class: "chips" });
    const form = h("form", { class: "filters", role: "search", "aria-label": "Filter traces", onsubmit: (event) => { event.preventDefault(); addAttribute(); apply(); } },
        inputs.service, names, inputs.name, inputs.min, inputs.max, inputs.attr, inputs.last,
        h("label", {}, inputs.error, "Errors"), h("label", {}, inputs.profile, "Has profile"), chips,
        h("button", { type: "button", class: "quiet", onclick: clear }, "Clear"));
    const plot = h("canvas", { class: "scatter", role: "img", "aria-label": "Durations of traces over time" });
    const HINT = "Drag to select a time and a range of durations. Click a point to open its trace.";
    const hint = h("p", { class: "hint" }, HINT);
    const plotBox = h("div", { class: "scatter-box" }, plot, hint);
    const pill = h("button", { type: "button", class: "pill", hidden: true, onclick: () => { main().scrollTop = 0; load(); } });
    const note = h("p", { class: "note", role: "status" });
    const body = h("tbody");
    const table = h("table", { class: "traces" },
        h("caption", { class: "visually-hidden" }, "Traces, newest first"),
        h("thead", {}, h("tr", {}, h("th", { scope: "col", class: "c-time" }, "Start"), h("th", { scope: "col" }, "Trace"),
            h("th", { scope: "col", class: "num" }, "Duration"), h("th", { scope: "col", class: "c-bar" }, h("span", { class: "visually-hidden" }, "Relative duration")),
            h("th", { scope: "col", class: "num" }, "Spans"), h("th", { scope: "col", class: "num" }, "Errors"),
            h("th", { scope: "col", class: "c-services" }, "Services"), h("th", { scope: "col", class: "num" }, "Samples"))), body);
    const more = h("button", { type: "button", class: "more", hidden: true, onclick: () => load(true) }, "Older traces");
    const place = h("div", { class: "list-place" });
    fill(container, h("h1", { class: "visually-hidden" }, "Traces"), form, plotBox, pill, note, h("div", { class: "table-box" }, table), more, place);
    const main = () => container;

    function query() {
        const out = new URLSearchParams();
        for (const key of FILTERS)
            for (const value of filters.getAll(key)) if (value && key !== "last") out.append(key, value);
        const last = format.parseDuration(filters.get("last") ?? "");
        if (last && !out.has("start")) out.set("start", format.nanoseconds(Date.now() - last / 1e6));
        return out;
    }

    function showFilters() {
        for (const key of ["service", "name", "min", "max", "last"]) inputs[key].value = filters.get(key) ?? "";
        inputs.error.checked = filters.get("error") === "1";
        inputs.profile.checked = filters.get("profile") === "1";
        const chip = (text, remove) => h("span", { class: "chip" }, tame(text, 60),
            h("button", { type: "button", class: "quiet", "aria-label": `Remove ${tame(text, 60)}`, onclick: remove }, "×"));
        const set = filters.getAll("attr").map((one) => chip(one, () => change({ attr: filters.getAll("attr").filter((other) => other !== one) })));
        if (filters.has("start") || filters.has("end")) {
            const text = (key) => (filters.has(key) && /^\d+$/.test(filters.get(key)) ? format.time(filters.get(key), false) : "…");
            set.push(chip(`${text("start")} – ${text("end")}`, () => change({ start: null, end: null })));
        }
        fill(chips, set);
    }

    function addAttribute() {
        const text = inputs.attr.value.trim();
        if (!text) return;
        if (!text.includes("=")) {
            app.toast("An attribute is asked for as key=value.");
            return;
        }
        inputs.attr.value = "";
        change({ attr: [...new Set([...filters.getAll("attr"), text])] });
    }

    function apply() {
        const next = {};
        for (const key of ["service", "name", "min", "max", "last"]) next[key] = inputs[key].value.trim();
        for (const key of ["min", "max"])
            if (next[key] && Number.isNaN(format.parseDuration(next[key]))) {
                app.toast(`"${tame(next[key], 20)}" is no duration; write 250ms or 1.5s.`);
                return;
            }
        for (const key of ["min", "max"]) next[key] = next[key].replace(/\s/g, "");
        next.error = inputs.error.checked ? "1" : null;
        next.profile = inputs.profile.checked ? "1" : null;
        if (Object.keys(next).every((key) => (next[key] || "") === (filters.get(key) ?? ""))) return;
        change(next);
    }

    function change(changes) {
        app.replace(changes);
        filters = new URLSearchParams(location.hash.split("?")[1] ?? "");
        reload();
    }

    function clear() {
        inputs.attr.value = "";
        change(Object.fromEntries(FILTERS.map((key) => [key, null])));
    }

    const typed = debounce(apply, 350);
    form.addEventListener("input", (event) => { if (event.target.name !== "attr") typed(); });

    // Rows ------------------------------------------------------------------------------------------------------

    const href = (trace) => `#/trace/${encodeURIComponent(trace.id)}${source.isLocal ? "?from=file" : ""}`;

    function row(trace) {
        const root = trace.root;
        const bar = h("i", { class: trace.errors ? "bad" : null });
        bar.style.width = `${Math.max(1, 100 * Math.sqrt(trace.duration / longest))}%`;
        const line = h("tr", { "data-id": trace.id },
            h("td", { class: "c-time mono", title: format.iso(trace.start) }, format.time(trace.start)),
            h("td", { class: "c-name" }, h("a", { href: href(trace), title: root ? tame(`${root.service} ${root.name}`) : null },
                root ? [h("b", {}, tame(root.service, 80)), " ", tame(root.name, 200), root.missingParent && h("span", { class: "muted" }, " (its parent has not come)")] : h("span", { class: "muted" }, "root span has not come"))),
            h("td", { class: "num" }, format.duration(trace.duration)),
            h("td", { class: "c-bar" }, h("div", { class: "length" }, bar)),
            h("td", { class: "num" }, format.count(trace.spans)),
            h("td", { class: "num" }, trace.errors ? h("span", { class: "bad" }, format.count(trace.errors)) : h("span", { class: "muted" }, "–")),
            h("td", { class: "c-services" }, trace.services.slice(0, 8).map((service) => {
                const dot = h("span", { class: "dot", role: "img", "aria-label": tame(service.name, 60), title: tame(service.name) });
                dot.style.backgroundColor = serviceColour(serviceHue(service.name));
                return dot;
            }), trace.services.length > 8 && h("span", { class: "muted" }, ` +${trace.services.length - 8}`)),
            h("td", { class: "num" }, trace.samples ? h("span", { class: "cpu" }, format.short(trace.samples)) : h("span", { class: "muted" }, "–")));
        return line;
    }

    async function load(older = false) {
        loading?.abort();
        const mine = loading = new AbortController();
        const asked = query();
        asked.set("limit", PAGE);
        if (older && oldest !== null) asked.set("before", oldest);
        try {
            const answer = await source.traces(asked, mine.signal);
            if (mine !== loading) return;
            if (!older) {
                shown = 0;
                longest = 1;
                fresh = 0;
                pill.hidden = true;
                newest = answer.newest;
                fill(body);
                body.parentElement.parentElement.parentElement.classList.remove("is-loading");
            }
            if (!older) for (const trace of answer.traces) longest = Math.max(longest, trace.duration);
            body.append(...answer.traces.map(row));
            shown += answer.traces.length;
            if (answer.traces.length) oldest = answer.traces.at(-1).cursor;
            more.hidden = !answer.more || shown >= ROWS_MAX;
            note.textContent = shown ? `${format.count(shown)} of ${answer.partial ? "at least " : ""}${format.plural(answer.total, "trace")}` : "";
            if (answer.more && shown >= ROWS_MAX) note.textContent += "; older ones: narrow the filter or the time";
            table.hidden = shown === 0;
            plotBox.hidden = shown === 0 && !filters.has("start");
            fill(place, shown === 0 ? nothing() : null);
            if (!older) listen();
        } catch (error) {
            if (mine !== loading) return;
            table.hidden = true;
            more.hidden = true;
            app.failed(place, error, () => load());
        }
    }

    function nothing() {
        const hasFilters = [...query().keys()].length > 0;
        if (hasFilters)
            return empty("No trace passes this filter", "Service and span name match a whole name; an attribute is key=value, as the span or its resource has it.",
                h("button", { type: "button", onclick: clear }, "Clear the filter"));
        if (source.isLocal) return empty("This file has no spans", "It may have profiles: see Services.");
        return empty("No traces yet", "Send OTLP to localhost:4317 (gRPC) or localhost:4318 (HTTP). They appear here by themselves. For a program with an OpenTelemetry SDK:",
            copyable("export OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318"),
            "Or send one span by hand:", copyable(example()),
            "For flame graphs beside the spans, send profiles too: OTLP to the same address, or a Pyroscope SDK to localhost:4040. Or drop a file of traces or profiles on this page.");
    }

    function example() {
        const hex = (size) => Array.from(crypto.getRandomValues(new Uint8Array(size)), (byte) => byte.toString(16).padStart(2, "0")).join("");
        const end = Date.now();
        return `curl http://localhost:4318/v1/traces -H 'Content-Type: application/json' -d '{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}}]},"scopeSpans":[{"spans":[{"traceId":"${hex(16)}","spanId":"${hex(8)}","name":"checkout","kind":2,"startTimeUnixNano":"${end - 250}000000","endTimeUnixNano":"${end}000000"}]}]}]}'`;
    }

    function listen() {
        if (source.isLocal || live) return;
        live = source.live(query());
        live.addEventListener("new", (event) => {
            const said = JSON.parse(event.data);
            if (shown === 0) {
                load();
                plan();
                return;
            }
            fresh += said.count;
            if (said.newest === newest) return;
            pill.textContent = `${format.count(fresh)} new`;
            pill.hidden = false;
        });
        live.addEventListener("status", (event) => app.setStatus(JSON.parse(event.data)));
    }

    // Scatter ---------------------------------------------------------------------------------------------------

    let scatter = null;
    let brush = null; // [x0, y0, x1, y1]
    const EDGE = { left: 54, right: 66, top: 8, bottom: 46 };
    const BARS = 26; // of EDGE.bottom

    async function plan() {
        try {
            scatter = await source.scatter(query(), abort.signal);
            hint.textContent = (scatter.partial ? "Older traces have not been searched: there may be more. " : "") + HINT;
            paint();
        } catch { /* the list says what is wrong */ }
    }

    function frame() {
        const points = scatter.points;
        let low = Infinity;
        let high = 0;
        for (const point of points) {
            const value = Math.max(1000, point[1]);
            low = Math.min(low, value);
            high = Math.max(high, value);
        }
        if (!points.length) { low = 1e6; high = 1e9; }
        const bottom = Math.log10(low) - 0.15;
        const top = Math.max(Math.log10(high) + 0.15, bottom + 0.6);
        const start = format.milliseconds(scatter.start);
        const span = Math.max(1, format.milliseconds(scatter.end) - start);
        const width = plot.clientWidth - EDGE.left - EDGE.right;
        const height = plot.clientHeight - EDGE.top - EDGE.bottom;
        return {
            start, span, width, height,
            x: (ms) => EDGE.left + (ms / span) * width,
            y: (ns) => EDGE.top + height - ((Math.log10(Math.max(1000, ns)) - bottom) / (top - bottom)) * height,
            ms: (x) => start + ((x - EDGE.left) / width) * span,
            ns: (y) => 10 ** (bottom + ((EDGE.top + height - y) / height) * (top - bottom)),
            bottom, top,
        };
    }

    const paint = onFrame(() => {
        if (!scatter || !plot.isConnected || plotBox.hidden) return;
        const { context, width, height } = prepare(plot);
        const at = frame();
        context.font = "11px system-ui, sans-serif";
        context.textBaseline = "middle";
        for (let power = Math.ceil(at.bottom); power <= at.top; power++) {
            const y = at.y(10 ** power);
            context.fillStyle = colour("line");
            context.fillRect(EDGE.left, Math.round(y), at.width, 1);
            context.fillStyle = colour("muted");
            context.textAlign = "right";
            context.fillText(format.duration(10 ** power), EDGE.left - 6, y);
        }
        context.textAlign = "center";
        for (const tick of format.ticks(0, at.span, Math.max(2, at.width / 110))) {
            const x = at.x(tick);
            context.fillStyle = colour("line");
            context.fillRect(Math.round(x), EDGE.top, 1, at.height);
            context.fillStyle = colour("muted");
            context.fillText(format.clock(at.start + tick, at.span < 5000), x, height - 8);
        }
        const normal = colour("point");
        const bad = colour("error");
        for (const pass of [0, 1]) {
            context.fillStyle = pass ? bad : normal;
            context.globalAlpha = pass ? 0.9 : 0.6;
            for (const point of scatter.points) {
                if (Number(Boolean(point[2])) !== pass) continue;
                context.beginPath();
                context.arc(at.x(point[0]), at.y(point[1]), 2.6, 0, 7);
                context.fill();
            }
        }
        context.globalAlpha = 1;
        // How many there are over time, below the points, and by duration, right of them.
        const buckets = Math.max(1, Math.min(120, Math.floor(at.width / 12)));
        const all = new Array(buckets).fill(0);
        const failed = new Array(buckets).fill(0);
        for (const point of scatter.points) {
            const bucket = Math.max(0, Math.min(buckets - 1, Math.floor((point[0] / at.span) * buckets)));
            all[bucket]++;
            if (point[2]) failed[bucket]++;
        }
        const bars = (counts, errors, draw) => {
            const most = Math.max(1, ...counts);
            counts.forEach((number, i) => {
                if (!number) return;
                context.globalAlpha = 0.55;
                context.fillStyle = normal;
                draw(i, number / most);
                context.globalAlpha = 1;
                context.fillStyle = bad;
                if (errors?.[i]) draw(i, errors[i] / most);
            });
        };
        const base = EDGE.top + at.height + BARS;
        bars(all, failed, (i, share) => context.fillRect(EDGE.left + (i / buckets) * at.width, base - share * (BARS - 3), at.width / buckets - 1, share * (BARS - 3)));
        const { edges, counts, errors } = scatter.histogram;
        bars(counts, errors, (i, share) => {
            const [y0, y1] = [Math.max(EDGE.top, at.y(edges[i + 1])), Math.min(EDGE.top + at.height, at.y(edges[i]))];
            if (y1 > y0) context.fillRect(width - EDGE.right + 8, y0 + 0.5, share * (EDGE.right - 12), Math.max(1, y1 - y0 - 1));
        });
        if (brush) {
            context.fillStyle = colour("accent");
            context.globalAlpha = 0.18;
            const box = [Math.min(brush[0], brush[2]), Math.min(brush[1], brush[3]), Math.abs(brush[2] - brush[0]), Math.abs(brush[3] - brush[1])];
            context.fillRect(...box);
            context.globalAlpha = 1;
            context.strokeStyle = colour("accent");
            context.strokeRect(...box);
        }
        plot.setAttribute("aria-label", `Durations of ${format.plural(scatter.points.length, "trace")} over time${scatter.sampled ? ", a sample" : ""}; the table below has them`);
    });

    function nearest(x, y) {
        if (!scatter) return null;
        const at = frame();
        let best = null;
        let distance = 64;
        for (const point of scatter.points) {
            const dx = at.x(point[0]) - x;
            const dy = at.y(point[1]) - y;
            if (dx * dx + dy * dy < distance) {
                distance = dx * dx + dy * dy;
                best = point;
            }
        }
        return best;
    }

    plot.addEventListener("pointerdown", (event) => {
        if (!scatter || event.button !== 0) return;
        plot.setPointerCapture(event.pointerId);
        brush = [event.offsetX, event.offsetY, event.offsetX, event.offsetY];
    });
    plot.addEventListener("pointermove", (event) => {
        if (brush) {
            brush[2] = event.offsetX;
            brush[3] = event.offsetY;
            paint();
        } else {
            const point = nearest(event.offsetX, event.offsetY);
            plot.style.cursor = point ? "pointer" : "crosshair";
            plot.title = point ? `${format.duration(point[1])}${point[2] ? ", error" : ""}` : "";
        }
    });
    plot.addEventListener("pointerup", () => {
        if (!brush) return;
        const [x0, y0, x1, y1] = brush;
        const at = frame();
        brush = null;
        if (Math.abs(x1 - x0) < 4 && Math.abs(y1 - y0) < 4) {
            const point = nearest(x1, y1);
            if (point) app.go(`trace/${point[3]}`, source.isLocal ? "from=file" : "");
            paint();
            return;
        }
        const changes = { last: null };
        if (Math.abs(x1 - x0) >= 4) {
            changes.start = format.nanoseconds(at.ms(Math.min(x0, x1)));
            changes.end = format.nanoseconds(at.ms(Math.max(x0, x1)));
        }
        if (Math.abs(y1 - y0) >= 12) {
            changes.max = `${Number((at.ns(Math.min(y0, y1)) / 1e6).toPrecision(3))}ms`;
            changes.min = `${Number((at.ns(Math.max(y0, y1)) / 1e6).toPrecision(3))}ms`;
        }
        change(changes);
    });
    plot.addEventListener("pointercancel", () => { brush = null; paint(); });

    // Life ------------------------------------------------------------------------------------------------------

    function reload() {
        live?.close();
        live = null;
        oldest = null;
        showFilters();
        load();
        plan();
    }

    const sized = new ResizeObserver(paint);
    sized.observe(plot);
    const forget = onTheme(() => { paint(); });
    showFilters();
    load();
    plan();
    source.services(abort.signal).then((answer) => {
        fill(names, answer.services.slice(0, 500).map((service) => h("option", { value: service.name })));
    }, () => {});

    function step(by) {
        const links = [...body.querySelectorAll("a")];
        if (!links.length) return;
        const at = links.indexOf(document.activeElement);
        const next = links[Math.max(0, Math.min(links.length - 1, at < 0 ? 0 : at + by))];
        next.focus();
        next.closest("tr").scrollIntoView({ block: "nearest" });
    }

    return {
        update(next) {
            filters = next.query;
            reload();
        },
        close() {
            abort.abort();
            loading?.abort();
            live?.close();
            sized.disconnect();
            forget();
        },
        onKey(event) {
            if (event.key === "j" || event.key === "ArrowDown") step(1);
            else if (event.key === "k" || event.key === "ArrowUp") step(-1);
            else if (event.key === "n" && !pill.hidden) pill.click();
            else return false;
            return true;
        },
        keyHelp: [["Traces", [["j · k", "next and previous trace"], ["Enter", "open the trace"], ["n", "show the new ones"]]]],
    };
}
