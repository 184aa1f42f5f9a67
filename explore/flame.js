// SPDX-License-Identifier: Apache-2.0
// One flame graph on one canvas. The canvas is as large as its window; a spacer gives the scroll bar its length, and only the rows and
// frames in sight are drawn, so that depth and number of frames cost nothing. Rows of a tree are depth first:
// [name, total, self, children], of a comparison [name, totalA, totalB, selfA, selfB, children].

import { h, fill, onFrame, tame } from "./dom.js";
import * as format from "./format.js";
import { prepare, colour, frameColour, diffColour, fit, onTheme } from "./paint.js";

const ROW = 19;
const FONT = "11px ui-monospace, SFMono-Regular, 'Cascadia Mono', 'DejaVu Sans Mono', monospace";
let ids = 0;

/** The rows as arrays by frame, with the place of each and the frames of each level from left to right. */
export function layOut(names, rows, isDiff) {
    const size = rows.length;
    const tree = {
        names, size, isDiff, levels: [],
        name: new Uint32Array(size), depth: new Uint32Array(size), parent: new Int32Array(size), order: new Uint32Array(size),
        left: new Float64Array(size), width: new Float64Array(size),
        total: new Float64Array(size), self: new Float64Array(size),
        totalB: isDiff ? new Float64Array(size) : null, selfB: isDiff ? new Float64Array(size) : null,
    };
    const open = []; // ancestors: [frame, children to come, where the next one begins, number of the next]
    const sumA = size ? rows[0][1] : 0;
    const sumB = size && isDiff ? rows[0][2] : 0;
    tree.sumA = sumA;
    tree.sumB = sumB;
    for (let i = 0; i < size; i++) {
        const row = rows[i];
        while (open.length && open.at(-1)[1] === 0) open.pop();
        const above = open.at(-1);
        const shareA = sumA ? row[1] / sumA : 0;
        // A comparison's frames are as wide as both sides on average, so that what only one side has is seen.
        const wide = isDiff ? (shareA + (sumB ? row[2] / sumB : 0)) / (sumA && sumB ? 2 : 1) : shareA;
        tree.name[i] = row[0];
        tree.total[i] = row[1];
        tree.self[i] = row[isDiff ? 3 : 2];
        if (isDiff) {
            tree.totalB[i] = row[2];
            tree.selfB[i] = row[4];
        }
        tree.width[i] = wide;
        tree.parent[i] = above ? above[0] : -1;
        tree.depth[i] = open.length;
        tree.left[i] = above ? above[2] : 0;
        if (above) {
            tree.order[i] = above[3]++;
            above[2] += wide;
            above[1]--;
        }
        (tree.levels[open.length] ??= []).push(i);
        open.push([i, row.at(-1), tree.left[i], 0]);
    }
    return tree;
}

/** The place of a frame as numbers of children from the root, "0.2.1", and back. */
export function pathOf(tree, frame) {
    const out = [];
    for (let at = frame; at > 0 && tree.parent[at] >= 0; at = tree.parent[at]) out.push(tree.order[at]);
    return out.reverse().join(".");
}

function frameAt(tree, path) {
    let at = 0;
    for (const part of path ? path.split(".") : []) {
        const next = (tree.levels[tree.depth[at] + 1] ?? []).find((frame) => tree.parent[frame] === at && tree.order[frame] === Number(part));
        if (next === undefined) return at;
        at = next;
    }
    return at;
}

