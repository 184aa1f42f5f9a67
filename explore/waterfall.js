// SPDX-License-Identifier: Apache-2.0
// The rows of a trace on the screen: a treegrid whose rows are as many elements as fit the window, moved and filled again while it
// scrolls. Works for millions of rows: the scroll bar stands for the place, not for pixels, where browsers' own limit is near.

import { h, onFrame, tame } from "./dom.js";
import * as format from "./format.js";
import * as R from "./rows.js";

const HIGH = 24;
const TALLEST = 6_000_000; // pixels; browsers end between 16 and 33 million
let ids = 0;

/** options: {rows: Rows, folds: Folds, colours: [colour of each service], services: [name…], duration, onSelect(rows, lead), onFold()} */
export class Waterfall {
    constructor(options) {
        Object.assign(this, options);
        this.view = [0, this.duration]; // ns, of the axis
        this.cursor = 0; // row that the keyboard is at
        this.anchor = 0; // where a range of rows begins
        this.selected = new Set(); // span ids
        this.matches = new Set(); // rows
        this.prefix = `row-${++ids}-`;
        this.pool = [];
        this.top = 0; // line at the upper edge, fractions too
        this.spacer = h("div", { class: "spacer", role: "presentation" });
        this.axis = h("div", { class: "axis", role: "columnheader" });
        this.layer = h("div", { class: "layer", role: "rowgroup" });
        this.head = h("div", { class: "wf-head", role: "row" }, h("div", { class: "c-span", role: "columnheader" }, "Service and span"), this.axis);
        this.scroller = h("div", { class: "wf-scroll", role: "presentation" }, this.layer, this.spacer);
        this.element = h("div", { class: "waterfall", role: "treegrid", tabindex: 0, "aria-label": "Spans of the trace", "aria-multiselectable": "true", "aria-colcount": 2 },
            h("div", { role: "rowgroup" }, this.head), this.scroller);
        this.draw = onFrame(() => this.paint());
        this.scroller.addEventListener("scroll", () => this.scrolled(), { passive: true });
        this.scroller.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
        this.layer.addEventListener("click", (event) => this.click(event));
        this.element.addEventListener("keydown", (event) => {
            if (!event.ctrlKey && !event.metaKey && !event.altKey && this.key(event)) {
                event.preventDefault();
                event.stopPropagation();
            }
        });
        this.sized = new ResizeObserver(() => this.resize());
        this.sized.observe(this.scroller);
    }

    close() {
        this.sized.disconnect();
    }

    // Scrolling --------------------------------------------------------------------------------------------------

    resize() {
        const full = this.folds.lines * HIGH;
        this.spacer.style.height = `${Math.min(full, TALLEST)}px`;
        this.fits = this.scroller.clientHeight / HIGH;
        this.ratio = full > TALLEST ? (full - this.scroller.clientHeight) / (TALLEST - this.scroller.clientHeight) : 1;
        this.element.setAttribute("aria-rowcount", this.folds.lines + 1);
        this.draw();
    }

    scrolled() {
        if (this.ratio === 1) this.top = this.scroller.scrollTop / HIGH;
        else if (Math.abs(this.scroller.scrollTop - this.put) > 1) this.top = (this.scroller.scrollTop * this.ratio) / HIGH;
        this.draw();
    }

    scrollTo(line) {
        this.top = Math.max(0, Math.min(line, this.folds.lines - this.fits));
        this.put = (this.top * HIGH) / this.ratio;
        this.scroller.scrollTop = this.put;
        this.put = this.scroller.scrollTop;
        this.draw();
    }

    /** Where the bar is coarser than a pixel a wheel still moves row by row. */
    wheel(event) {
        if (event.ctrlKey) {
            event.preventDefault();
            const box = this.axis.getBoundingClientRect();
            const share = Math.max(0, Math.min(1, (event.clientX - box.left) / box.width));
            const [a, b] = this.view;
            const factor = event.deltaY > 0 ? 1.25 : 0.8;
            const at = a + share * (b - a);
            this.onView?.([Math.max(0, at - (at - a) * factor), Math.min(this.duration, at + (b - at) * factor)]);
        } else if (this.ratio !== 1) {
            event.preventDefault();
            this.scrollTo(this.top + event.deltaY / HIGH);
        }
    }

    show(row) {
        const line = this.folds.lineOf(row);
        if (line < this.top + 1) this.scrollTo(line - 1);
        else if (line > this.top + this.fits - 2) this.scrollTo(line - this.fits + 2);
    }

    // Rows -------------------------------------------------------------------------------------------------------

