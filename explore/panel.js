// SPDX-License-Identifier: Apache-2.0
// A flame graph with what belongs to it: type, view (tree, sandwich, top), search, how far the numbers can be trusted, downloads,
// and words where there is none. Used for spans, for services and for comparisons.

import { h, fill, empty, copy, debounce, save, tame } from "./dom.js";
import * as format from "./format.js";
import { Flame, toSvg } from "./flame.js";

const VIEWS = [["tree", "Flame graph"], ["sandwich", "Sandwich"], ["top", "Top"]];
const TOP_ROWS = 300;

/** options: {label, load(query, signal), isDiff, download(format, query) → URL or null, fileName, state: URLSearchParams, onState(changes)} */
export class FlamePanel {
    constructor(options) {
        this.options = options;
        this.base = null;
        this.data = null;
        this.flames = [];
        this.types = h("select", { "aria-label": "Type of profile", hidden: true, onchange: (event) => this.change({ type: event.target.value, zoom: null }) });
        this.tabs = h("div", { class: "tabs", role: "group", "aria-label": "View" }, VIEWS.map(([view, words]) =>
            h("button", { type: "button", "data-show": view, onclick: () => this.change({ view: view === "tree" ? null : view }) }, words)));
        this.searchBox = h("input", { type: "search", placeholder: "Search functions", "aria-label": "Search functions", spellcheck: "false", size: 16 });
        this.found = h("span", { class: "muted", role: "status" });
        this.trust = h("span", { class: "trust" });
        this.downloads = h("details", { class: "menu" }, h("summary", { title: "Download" }, "Save"), h("div", { class: "menu-items" }));
        this.head = h("div", { class: "panel-head" }, this.types, this.tabs, this.searchBox, this.found, this.trust, this.downloads);
        this.body = h("div", { class: "panel-body" });
        this.foot = h("div", { class: "panel-foot", hidden: true });
        this.element = h("section", { class: "flame-panel", "aria-label": options.label }, this.head, this.body, this.foot);
        const searched = debounce(() => this.change({ find: this.searchBox.value || null }, true), 150);
        this.searchBox.addEventListener("input", searched);
        this.searchBox.value = options.state.get("find") ?? "";
        this.downloads.addEventListener("focusout", (event) => {
            if (!this.downloads.contains(event.relatedTarget)) this.downloads.open = false;
        });
    }

    close() {
        this.abort?.abort();
        this.flames.forEach((flame) => flame.close());
        this.flames = [];
    }

    get state() { return this.options.state; }

    change(changes, isSearch) {
        for (const [key, value] of Object.entries(changes)) {
            if (value === null) this.state.delete(key);
            else this.state.set(key, value);
        }
        this.options.onState(changes);
        if (isSearch) this.search();
        else if (!("zoom" in changes && Object.keys(changes).length === 1)) this.show();
    }

    search() {
        const text = this.searchBox.value;
        const shares = this.flames.map((flame) => flame.search(text));
        this.found.textContent = text && shares.length ? format.percent(shares[0]) : "";
        for (const row of this.body.querySelectorAll("tr[data-name]"))
            row.hidden = Boolean(text) && !row.dataset.name.toLowerCase().includes(text.toLowerCase());
    }

    /** What it is about, as a flame query (or {a, b}); null: nothing yet. */
    async show(base = this.base) {
        this.base = base;
        this.abort?.abort();
        if (!base) return;
        const mine = this.abort = new AbortController();
        const view = this.state.get("view") ?? "tree";
        for (const tab of this.tabs.children) tab.setAttribute("aria-pressed", String(tab.dataset.show === view));
        const query = new URLSearchParams(base);
        query.set("width", Math.max(320, this.body.clientWidth || 800));
        if (this.state.get("type")) query.set("type", this.state.get("type"));
        if (view !== "tree") query.set("view", view);
        if (view === "sandwich") {
            if (!this.state.get("fn") && !(await this.hottest(base, mine.signal))) return;
            query.set("function", this.state.get("fn"));
        }
        this.element.classList.add("is-loading");
        try {
            const data = await this.options.load(query, mine.signal);
            if (mine !== this.abort) return;
            this.query = query;
            this.draw(data, view);
        } catch (error) {
            if (mine !== this.abort || error.name === "AbortError") return;
            this.clear();
            fill(this.body, empty("No flame graph", error.message, h("button", { type: "button", onclick: () => this.show() }, "Try again")));
        }
        this.element.classList.remove("is-loading");
    }