/** options: {label, up: true for callers, onZoom(path), onSelect(frame), onOpen(name)} */
export class Flame {
    constructor(options) {
        this.options = options;
        this.tree = null;
        this.zoomed = 0;
        this.chosen = -1;
        this.hovered = -1;
        this.matches = null;
        this.unit = "";
        this.canvas = h("canvas", { "aria-hidden": "true" });
        this.spacer = h("div", { class: "spacer" });
        this.item = h("div", { role: "treeitem", id: `frame-${++ids}`, class: "visually-hidden", "aria-level": 1, "aria-selected": "true" });
        this.tip = h("div", { class: "tip", hidden: true });
        this.scroller = h("div", {
            class: "flame", role: "tree", tabindex: 0, "aria-label": options.label, "aria-activedescendant": this.item.id,
            "data-flame": options.up ? "callers" : "tree",
        }, this.canvas, this.spacer, this.item);
        this.element = h("div", { class: "flame-box" }, this.scroller, this.tip);
        this.draw = onFrame(() => this.paint());
        this.scroller.addEventListener("scroll", this.draw, { passive: true });
        this.scroller.addEventListener("pointermove", (event) => this.hover(event));
        this.scroller.addEventListener("pointerleave", () => this.hover(null));
        this.scroller.addEventListener("click", (event) => {
            const frame = this.hit(event);
            if (frame < 0) return;
            this.choose(frame);
            this.zoom(frame === this.zoomed && this.tree.parent[frame] >= 0 ? this.tree.parent[frame] : frame);
        });
        this.scroller.addEventListener("dblclick", () => this.chosen >= 0 && this.options.onOpen?.(this.nameOf(this.chosen)));
        this.scroller.addEventListener("keydown", (event) => {
            if (!event.ctrlKey && !event.metaKey && !event.altKey && this.key(event)) {
                event.preventDefault();
                event.stopPropagation();
            }
        });
        this.scroller.addEventListener("focus", () => { if (this.chosen < 0 && this.tree?.size) this.choose(this.zoomed); });
        this.sized = new ResizeObserver(() => this.fitScroller());
        this.sized.observe(this.scroller);
        this.forget = onTheme(this.draw);
    }

    close() {
        this.sized.disconnect();
        this.forget();
    }

    set(names, rows, { unit, isDiff = false, path = "" }) {
        this.tree = layOut(names, rows, isDiff);
        this.unit = unit;
        this.zoomed = this.tree.size ? frameAt(this.tree, path) : 0;
        this.chosen = -1;
        this.hovered = -1;
        this.tip.hidden = true;
        this.item.textContent = this.tree.size ? this.describe(this.zoomed).join(", ") : "nothing";
        this.search(this.searched ?? "");
        this.fitScroller();
    }

    nameOf(frame) {
        return this.tree.names[this.tree.name[frame]] ?? "";
    }

    fitScroller() {
        const deep = (this.tree?.levels.length ?? 0) * ROW + 4;
        this.element.style.setProperty("--deep", `${deep}px`);
        this.spacer.style.height = `${Math.max(0, deep)}px`;
        this.draw();
    }

    /** Share of all that frames of that name have, each stack counted once. */
    search(text) {
        this.searched = text;
        const tree = this.tree;
        this.matches = null;
        let share = 0;
        if (text && tree) {
            const wanted = text.toLowerCase();
            const hits = tree.names.map((name) => name.toLowerCase().includes(wanted));
            const under = new Uint8Array(tree.size);
            for (let i = 0; i < tree.size; i++) {
                const above = tree.parent[i] >= 0 && under[tree.parent[i]];
                const isHit = hits[tree.name[i]] && (i > 0 || tree.levels.length === 1);
                if (isHit && !above) share += tree.width[i];
                under[i] = above || isHit ? 1 : 0;
            }
            this.matches = hits;
        }
        this.draw();
        return share;
    }

    zoom(frame) {
        if (frame === this.zoomed) return;
        this.zoomed = frame;
        this.options.onZoom?.(pathOf(this.tree, frame));
        const y = this.rowTop(this.tree.depth[frame]);
        if (y < this.scroller.scrollTop || y > this.scroller.scrollTop + this.scroller.clientHeight - ROW) this.scroller.scrollTop = Math.max(0, y - 60);
        this.draw();
    }

    choose(frame) {
        const tree = this.tree;
        this.chosen = frame;
        this.item.textContent = this.describe(frame).join(", ");
        this.item.setAttribute("aria-level", tree.depth[frame] + 1);
        const y = this.rowTop(tree.depth[frame]);
        if (y < this.scroller.scrollTop) this.scroller.scrollTop = y;
        else if (y + ROW > this.scroller.scrollTop + this.scroller.clientHeight) this.scroller.scrollTop = y + ROW - this.scroller.clientHeight;
        this.options.onSelect?.(frame);
        this.draw();
    }

    /** A frame in words: its name, its share, its values. */
    describe(frame) {
        const tree = this.tree;
        const value = (number) => format.value(this.unit, number);
        const name = tame(this.nameOf(frame));
        if (!tree.isDiff)
            return [name, `${format.percent(tree.total[frame] / tree.sumA)} · ${value(tree.total[frame])}`, `self ${value(tree.self[frame])}`];
        const a = tree.sumA ? tree.total[frame] / tree.sumA : 0;
        const b = tree.sumB ? tree.totalB[frame] / tree.sumB : 0;
        const points = (b - a) * 100;
        return [name, `A ${format.percent(a)} · ${value(tree.total[frame])}`, `B ${format.percent(b)} · ${value(tree.totalB[frame])}`,
            `${points >= 0 ? "+" : "−"}${Math.abs(points).toFixed(1)} points in B`];
    }

