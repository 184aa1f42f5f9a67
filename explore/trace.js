// SPDX-License-Identifier: Apache-2.0
// One trace: minimap, waterfall, and beside it the flame graph and the details of what is selected.

import { h, fill, debounce, onFrame, tame } from "./dom.js";
import * as format from "./format.js";
import { prepare, colour, onTheme, serviceColours } from "./paint.js";
import { Rows, Folds, STATUS } from "./rows.js";
import { Waterfall } from "./waterfall.js";
import { FlamePanel, flameKeys } from "./panel.js";
import { spanDetails } from "./span.js";

const FOLDS_MOST = 100; // that an address names
const SPANS_MOST = 100;

export function openTrace(container, to, app) {
    const id = to.path[1] ?? "";
    const source = app.source;
    const abort = new AbortController();
    const state = to.query;
    const place = h("div", { class: "trace-place" });
    fill(container, place);
    let header = null;
    let wf = null;
    let panel = null;
    let selected = (state.get("span") ?? "").split(",").filter(Boolean);
    let lead = selected.at(-1);
    let found = []; // rows of the search
    let foundAt = -1;
    const folds = new Folds();
    const rows = new Rows(source, id, abort.signal, () => {
        if (!wf) return;
        if (folds.total !== rows.total) {
            folds.total = rows.total;
            wf.resize();
        }
        wf.repaint();
    });

    const put = (changes) => {
        for (const [key, value] of Object.entries(changes)) {
            if (value === null || value === "") state.delete(key);
            else state.set(key, value);
        }
        app.replace(changes);
    };

    Promise.all([source.trace(id, abort.signal), rows.ask(0)]).then(([answer]) => {
        header = answer;
        header.samples ??= header.services.reduce((all, service) => all + (service.samples ?? 0), 0);
        build();
    }, (error) => app.failed(place, error, () => app.go(`trace/${id}`)));

    // Parts --------------------------------------------------------------------------------------------------------

    const minimap = h("canvas", { class: "minimap", role: "img", "aria-label": "The whole trace; drag to zoom into a part of its time" });
    const find = h("input", { type: "search", placeholder: "Find spans", "aria-label": "Find spans by name, service or attribute", "data-search": true, spellcheck: "false", size: 16 });
    const foundText = h("span", { class: "muted", role: "status" });
    const details = h("div", { class: "details", "aria-live": "off" });
    const scope = h("div", { class: "tabs", role: "group", "aria-label": "What the flame graph shows" });
    const tabs = h("div", { class: "side-tabs", role: "tablist", "aria-label": "Beside the spans" });
    let side;
    let split;

    function build() {
        const names = header.services.map((service) => service.name);
        const colours = serviceColours(names);
        const root = header.root;
        app.title(root ? `${root.service} ${root.name}` : id);
        wf = new Waterfall({
            rows, folds, services: names, colours: names.map((name) => colours.get(name)), duration: header.duration || 1,
            onSelect: select, onFold: () => put({ folded: folds.folded.size <= FOLDS_MOST ? [...folds.folded].map(([row, size]) => `${row}-${size}`).join(",") : null }),
        });
        wf.onView = view;
        wf.selected = new Set(selected);
        folds.total = rows.total;
        for (const part of (state.get("folded") ?? "").split(",")) {
            const [row, size] = part.split("-").map(Number);
            if (size > 1 && row >= 0) folds.folded.set(row, size);
        }
        folds.rebuild();
        panel = new FlamePanel({
            label: "Flame graph of the selection", load: (query, signal) => source.flame(query, signal), state, onState: put,
            fileName: `trace-${id.slice(0, 8)}`,
            download: (kind, base, type) => {
                if (source.isLocal) return { folded: () => source.saveFolded(base), pprof: () => source.savePprof(base, `trace-${id.slice(0, 8)}`) }[kind];
                const query = new URLSearchParams(base);
                if (kind === "otlp-json") for (const key of [...query.keys()]) if (key !== "trace") query.delete(key);
                if (type && kind !== "otlp-json") query.set("type", type);
                query.set("format", kind);
                return source.download(query);
            },
            advice: () => (selected.length && header.samples ? h("button", { type: "button", onclick: () => { select([], null); } }, "Show the whole trace") : null),
        });
        const legend = h("ul", { class: "services", "aria-label": "Services" }, header.services.slice(0, 40).map((service) => {
            const dot = h("span", { class: "dot" });
            dot.style.backgroundColor = colours.get(service.name);
            return h("li", {}, dot, tame(service.name, 60), h("span", { class: "muted" }, ` ${format.short(service.spans)}`));
        }));
        side = h("div", { class: "side" }, tabs, h("div", { class: "pane", role: "tabpanel", id: "pane-flame", "aria-labelledby": "tab-flame" }, scope, panel.element),
            h("div", { class: "pane", role: "tabpanel", id: "pane-details", "aria-labelledby": "tab-details" }, details));
        split = h("div", { class: "split", role: "separator", tabindex: 0, "aria-orientation": "vertical", "aria-label": "Width of the spans", "aria-valuemin": 20, "aria-valuemax": 80 });
        const work = h("div", { class: "trace-work" }, wf.element, split, side);
        const compare = root ? h("a", { class: "button", href: `#/diff?${source.isLocal ? "from=file&" : ""}${new URLSearchParams({ a: `trace=${id}`, b: String(new URLSearchParams({ "not-trace": id, service: root.service, name: root.name })) })}`,
            title: "The flame graph of this trace against all others of its root name" }, "Compare with its others") : null;
        fill(place,
            h("div", { class: "trace-head" },
                h("div", { class: "trace-title" }, h("h1", { class: "clip", title: root ? tame(`${root.service} ${root.name}`) : null }, root ? [h("span", { class: "muted" }, tame(root.service, 80)), " ", tame(root.name, 200), root.missingParent && h("span", { class: "muted" }, " (its parent has not come)")] : "A trace without its root"),
                    h("p", { class: "facts" }, h("span", { class: "mono", title: id }, tame(id, 40)), h("span", { title: format.iso(header.start) }, format.time(header.start)),
                        h("b", {}, format.duration(header.duration)), h("span", {}, format.plural(header.spans, "span")),
                        header.errors ? h("button", { type: "button", class: "link bad", title: "Next error (e)", onclick: () => jump("error") }, format.plural(header.errors, "error")) : h("span", { class: "muted" }, "no errors"),
                        h("span", {}, header.samples ? format.plural(header.samples, "sample") : "no samples"))),
                h("div", { class: "trace-tools" }, find, foundText,
                    h("button", { type: "button", title: "Next span of the critical path (c)", onclick: () => jump("critical") }, "Critical path"), compare)),
            legend, minimap, work);
        for (const [name, words] of [["flame", "Flame graph"], ["details", "Span"]])
            tabs.append(h("button", { type: "button", role: "tab", id: `tab-${name}`, "aria-controls": `pane-${name}`, onclick: () => tab(name, true) }, words));
        tabs.addEventListener("keydown", (event) => {
            if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
            const next = [...tabs.children].find((one) => one.getAttribute("aria-selected") !== "true");
            next.focus();
            next.click();
            event.stopPropagation();
        });
        watchSplit(work);
        watchMinimap();
        find.addEventListener("input", debounce(search, 200));
        find.addEventListener("keydown", (event) => {
            if (event.key === "Enter") { event.preventDefault(); nextFound(event.shiftKey ? -1 : 1); }
        });
        tab(state.get("tab") ?? "flame");
        wf.resize();
        wf.setView(readView());
        sized.observe(minimap);
        shown();
        if (state.get("find-span")) { find.value = state.get("find-span"); search(); }
        wf.element.focus({ preventScroll: true });
        if (lead) source.span(id, lead, abort.signal).then((answer) => { folds.reveal(answer.row); wf.resize(); wf.anchor = answer.row; wf.moveTo(answer.row); }, () => {});
    }

    function tab(name, isAsked) {
        for (const one of tabs.children) {
            const is = one.id === `tab-${name}`;
            one.setAttribute("aria-selected", String(is));
            one.tabIndex = is ? 0 : -1;
        }
        side.dataset.tab = name;
        if (isAsked) put({ tab: name === "flame" ? null : name });
    }

    // Selection ----------------------------------------------------------------------------------------------------

    function select(ids, last) {
        selected = ids.slice(0, SPANS_MOST);
        if (ids.length > SPANS_MOST) app.toast(`The first ${SPANS_MOST} spans are taken together.`);
        lead = ids.length ? last : null;
        wf.selected = new Set(selected);
        wf.draw();
        put({ span: selected.join(","), zoom: null });
        shown();
    }

    function shown() {
        const subtree = state.get("self") !== "1";
        const query = new URLSearchParams({ trace: id });
        if (selected.length) {
            query.set("span", selected.join(","));
            if (subtree) query.set("subtree", "1");
        }
        const button = (words, pressed, changes, title) => h("button", { type: "button", "aria-pressed": String(pressed), title, onclick: () => {
            put({ ...changes, zoom: null });
            if ("span" in changes) select([], null);
            else shown();
        } }, words);
        const what = selected.length > 1 ? format.plural(selected.length, "span") : "Span";
        fill(scope, button("Whole trace", selected.length === 0, { span: null }, "All samples of the trace"),
            selected.length ? [button(`${what} with children`, subtree, { self: null }, "The selected spans and all below them"), button(`${what} alone`, !subtree, { self: "1" }, "Samples of the selected spans themselves")]
                : h("span", { class: "muted" }, "Select spans for their own flame graph; Ctrl or Shift takes several."));
        panel.show(query);
        describe();
    }

    let describing = 0;

    async function describe() {
        const mine = ++describing;
        if (!lead) {
            fill(details, h("p", { class: "muted" }, "Select a span to see its attributes, events and links."));
            return;
        }
        try {
            const answer = await source.span(id, lead, abort.signal);
            if (mine !== describing) return;
            fill(details, spanDetails(answer, header.start, {
                filter: (text) => app.go(source.isLocal ? "file" : "traces", new URLSearchParams({ attr: text })),
                trace: (trace, span) => `#/trace/${encodeURIComponent(trace)}?span=${encodeURIComponent(span ?? "")}`,
                goTo: async (span) => {
                    const other = await source.span(id, span, abort.signal).catch(() => null);
                    if (!other) { app.toast("The parent has not come, or is not kept."); return; }
                    folds.reveal(other.row);
                    wf.resize();
                    wf.moveTo(other.row);
                    wf.pick(other.row);
                },
                compare: source.isLocal ? null : (service, name) => {
                    const side = (slow) => String(new URLSearchParams({ service, name, slow }));
                    app.go("diff", new URLSearchParams({ a: side("0"), b: side("1") }));
                },
            }));
        } catch (error) {
            if (mine === describing) app.failed(details, error, describe);
        }
    }

    // Search and jumps -----------------------------------------------------------------------------------------------

    async function search() {
        const text = find.value.trim();
        app.replace({ "find-span": text || null });
        foundText.textContent = "";
        found = [];
        foundAt = -1;
        if (text) {
            const answer = await source.find(id, text, abort.signal).catch(() => ({ rows: [] }));
            if (text !== find.value.trim()) return;
            found = answer.rows;
            foundText.textContent = found.length ? `${format.count(found.length)}${answer.more ? "+" : ""} found` : "none found";
        }
        wf.matches = new Set(found);
        if (found.length) nextFound(1, false);
        wf.draw();
    }

    function nextFound(by) {
        if (!found.length) return;
        foundAt = (foundAt + by + found.length) % found.length;
        foundText.textContent = `${foundAt + 1} of ${found.length}`;
        folds.reveal(found[foundAt]);
        wf.resize();
        wf.moveTo(found[foundAt]);
    }

    async function jump(what) {
        let next;
        if (what === "critical") {
            const path = [...header.criticalPath].sort((a, b) => a - b);
            next = path.find((row) => row > wf.cursor) ?? path[0];
        } else {
            for (const from of [wf.cursor + 1, 0]) {
                for (let row = from; row < rows.total && next === undefined; row++) {
                    const one = rows.at(row) ?? (await rows.fetch(row));
                    if (!one) break;
                    if (one[STATUS] === 2) next = row;
                    if (row - from > 200000) break;
                }
                if (next !== undefined) break;
            }
        }
        if (next === undefined) return;
        folds.reveal(next);
        wf.resize();
        wf.moveTo(next);
        wf.pick(next);
    }

    // Time and minimap ---------------------------------------------------------------------------------------------------

    function readView() {
        const [a, b] = (state.get("view-ns") ?? "").split("-").map(Number);
        return b > a && a >= 0 ? [a, Math.min(b, header.duration)] : [0, header.duration || 1];
    }

    function view(range) {
        const least = Math.max(1, header.duration / 1e6);
        const [a, b] = range[1] - range[0] < least ? [range[0], range[0] + least] : range;
        const isAll = a <= 0 && b >= header.duration;
        put({ "view-ns": isAll ? null : `${Math.floor(a)}-${Math.ceil(b)}` });
        wf.setView([a, b]);
        paint();
    }

    let drag = null;
    const paint = onFrame(() => {
        if (!minimap.isConnected || !header) return;
        const { context, width, height } = prepare(minimap);
        const deepest = header.minimap.reduce((most, one) => Math.max(most, one[2]), 1);
        const line = Math.min(5, (height - 8) / (deepest + 1));
        const bad = colour("error");
        for (const [from, end, depth, service, isBad] of header.minimap) {
            context.fillStyle = isBad ? bad : wf.colours[service];
            context.fillRect(from * width, 4 + depth * line, Math.max(1, (end - from) * width), Math.max(1, line - 0.6));
        }
        const [a, b] = drag ?? wf.view.map((ns) => ns / (header.duration || 1));
        const [left, right] = [Math.min(a, b) * width, Math.max(a, b) * width];
        if (left > 0 || right < width) {
            context.fillStyle = colour("bg");
            context.globalAlpha = 0.65;
            context.fillRect(0, 0, left, height);
            context.fillRect(right, 0, width - right, height);
            context.globalAlpha = 1;
            context.strokeStyle = colour("accent");
            context.strokeRect(left + 0.5, 0.5, Math.max(1, right - left - 1), height - 1);
        }
    });

    function watchMinimap() {
        const share = (event) => Math.max(0, Math.min(1, event.offsetX / minimap.clientWidth));
        minimap.addEventListener("pointerdown", (event) => {
            minimap.setPointerCapture(event.pointerId);
            drag = [share(event), share(event)];
        });
        minimap.addEventListener("pointermove", (event) => {
            if (!drag) return;
            drag[1] = share(event);
            paint();
        });
        minimap.addEventListener("pointerup", () => {
            if (!drag) return;
            const [a, b] = [Math.min(...drag), Math.max(...drag)];
            drag = null;
            view((b - a) * minimap.clientWidth < 4 ? [0, header.duration] : [a * header.duration, b * header.duration]);
        });
    }

    function watchSplit(work) {
        const set = (share) => {
            const value = Math.max(20, Math.min(80, share));
            work.style.setProperty("--left", `${value}%`);
            split.setAttribute("aria-valuenow", Math.round(value));
        };
        set(Number(state.get("split")) || 54);
        let dragging = false;
        split.addEventListener("pointerdown", (event) => {
            split.setPointerCapture(event.pointerId);
            dragging = true;
            event.preventDefault();
        });
        split.addEventListener("pointermove", (event) => {
            if (!dragging) return;
            const box = work.getBoundingClientRect();
            set((100 * (event.clientX - box.left)) / box.width);
        });
        split.addEventListener("pointerup", () => { dragging = false; put({ split: split.getAttribute("aria-valuenow") }); });
        split.addEventListener("keydown", (event) => {
            const by = { ArrowLeft: -4, ArrowRight: 4 }[event.key];
            if (!by) return;
            set(Number(split.getAttribute("aria-valuenow")) + by);
            put({ split: split.getAttribute("aria-valuenow") });
            event.stopPropagation();
            event.preventDefault();
        });
    }

    const sized = new ResizeObserver(() => { paint(); wf?.repaint(); });
    const forget = onTheme(() => {
        if (!wf) return;
        const colours = serviceColours(wf.services);
        wf.colours = wf.services.map((name) => colours.get(name));
        wf.pool.forEach((parts) => { parts.row = undefined; });
        wf.repaint();
        paint();
    });

    return {
        update(next) {
            for (const key of [...state.keys()]) state.delete(key);
            for (const [key, value] of next.query) state.append(key, value);
            if (!wf) return;
            selected = (state.get("span") ?? "").split(",").filter(Boolean);
            lead = selected.at(-1);
            wf.selected = new Set(selected);
            wf.setView(readView());
            tab(state.get("tab") ?? "flame");
            paint();
            shown();
        },
        close() {
            abort.abort();
            wf?.close();
            panel?.close();
            sized.disconnect();
            forget();
        },
        onKey(event) {
            if (!wf) return false;
            if (event.key === "c") jump("critical");
            else if (event.key === "e") jump("error");
            else if (event.key === "f") tab("flame", true);
            else if (event.key === "d") tab("details", true);
            else if (event.key === "n" || event.key === "N") nextFound(event.key === "n" ? 1 : -1);
            else if (event.key === "z") view([0, header.duration]);
            else if (event.key === "Escape" && selected.length) select([], null);
            else return wf.key(event);
            return true;
        },
        keyHelp: [
            ["Spans", [["j · k · ↑ · ↓", "next and previous row"], ["← · →", "collapse and expand"], ["Enter", "select the span"], ["x · Space", "add it to the selection"],
                ["c · e", "next of the critical path, next error"], ["f · d", "flame graph, details of the span"], ["n · N", "next and previous that was found"], ["z", "whole time"], ["Ctrl + wheel", "zoom the time"]]],
            flameKeys,
        ],
    };
}
