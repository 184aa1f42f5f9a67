// SPDX-License-Identifier: Apache-2.0
// The running configuration as a picture: what is connected to what, with rates and sparklines of the last ten minutes.

import { h, svg, fill, empty, tame } from "./dom.js";
import * as format from "./format.js";

const EVERY_MS = 10000;
const LINES_MOST = 400;
const WIDE = 190;
const HIGH = 102;
const PASS = 14; // of a line that passes a column
const GAP_X = 70;
const GAP_Y = 18;

/** Columns: each node right of all that feed it. */
export function columns(nodes, edges) {
    const depth = new Map(nodes.map((node) => [node.id, 0]));
    for (let round = 0; round < nodes.length; round++) {
        let changed = false;
        for (const { from, to } of edges) {
            if (!depth.has(from) || !depth.has(to)) continue;
            if (depth.get(to) < depth.get(from) + 1 && depth.get(from) < 40) {
                depth.set(to, depth.get(from) + 1);
                changed = true;
            }
        }
        if (!changed) break;
    }
    const fed = new Set(edges.flatMap(({ from, to }) => [from, to]));
    const last = Math.max(0, ...[...depth.values()]);
    const out = Array.from({ length: last + 1 }, () => []);
    const place = new Map();
    for (const node of nodes) {
        if (!fed.has(node.id)) continue;
        place.set(node.id, node.kind === "exporter" ? last : depth.get(node.id));
        out[place.get(node.id)].push(node);
    }
    // A line over several columns gets a place of its own in each, so that it passes beside the boxes.
    const passed = new Set();
    for (const { from, to } of edges)
        for (let at = (place.get(from) ?? last) + 1; at < (place.get(to) ?? 0); at++) {
            const id = `${from}\n${to}\n${at}`;
            if (passed.has(id)) continue;
            passed.add(id);
            out[at].push({ id, isPass: true });
        }
    return out;
}

function sparkline(values, className, label) {
    const most = Math.max(1e-9, ...values);
    const step = 100 / Math.max(1, values.length - 1);
    const points = values.map((value, i) => `${(i * step).toFixed(1)},${(22 - (value / most) * 20).toFixed(1)}`);
    return svg("svg", { viewBox: "0 0 100 24", preserveAspectRatio: "none", class: `spark ${className}`, role: "img", "aria-label": label },
        svg("polygon", { points: `0,24 ${points.join(" ")} 100,24`, class: "area" }), svg("polyline", { points: points.join(" "), class: "line" }));
}

const last = (values) => values?.at(-1) ?? 0;
const sum = (values) => (values ?? []).reduce((all, one) => all + one, 0);

/** A metric in the unit that its name says. */
function metric(key, value) {
    if (typeof value !== "number") return tame(typeof value === "string" ? value : JSON.stringify(value), 200);
    if (/bytes/i.test(key)) return format.bytes(value);
    if (/_ns$|Ns$|nano/.test(key)) return format.duration(value);
    if (/seconds?$/i.test(key)) return format.duration(value * 1e9);
    return format.count(value);
}

const spaced = (key) => tame(key.replace(/([a-z])([A-Z])/g, "$1 $2").replace(/_/g, " ").toLowerCase(), 80);