    rowTop(depth) {
        return this.options.up ? (this.tree.levels.length - 1 - depth) * ROW : depth * ROW;
    }

    key(event) {
        const tree = this.tree;
        if (!tree?.size) return false;
        const at = this.chosen < 0 ? this.zoomed : this.chosen;
        const isWide = (frame) => frame !== undefined && this.widthOf(frame) >= 1;
        const level = tree.levels[tree.depth[at]];
        const place = level.indexOf(at);
        const down = this.options.up ? "ArrowUp" : "ArrowDown";
        const up = this.options.up ? "ArrowDown" : "ArrowUp";
        let next = -1;
        if (event.key === down) next = (tree.levels[tree.depth[at] + 1] ?? []).find((frame) => tree.parent[frame] === at) ?? at;
        else if (event.key === up) next = tree.parent[at] >= 0 ? tree.parent[at] : at;
        else if (event.key === "ArrowRight") next = isWide(level[place + 1]) ? level[place + 1] : at;
        else if (event.key === "ArrowLeft") next = isWide(level[place - 1]) ? level[place - 1] : at;
        else if (event.key === "Home") next = this.zoomed;
        else if (event.key === "Enter" || event.key === " ") this.zoom(at);
        else if (event.key === "s") this.options.onOpen?.(this.nameOf(at));
        else if (event.key === "Escape" || event.key === "Backspace") {
            if (this.zoomed === 0) return false;
            this.zoom(event.key === "Escape" ? 0 : Math.max(0, tree.parent[this.zoomed]));
        } else return false;
        if (next >= 0) this.choose(next);
        return true;
    }

    // Places: x of the window = (left - left of the zoomed) / width of the zoomed * width of the canvas. Ancestors of the zoomed fill the width.
    scale() {
        return this.canvas.clientWidth / Math.max(this.tree.width[this.zoomed], 1e-12);
    }

    widthOf(frame) {
        return this.tree.width[frame] * this.scale();
    }

    hit(event) {
        const tree = this.tree;
        if (!tree?.size) return -1;
        const box = this.canvas.getBoundingClientRect();
        const line = Math.floor((event.clientY - box.top + this.scroller.scrollTop) / ROW);
        const depth = this.options.up ? tree.levels.length - 1 - line : line;
        const level = tree.levels[depth];
        if (!level) return -1;
        const x = tree.left[this.zoomed] + (event.clientX - box.left) / this.scale();
        let low = 0;
        let high = level.length - 1;
        while (low < high) {
            const middle = (low + high + 1) >> 1;
            if (tree.left[level[middle]] <= x) low = middle;
            else high = middle - 1;
        }
        const frame = level[low];
        return x >= tree.left[frame] && x <= tree.left[frame] + tree.width[frame] ? frame : -1;
    }

    hover(event) {
        const frame = event ? this.hit(event) : -1;
        if (frame !== this.hovered) {
            this.hovered = frame;
            this.tip.hidden = frame < 0;
            if (frame >= 0) fill(this.tip, this.describe(frame).map((line, i) => h(i ? "div" : "b", {}, line)));
            this.draw();
        }
        this.scroller.style.cursor = frame >= 0 ? "pointer" : "default";
        if (frame < 0) return;
        const box = this.element.getBoundingClientRect();
        const x = event.clientX - box.left;
        const y = event.clientY - box.top;
        const wide = this.tip.offsetWidth;
        this.tip.style.left = `${Math.max(0, Math.min(x + 12, box.width - wide - 4))}px`;
        this.tip.style.top = `${y + (y > box.height - 90 ? -this.tip.offsetHeight - 10 : 16)}px`;
    }