    make() {
        const parts = {
            twist: h("button", { type: "button", class: "twist", tabindex: -1 }),
            dot: h("span", { class: "dot" }), service: h("b"), name: h("span"), flag: h("span", { class: "flag" }),
            bar: h("div", { class: "bar" }), cpu: h("i", { class: "cpu" }), children: h("i", { class: "children" }), rest: h("i", { class: "unexplained" }),
            label: h("span", { class: "label" }), marks: h("div", { class: "marks" }),
        };
        parts.strip = h("div", { class: "strip" }, parts.cpu, parts.children, parts.rest);
        parts.left = h("div", { class: "c-span", role: "rowheader" }, parts.twist, parts.dot, h("span", { class: "clip" }, parts.service, " ", parts.name), parts.flag);
        parts.right = h("div", { class: "c-time", role: "gridcell" }, parts.bar, parts.strip, parts.marks, parts.label);
        parts.element = h("div", { class: "row", role: "row" }, parts.left, parts.right);
        parts.element.parts = parts;
        this.layer.append(parts.element);
        return parts;
    }

    paint() {
        if (!this.element.isConnected || !this.folds.total) return;
        const first = Math.max(0, Math.floor(this.top) - 2);
        const last = Math.min(this.folds.lines - 1, Math.ceil(this.top + this.fits) + 2);
        const shift = this.ratio === 1 ? 0 : this.scroller.scrollTop - this.top * HIGH;
        const wanted = Math.max(0, last - first + 1);
        while (this.pool.length < wanted) this.pool.push(this.make());
        // An element keeps its line while that is in sight: a step of the wheel fills few again.
        for (let i = 0; i < this.pool.length; i++) {
            const line = first + ((i - (first % this.pool.length) + this.pool.length) % this.pool.length);
            const parts = this.pool[i];
            const isShown = line <= last;
            if (parts.isShown !== isShown) parts.element.hidden = !(parts.isShown = isShown);
            if (!isShown) continue;
            const y = line * HIGH + shift;
            if (parts.y !== y) parts.element.style.transform = `translateY(${parts.y = y}px)`;
            this.fill(parts, line);
        }
        const active = this.prefix + this.cursor;
        if (this.element.getAttribute("aria-activedescendant") !== active) this.element.setAttribute("aria-activedescendant", active);
    }

    fill(parts, line) {
        const number = this.folds.rowOf(line);
        const row = this.rows.at(number);
        const element = parts.element;
        if (parts.row !== row || parts.line !== line || !row) {
            parts.row = row;
            parts.line = line;
            element.id = this.prefix + number;
            element.dataset.row = number;
            element.setAttribute("aria-rowindex", line + 2);
            element.classList.toggle("waits", !row);
            parts.folded = parts.version = undefined;
            if (row) this.write(parts, row);
            else parts.name.textContent = parts.service.textContent = parts.label.textContent = "";
        }
        if (!row) return;
        if (parts.version !== this.version) {
            parts.version = this.version;
            this.place(parts, row);
        }
        const folded = this.folds.folded.has(number);
        if (parts.folded !== folded && row[R.SUBTREE] > 1) {
            parts.folded = folded;
            element.setAttribute("aria-expanded", String(!folded));
            parts.twist.textContent = folded ? format.short(row[R.SUBTREE] - 1) : "▾";
            parts.twist.classList.toggle("folded", folded);
            parts.twist.setAttribute("aria-label", folded ? "Expand" : "Collapse");
        }
        const isSelected = this.selected.has(row[R.ID]);
        if (parts.isSelected !== isSelected) element.setAttribute("aria-selected", String(parts.isSelected = isSelected));
        const state = (number === this.cursor ? 1 : 0) | (this.matches.has(number) ? 2 : 0);
        if (parts.state !== state) {
            parts.state = state;
            element.classList.toggle("at", Boolean(state & 1));
            element.classList.toggle("match", Boolean(state & 2));
        }
    }

    write(parts, row) {
        const service = this.services[row[R.SERVICE]] ?? "";
        const colour = this.colours[row[R.SERVICE]] ?? "";
        parts.element.setAttribute("aria-level", row[R.DEPTH] + 1);
        parts.left.style.paddingLeft = `${4 + Math.min(row[R.DEPTH], 40) * 10}px`;
        parts.twist.hidden = row[R.SUBTREE] <= 1;
        parts.left.classList.toggle("leaf", row[R.SUBTREE] <= 1);
        if (row[R.SUBTREE] <= 1) parts.element.removeAttribute("aria-expanded");
        parts.dot.style.backgroundColor = colour;
        parts.service.textContent = tame(service, 60);
        parts.name.textContent = tame(row[R.NAME], 160);
        parts.left.title = tame(`${service} ${row[R.NAME]}`, 600);
        const isBad = row[R.STATUS] === 2;
        parts.element.classList.toggle("is-bad", isBad);
        parts.element.classList.toggle("critical", Boolean(row[R.CRITICAL]));
        parts.flag.textContent = isBad ? "error" : "";
        parts.bar.style.backgroundColor = colour;
    }