export function openPipelines(container, to, app) {
    const abort = new AbortController();
    const state = to.query;
    const picture = h("div", { class: "picture", tabindex: 0, role: "region", "aria-label": "Pipelines as a picture" });
    const facts = h("div", { class: "facts-row" });
    const detail = h("aside", { class: "node-detail", hidden: true, "aria-live": "polite" });
    const warnings = h("section", { class: "warnings", "aria-label": "Last warnings" });
    fill(container, h("div", { class: "page-head" }, h("h1", {}, "Pipelines"), h("span", { class: "muted" }, "rates now, lines of the last ten minutes")), facts,
        h("div", { class: "pipelines-work" }, picture, detail), warnings);
    app.title("Pipelines");
    let data = null;
    let chosen = state.get("node");

    async function load() {
        try {
            data = await app.source.pipelines(abort.signal);
            draw();
        } catch (error) {
            if (!data) app.failed(picture, error, load);
        }
    }

    function box(node, x, y) {
        const series = data.series?.nodes?.[node.id] ?? {};
        const interval = data.series?.interval || 10;
        const refused = sum(series.refused);
        const retries = sum(series.retries);
        const items = last(series.items) / interval;
        const button = h("button", { type: "button", class: `node ${node.kind}${refused ? " is-bad" : ""}`, "data-id": node.id, "aria-pressed": String(node.id === chosen), onclick: () => choose(node.id) },
            h("span", { class: "node-kind" }, node.kind, node.line ? ` · line ${node.line}` : ""), h("b", { class: "clip" }, tame(node.name || node.id, 60)),
            series.items ? h("span", { class: "node-rate" }, format.rate(items), series.bytes && h("span", { class: "muted" }, ` · ${format.bytes(last(series.bytes) / interval)}/s`)) : h("span", { class: "node-rate muted" }, "–"),
            series.items && sparkline(series.items, refused ? "bad" : "", `Items of the last ten minutes, now ${format.rate(items)}`),
            h("span", { class: "node-state" }, refused ? h("span", { class: "bad" }, `${format.short(refused)} refused `) : null, retries ? `${format.short(retries)} retries ` : null, last(series.queue) ? `queue ${format.short(last(series.queue))}` : null));
        button.style.left = `${x}px`;
        button.style.top = `${y}px`;
        return button;
    }

    function draw() {
        const scrolled = picture.scrollLeft;
        const list = columns(data.nodes, data.edges);
        const places = new Map();
        const highOf = (node) => (node.isPass ? PASS : HIGH);
        const tall = (nodes) => nodes.reduce((all, node) => all + highOf(node) + GAP_Y, -GAP_Y);
        const high = Math.max(HIGH, ...list.map(tall));
        const boxes = list.flatMap((nodes, column) => {
            let y = (high - tall(nodes)) / 2;
            return nodes.map((node) => {
                const x = column * (WIDE + GAP_X);
                const top = y;
                y += highOf(node) + GAP_Y;
                places.set(node.id, [x, top + highOf(node) / 2, column]);
                return node.isPass ? null : box(node, x, top);
            });
        });
        const wide = list.length * (WIDE + GAP_X) - GAP_X;
        const lines = svg("svg", { width: wide, height: high, class: "edges", "aria-hidden": "true" });
        const seen = new Map();
        for (const edge of data.edges) {
            const [from, to] = [places.get(edge.from), places.get(edge.to)];
            if (!from || !to) continue;
            const nth = seen.get(`${edge.from} ${edge.to}`) ?? 0;
            seen.set(`${edge.from} ${edge.to}`, nth + 1);
            const stops = [from];
            for (let at = from[2] + 1; at < to[2]; at++) stops.push(places.get(`${edge.from}\n${edge.to}\n${at}`) ?? from);
            stops.push(to);
            let d = "";
            for (let i = 1; i < stops.length; i++) {
                const [x0, y0, x1, y1] = [stops[i - 1][0] + WIDE, stops[i - 1][1] + nth * 7, stops[i][0], stops[i][1] + nth * 7];
                const bend = (x1 - x0) / 2;
                d += `${i === 1 ? "M" : "L"}${x0},${y0} C${x0 + bend},${y0} ${x1 - bend},${y1} ${x1},${y1} `;
            }
            lines.append(svg("path", { class: `edge ${["traces", "metrics", "logs", "profiles"].includes(edge.signal) ? edge.signal : ""}`, d }, svg("title", {}, tame(edge.pipeline, 60))));
        }
        const board = h("div", { class: "board" }, lines, boxes);
        board.style.width = `${wide}px`;
        board.style.height = `${high}px`;
        const signals = [...new Set(data.edges.map((edge) => edge.signal))];
        const alone = data.nodes.filter((node) => !places.has(node.id));
        const focused = document.activeElement?.dataset?.id;
        fill(picture, board, h("p", { class: "legend" }, signals.map((signal) => h("span", {}, h("i", { class: `key edge-${signal}` }), tame(signal, 20)))),
            alone.length > 0 && h("p", { class: "alone" }, h("span", { class: "muted" }, "Beside the pipelines: "), alone.map((node) => h("button", { type: "button", "data-id": node.id, "aria-pressed": String(node.id === chosen), onclick: () => choose(node.id) }, tame(node.name || node.id, 60)))));
        if (!data.nodes.length) fill(picture, empty("No pipelines", "The configuration has none."));
        picture.scrollLeft = scrolled;
        if (focused) for (const one of picture.querySelectorAll("button")) if (one.dataset.id === focused) one.focus();
        showFacts();
        showDetail();
        showWarnings();
    }

    function showFacts() {
        const fact = (title, value, words, share) => {
            const meter = share === undefined ? null : h("div", { class: "meter", "aria-hidden": "true" }, h("i", { class: share > 0.9 ? "bad" : null }));
            if (meter) meter.firstChild.style.width = `${Math.min(100, share * 100)}%`;
            return h("div", { class: "fact" }, h("h3", {}, title), h("b", {}, value), h("span", { class: "muted" }, words), meter);
        };
        const { budget, join, journal } = data;
        const items = [];
        if (budget?.limit) items.push(fact("Memory budget", format.bytes(budget.used), `of ${format.bytes(budget.limit)}`, budget.used / budget.limit));
        if (join) {
            const asked = (join.hits ?? 0) + (join.misses ?? 0);
            items.push(fact("Join", asked ? `${format.percent(join.hits / asked)} hits` : "nothing asked yet", `${format.plural(join.held ?? 0, "request")} held${join.heldBytes ? `, ${format.bytes(join.heldBytes)}` : ""}`));
        }
        if (journal && "backlogBytes" in journal) items.push(fact("Journal backlog", format.bytes(journal.backlogBytes), !journal.backlogRecords ? "all is delivered" : `${format.plural(journal.backlogRecords, "request")} to be delivered, the oldest since ${format.time(journal.oldest, false)}${journal.full ? "; full" : ""}`));
        fill(facts, items);
    }

    function choose(id) {
        chosen = chosen === id ? null : id;
        app.replace({ node: chosen });
        draw();
    }

    /** The component's section as it is in effect, not as it is written, and the counters under the names that Prometheus sees. */
    async function showLines(place, node) {
        try {
            const { yaml, counters } = await app.source.node(node.id, abort.signal);
            const lines = yaml.replace(/\n$/, "").split("\n").slice(0, LINES_MOST);
            const labels = (of) => Object.entries(of).map(([key, value]) => `${key}="${value}"`).join(",");
            fill(place, h("h3", {}, "Configuration in effect"), h("p", { class: "muted" }, `${node.line ? `The file has it from line ${node.line}; here` : "Here"} it stands with its defaults and without secrets.`),
                h("pre", { class: "yaml", tabindex: 0 }, tame(lines.join("\n"), 20000)),
                counters.length > 0 && [h("h3", {}, "Metrics"), h("dl", { class: "pairs metrics" }, counters.map((one) =>
                    [h("dt", { class: "mono" }, tame(one.name + (Object.keys(one.labels).length ? `{${labels(one.labels)}}` : ""), 200)), h("dd", {}, metric(one.name, one.value))]))]);
        } catch (error) {
            if (error.name !== "AbortError") fill(place, h("p", { class: "muted" }, error.message));
        }
    }

    const shownLines = h("div", { class: "node-lines" });

    function showDetail() {
        const node = data.nodes.find((one) => one.id === chosen);
        detail.hidden = !node;
        if (!node) return;
        const series = data.series?.nodes?.[node.id] ?? {};
        const interval = data.series?.interval || 10;
        const charts = Object.entries(series).filter(([, values]) => Array.isArray(values)).map(([key, values]) => {
            const now = key === "queue" ? format.short(last(values)) : key === "bytes" ? `${format.bytes(last(values) / interval)}/s` : format.rate(last(values) / interval);
            return h("div", { class: "chart" }, h("span", {}, spaced(key)), h("b", {}, now), sparkline(values, key === "refused" && sum(values) ? "bad" : "", `${spaced(key)}, now ${now}`));
        });
        fill(detail, h("header", {}, h("h2", {}, tame(node.id, 80)), h("button", { type: "button", class: "quiet", "aria-label": "Close", onclick: () => choose(node.id) }, "×")),
            charts, h("dl", { class: "pairs" }, Object.entries(node.metrics ?? {}).map(([key, value]) => [h("dt", { title: tame(key) }, spaced(key)), h("dd", {}, metric(key, value))])), shownLines);
        if (shownLines.dataset.of !== node.id) fill(shownLines);
        shownLines.dataset.of = node.id;
        showLines(shownLines, node);
    }

    function showWarnings() {
        const list = data.warnings ?? [];
        fill(warnings, h("h2", {}, "Last warnings"), list.length ? h("ul", {}, list.slice(0, 100).map((one) =>
            h("li", {}, h("span", { class: "mono muted" }, format.time(one.time, false)), h("span", { class: one.level === "error" ? "bad" : "warn" }, tame(one.level, 12)), h("span", {}, tame(one.text, 600))))) : h("p", { class: "muted" }, "None since the start."));
    }

    load();
    const timer = setInterval(() => { if (!document.hidden) load(); }, EVERY_MS);
    return { close() { clearInterval(timer); abort.abort(); }, keyHelp: [] };
}