    /** A sandwich needs a function: the one with the most of its own. */
    async hottest(base, signal) {
        const query = new URLSearchParams(base);
        query.set("view", "top");
        if (this.state.get("type")) query.set("type", this.state.get("type"));
        try {
            const data = await this.options.load(query, signal);
            const top = (data.top ?? []).find((row) => row[0] !== 0) ?? data.top?.[0];
            if (top) {
                this.note({ fn: data.names[top[0]] });
                return true;
            }
            this.draw(data, "tree");
        } catch { /* said by the next question */ }
        return false;
    }

    note(changes) {
        for (const [key, value] of Object.entries(changes)) this.state.set(key, value);
        this.options.onState(changes);
    }

    clear() {
        this.flames.forEach((flame) => flame.close());
        this.flames = [];
        this.foot.hidden = true;
        this.trust.textContent = "";
        this.downloads.hidden = true;
        this.data = null;
    }

    draw(data, view) {
        this.clear();
        this.data = data;
        const isDiff = Boolean(this.options.isDiff);
        const types = data.types ?? [];
        this.types.hidden = types.length < 2;
        fill(this.types, types.map((type) => h("option", { value: type.type },
            `${tame(type.type, 40)} · ${isDiff ? format.short(type.a.samples + type.b.samples) : format.short(type.samples)}`)));
        this.types.value = data.type;
        const has = (isDiff ? (data.a?.samples ?? 0) + (data.b?.samples ?? 0) : data.samples) > 0;
        this.element.classList.toggle("has-profile", has);
        for (const part of [this.tabs, this.searchBox]) part.hidden = !has;
        if (!has) {
            this.found.textContent = "";
            fill(this.body, empty("No profile here", data.why ?? "No sample of a profile belongs to what is selected.", this.options.advice?.(data)));
            return;
        }
        if (isDiff)
            fill(this.trust, h("b", {}, "A"), ` ${format.value(data.unit, data.a.total)}, ${format.confidence(data.a.samples)} · `, h("b", {}, "B"), ` ${format.value(data.unit, data.b.total)}, ${format.confidence(data.b.samples)}`);
        else fill(this.trust, h("b", {}, format.value(data.unit, data.total)), " · ", format.confidence(data.samples, data.confidence?.percent));
        this.trust.title = "A share of a flame graph is only as exact as the number of samples: about 1/√n.";
        this.trust.classList.toggle("weak", !isDiff && data.samples < 30);
        if (view === "top") fill(this.body, this.top(data, isDiff));
        else if (view === "sandwich") this.sandwich(data, isDiff);
        else {
            const flame = this.flame({ label: this.options.label });
            fill(this.body, flame.element, isDiff && this.legend());
            flame.set(data.names, data.tree, { unit: data.unit, isDiff, path: this.state.get("zoom") ?? "" });
        }
        this.saves(view);
        this.search();
        if (data.truncatedDepth) this.body.append(h("p", { class: "note" }, "Stacks deeper than the limit are cut."));
    }

    flame(options) {
        const flame = new Flame({
            ...options,
            onZoom: options.up || options.fixed ? null : (path) => this.change({ zoom: path || null }),
            onSelect: (frame) => this.chosen(flame, frame),
            onOpen: (name) => this.open(name),
        });
        this.flames.push(flame);
        return flame;
    }

    open(name) {
        this.change({ view: "sandwich", fn: name });
    }