    place(parts, row) {
        const [a, b] = this.view;
        const wide = 100 / (b - a || 1);
        const left = Math.max(0, (row[R.START] - a) * wide);
        const end = Math.min(100, (row[R.START] + row[R.LENGTH] - a) * wide);
        const isIn = end >= 0 && left <= 100;
        parts.bar.hidden = parts.strip.hidden = !isIn;
        if (isIn) {
            parts.bar.style.left = parts.strip.style.left = `${left}%`;
            parts.bar.style.width = parts.strip.style.width = `${Math.max(0, end - left)}%`;
        }
        const length = row[R.LENGTH] || 1;
        const self = Math.min(row[R.SELF] ?? length, length);
        const cpu = Math.min(row[R.CPU] ?? 0, self);
        parts.strip.classList.toggle("known", row[R.SAMPLES] > 0);
        parts.cpu.style.width = `${(100 * cpu) / length}%`;
        parts.children.style.width = `${(100 * (length - self)) / length}%`;
        parts.rest.style.width = `${(100 * (self - cpu)) / length}%`;
        parts.label.textContent = format.duration(row[R.LENGTH]);
        const isLeft = end > 78;
        parts.label.classList.toggle("inside", isLeft && left < 22);
        parts.label.style.left = isLeft && left >= 22 ? "" : isLeft ? "" : `${Math.max(0, end)}%`;
        parts.label.style.right = isLeft ? (left >= 22 ? `${100 - left}%` : "0") : "";
        const events = this.rows.eventsOf(row[R.ROW]);
        if (!events && !parts.marks.firstChild) return;
        parts.marks.replaceChildren(...(events ?? []).slice(0, 50).map(([offset, name]) => {
            const mark = h("i", { title: tame(name, 120) });
            mark.style.left = `${(offset - a) * wide}%`;
            mark.hidden = offset < a || offset > b;
            return mark;
        }));
    }

    // Axis -------------------------------------------------------------------------------------------------------

    setView(view) {
        this.view = view;
        this.repaint();
    }

    /** After the axis, colours or rows changed: everything is placed again. */
    repaint() {
        this.version = (this.version ?? 0) + 1;
        const [a, b] = this.view;
        const marks = format.ticks(a, b, Math.max(2, (this.axis.clientWidth || 400) / 90));
        this.axis.replaceChildren(...marks.map((ns) => {
            const tick = h("span", {}, ns === 0 ? "0" : format.duration(ns));
            const at = (100 * (ns - a)) / (b - a || 1);
            tick.style.left = `${at}%`;
            if (at > 92) tick.classList.add("at-end");
            return tick;
        }));
        this.draw();
    }

    // Choosing ---------------------------------------------------------------------------------------------------

    click(event) {
        const element = event.target.closest(".row");
        const row = element?.parts.row;
        if (!row) return;
        if (event.target.closest(".twist")) this.fold(row);
        else this.pick(row[R.ROW], { add: event.ctrlKey || event.metaKey, range: event.shiftKey });
        this.element.focus({ preventScroll: true });
    }

    async pick(number, { add = false, range = false } = {}) {
        const chosen = [];
        if (range) {
            const [from, to] = [Math.min(this.anchor, number), Math.max(this.anchor, number)];
            for (let line = this.folds.lineOf(from); line <= this.folds.lineOf(to) && chosen.length < 200; line++) {
                const row = await this.rows.fetch(this.folds.rowOf(line));
                if (row) chosen.push(row[R.ID]);
            }
        } else {
            const row = await this.rows.fetch(number);
            if (row) chosen.push(row[R.ID]);
            this.anchor = number;
        }
        if (!chosen.length) return;
        if (!add) this.selected.clear();
        for (const id of chosen) {
            if (add && !range && this.selected.has(id)) this.selected.delete(id);
            else this.selected.add(id);
        }
        this.cursor = number;
        this.draw();
        this.onSelect([...this.selected], chosen.at(-1));
    }

    fold(row, fold) {
        this.folds.toggle(row[R.ROW], row[R.SUBTREE], fold);
        this.resize();
        this.onFold();
    }

    moveTo(number) {
        this.cursor = Math.max(0, Math.min(this.folds.total - 1, number));
        this.show(this.cursor);
        this.draw();
    }

    key(event) {
        const line = this.folds.lineOf(this.cursor);
        const to = (next) => this.moveTo(this.folds.rowOf(Math.max(0, Math.min(this.folds.lines - 1, next))));
        const row = this.rows.at(this.cursor);
        if (event.key === "ArrowDown" || event.key === "j") to(line + 1);
        else if (event.key === "ArrowUp" || event.key === "k") to(line - 1);
        else if (event.key === "PageDown") to(line + Math.floor(this.fits) - 1);
        else if (event.key === "PageUp") to(line - Math.floor(this.fits) + 1);
        else if (event.key === "Home") to(0);
        else if (event.key === "End") to(this.folds.lines - 1);
        else if (!row) return false;
        else if (event.key === "ArrowRight") {
            if (this.folds.folded.has(this.cursor)) this.fold(row, false);
            else if (row[R.SUBTREE] > 1) to(line + 1);
        } else if (event.key === "ArrowLeft") {
            if (row[R.SUBTREE] > 1 && !this.folds.folded.has(this.cursor)) this.fold(row, true);
            else if (row[R.PARENT] >= 0) this.moveTo(row[R.PARENT]);
        } else if (event.key === "Enter") this.pick(this.cursor);
        else if (event.key === " " || event.key === "x") this.pick(this.cursor, { add: true, range: event.shiftKey });
        else return false;
        return true;
    }
}
