// SPDX-License-Identifier: Apache-2.0
// The rows of a trace that are known, in windows from the source, and which of them are in sight while some are collapsed.
// Row: see the indices below, which are those of the daemon's answer.

export const ROW = 0, ID = 1, PARENT = 2, DEPTH = 3, SUBTREE = 4, SERVICE = 5, NAME = 6, START = 7, LENGTH = 8, KIND = 9,
    STATUS = 10, EVENTS = 11, LINKS = 12, SAMPLES = 13, CPU = 14, SELF = 15, CRITICAL = 16;

const WINDOW = 500;
const WINDOWS_KEPT = 80;

export class Rows {
    constructor(source, id, signal, onChange) {
        this.source = source;
        this.id = id;
        this.signal = signal;
        this.onChange = onChange;
        this.windows = new Map(); // number → {rows, events}, oldest use first
        this.asked = new Map(); // number → promise
        this.total = 0;
        this.failed = null;
    }

    /** The row if it is known; asks for it otherwise. */
    at(row) {
        const number = Math.floor(row / WINDOW);
        const found = this.windows.get(number);
        if (found) return found.rows[row - number * WINDOW];
        this.ask(number);
        return undefined;
    }

    eventsOf(row) {
        return this.windows.get(Math.floor(row / WINDOW))?.events[row];
    }

    ask(number) {
        let promise = this.asked.get(number);
        if (promise) return promise;
        promise = this.source.rows(this.id, number * WINDOW, WINDOW, this.signal).then((answer) => {
            this.total = answer.total;
            this.windows.set(number, { rows: answer.rows, events: answer.events ?? {} });
            while (this.windows.size > WINDOWS_KEPT) this.windows.delete(this.windows.keys().next().value);
            this.asked.delete(number);
            this.onChange();
        }, (error) => {
            if (error.name === "AbortError") return;
            this.failed = error;
            setTimeout(() => { this.asked.delete(number); this.onChange(); }, 1500);
        });
        this.asked.set(number, promise);
        return promise;
    }

    async fetch(row) {
        for (let i = 0; i < 3 && !this.windows.has(Math.floor(row / WINDOW)); i++) await this.ask(Math.floor(row / WINDOW));
        return this.at(row);
    }

    /** Known rows, in order of their windows. */
    * known() {
        for (const { rows } of this.windows.values()) yield* rows;
    }
}

/** Rows that are not hidden below a collapsed one. Lines are numbers of what is in sight, from 0. */
export class Folds {
    constructor() {
        this.folded = new Map(); // row → rows of its subtree, itself included
        this.total = 0;
        this.outer = []; // [row, hidden, hidden before], of those that are in sight
    }

    rebuild() {
        this.outer = [];
        let end = -1;
        let before = 0;
        for (const [row, size] of [...this.folded].sort((a, b) => a[0] - b[0])) {
            if (row < end) continue;
            this.outer.push([row, size - 1, before]);
            before += size - 1;
            end = row + size;
        }
        this.hidden = before;
    }

    get lines() {
        return Math.max(0, this.total - (this.hidden ?? 0));
    }

    /** The last fold whose row passes the test. */
    last(test) {
        let low = 0;
        let high = this.outer.length;
        while (low < high) {
            const middle = (low + high) >> 1;
            if (test(this.outer[middle])) low = middle + 1;
            else high = middle;
        }
        return this.outer[low - 1];
    }

    rowOf(line) {
        const fold = this.last(([row, , before]) => row - before < line);
        return fold ? line + fold[1] + fold[2] : line;
    }

    lineOf(row) {
        const fold = this.last(([at]) => at < row);
        if (!fold) return row;
        const [at, hidden, before] = fold;
        return row <= at + hidden ? at - before : row - hidden - before;
    }

    toggle(row, size, fold = !this.folded.has(row)) {
        if (fold && size > 1) this.folded.set(row, size);
        else this.folded.delete(row);
        this.rebuild();
    }

    /** Unfolds what hides the row. */
    reveal(row) {
        for (const [at, size] of this.folded) if (row > at && row < at + size) this.folded.delete(at);
        this.rebuild();
    }
}