    chosen(flame, frame) {
        const name = flame.nameOf(frame);
        const [words, ...rest] = flame.describe(frame);
        fill(this.foot, h("b", { class: "clip mono", title: words }, words), h("span", { class: "muted" }, rest.join(" · ")),
            h("button", { type: "button", class: "quiet", onclick: () => this.open(name) }, "Callers and callees"),
            h("button", { type: "button", class: "quiet", onclick: (event) => copy(name).then((done) => { event.target.textContent = done ? "Copied" : "Not copied"; }) }, "Copy name"),
            flame.zoomed !== 0 && h("button", { type: "button", class: "quiet", onclick: () => { flame.zoom(0); this.foot.hidden = true; } }, "Whole graph"));
        this.foot.hidden = false;
    }

    legend() {
        const part = (name, words) => h("span", {}, h("i", { class: `key ${name}` }), words);
        return h("p", { class: "legend" }, part("less", "less in B"), part("same", "the same"), part("more", "more in B"));
    }

    sandwich(data, isDiff) {
        const callers = this.flame({ label: "Callers", up: true });
        const callees = this.flame({ label: "Callees", fixed: true });
        fill(this.body, h("div", { class: "sandwich" },
            h("h3", {}, "Callers of ", h("span", { class: "mono" }, tame(this.state.get("fn"), 120))), callers.element,
            h("h3", {}, "Callees"), callees.element));
        callers.set(data.names, data.callers ?? [], { unit: data.unit, isDiff });
        callees.set(data.names, data.callees ?? [], { unit: data.unit, isDiff });
        callers.scroller.scrollTop = 1e9;
    }

    top(data, isDiff) {
        const rows = (data.top ?? []).slice(0, TOP_ROWS);
        const sums = isDiff ? [data.a.total, data.b.total] : [data.total];
        const cell = (number, sum) => h("td", { class: "num" }, format.value(data.unit, number), " ", h("span", { class: "muted" }, format.percent(sum ? number / sum : 0)));
        const head = isDiff ? ["Self A", "Self B", "Change", "Total A", "Total B"] : ["Self", "Total", "Samples"];
        return h("div", { class: "table-box", tabindex: 0, role: "region", "aria-label": "Functions by their own share" }, h("table", { class: "top-table" },
            h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Function"), head.map((words) => h("th", { scope: "col", class: "num" }, words)))),
            h("tbody", {}, rows.map((row) => {
                const name = data.names[row[0]] ?? "";
                const link = h("td", { class: "mono clip", title: tame(name) }, h("button", { type: "button", class: "link", onclick: () => this.open(name) }, tame(name, 200)));
                if (!isDiff)
                    return h("tr", { "data-name": name }, link, cell(row[2], sums[0]), cell(row[1], sums[0]), h("td", { class: "num" }, format.short(row[3] ?? 0)));
                const change = (sums[1] ? row[4] / sums[1] : 0) - (sums[0] ? row[3] / sums[0] : 0);
                return h("tr", { "data-name": name }, link, cell(row[3], sums[0]), cell(row[4], sums[1]),
                    h("td", { class: `num ${change > 0.001 ? "more" : change < -0.001 ? "less" : ""}` }, `${change > 0 ? "+" : change < 0 ? "−" : ""}${Math.abs(change * 100).toFixed(1)} pt`), cell(row[1], sums[0]), cell(row[2], sums[1]));
            }))));
    }

    saves(view) {
        const items = [];
        const { download, fileName } = this.options;
        for (const [kind, words] of [["pprof", "pprof"], ["folded", "Folded stacks"], ["otlp-json", "Trace as OTLP/JSON"]]) {
            const link = download?.(kind, this.base, this.state.get("type"));
            if (typeof link === "string") items.push(h("a", { href: link, download: true }, words));
            else if (link) items.push(h("button", { type: "button", class: "quiet", onclick: link }, words));
        }
        if (view === "tree")
            items.push(h("button", { type: "button", class: "quiet", onclick: () => save(`${fileName ?? "flame"}.svg`, "image/svg+xml", toSvg(this.flames[0], this.options.label)) }, "SVG picture"));
        fill(this.downloads.lastChild, items);
        this.downloads.hidden = items.length === 0;
    }
}

export const flameKeys = ["Flame graph (when it has the focus)", [["← · → · ↑ · ↓", "move between frames"], ["Enter", "zoom in"], ["Backspace", "zoom out one level"], ["Esc", "whole graph"], ["s", "callers and callees (sandwich)"]]];