    paint() {
        const { context, width, height } = prepare(this.canvas);
        const tree = this.tree;
        if (!tree?.size || !width) return;
        const scale = this.scale();
        const from = tree.left[this.zoomed];
        const to = from + tree.width[this.zoomed];
        const top = this.scroller.scrollTop;
        const first = Math.max(0, Math.floor(top / ROW));
        const last = Math.min(tree.levels.length - 1, Math.ceil((top + height) / ROW));
        const text = colour("on-frame");
        const same = colour("same");
        context.font = FONT;
        context.textBaseline = "middle";
        const letter = context.measureText("m").width;
        for (let line = first; line <= last; line++) {
            const depth = this.options.up ? tree.levels.length - 1 - line : line;
            const level = tree.levels[depth];
            const y = line * ROW - top;
            let low = 0;
            let high = level.length;
            while (low < high) { // the first frame whose end is in sight
                const middle = (low + high) >> 1;
                if (tree.left[level[middle]] + tree.width[level[middle]] <= from) low = middle + 1;
                else high = middle;
            }
            let painted = -1; // the last pixel that is taken: narrow frames share one
            for (let i = low; i < level.length; i++) {
                const frame = level[i];
                if (tree.left[frame] >= to) break;
                let x = (tree.left[frame] - from) * scale;
                const end = Math.min(width, x + tree.width[frame] * scale);
                x = Math.max(0, x);
                if (end <= painted) continue;
                const wide = Math.max(end - x, 0.5);
                painted = wide < 1 ? Math.floor(x) + 1 : end;
                const name = tree.names[tree.name[frame]] ?? "";
                const isHit = !this.matches || this.matches[tree.name[frame]];
                if (depth === 0 && frame === 0 && !this.options.up) context.fillStyle = same;
                else if (tree.isDiff) context.fillStyle = diffColour(tree.sumA ? tree.total[frame] / tree.sumA : 0, tree.sumB ? tree.totalB[frame] / tree.sumB : 0);
                else context.fillStyle = frameColour(name);
                context.globalAlpha = isHit ? (depth < tree.depth[this.zoomed] ? 0.55 : 1) : 0.25;
                context.fillRect(x, y, wide > 2 ? wide - 0.6 : wide, ROW - 1);
                if (wide > 24) {
                    context.globalAlpha = 1;
                    context.fillStyle = isHit && depth >= tree.depth[this.zoomed] ? text : colour("text");
                    const shown = fit(tame(name), wide - 8, letter);
                    if (shown) context.fillText(shown, x + 4, y + ROW / 2);
                }
                if (frame === this.chosen || frame === this.hovered) {
                    context.globalAlpha = 1;
                    context.strokeStyle = colour(frame === this.chosen ? "accent" : "text");
                    context.lineWidth = frame === this.chosen ? 2 : 1;
                    context.strokeRect(x + 1, y + 1, Math.max(1, wide - 2.6), ROW - 3);
                }
            }
        }
        context.globalAlpha = 1;
    }
}

/** The graph as an SVG file: whole, at its zoom, 1 200 wide. */
export function toSvg(flame, title) {
    const tree = flame.tree;
    const wide = 1200;
    const scale = wide / tree.width[flame.zoomed];
    const from = tree.left[flame.zoomed];
    const escape = (text) => tame(text, 500).replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
    const high = tree.levels.length * 17 + 30;
    const out = [`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${wide} ${high}" width="${wide}" height="${high}" font-family="monospace" font-size="11"><rect width="100%" height="100%" fill="#fff"/><text x="4" y="15" font-size="13">${escape(title)}</text>`];
    const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const rgb = new Map();
    const plain = (paint) => { // OKLCH as other programs read it
        if (!rgb.has(paint)) {
            probe.fillStyle = paint;
            probe.fillRect(0, 0, 1, 1);
            const [r, g, b] = probe.getImageData(0, 0, 1, 1).data;
            rgb.set(paint, `rgb(${r},${g},${b})`);
        }
        return rgb.get(paint);
    };
    for (let frame = 0; frame < tree.size; frame++) {
        const x = Math.max(0, (tree.left[frame] - from) * scale);
        const end = Math.min(wide, (tree.left[frame] + tree.width[frame] - from) * scale);
        if (end - x < 0.3) continue;
        const name = flame.nameOf(frame);
        const paint = tree.isDiff ? diffColour(tree.total[frame] / (tree.sumA || 1), tree.totalB[frame] / (tree.sumB || 1)) : frameColour(name);
        const y = 24 + (flame.options.up ? tree.levels.length - 1 - tree.depth[frame] : tree.depth[frame]) * 17;
        out.push(`<g><title>${escape(flame.describe(frame).join("\n"))}</title><rect x="${x.toFixed(2)}" y="${y}" width="${Math.max(0.3, end - x - 0.4).toFixed(2)}" height="16" fill="${plain(paint)}"/>`,
            end - x > 24 ? `<text x="${(x + 3).toFixed(1)}" y="${y + 12}">${escape(fit(tame(name), end - x - 6, 6.7))}</text>` : "", "</g>");
    }
    out.push("</svg>\n");
    return out.join("");
}
