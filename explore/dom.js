// SPDX-License-Identifier: Apache-2.0
// Elements by calls. Text only ever becomes text nodes: nothing here reads markup, and style attributes are never set.

/** h("a", {class, href, onclick, dataset…}, children…): children are nodes, strings, null or arrays. */
export function h(tag, properties, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties || {})) {
        if (value === null || value === undefined || value === false) continue;
        if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
        else if (name === "value" || name === "checked" || name === "disabled") element[name] = value;
        else element.setAttribute(name, value === true ? "" : String(value));
    }
    add(element, children);
    return element;
}

function add(element, children) {
    for (const child of children) {
        if (Array.isArray(child)) add(element, child);
        else if (child !== null && child !== undefined && child !== false)
            element.append(child instanceof Node ? child : String(child));
    }
}

/** Replaces what is in the element. */
export function fill(element, ...children) {
    element.replaceChildren();
    add(element, children);
    return element;
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(tag, attributes, ...children) {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
    add(element, children);
    return element;
}

/** Names from telemetry as a person can read them: control characters and marks that turn the
 * direction of text are shown as a box; long ones are cut in the middle. */
export function tame(text, most = 300) {
    let out = String(text ?? "").replace(
        /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g, "\u25a1");
    out = out.replace(/(\p{M}{2})\p{M}+/gu, "$1");
    if (out.length > most) out = `${out.slice(0, most - 40)}…${out.slice(-39)}`.replace(/[\ud800-\udbff](?=…)|(?<=…)[\udc00-\udfff]/g, "");
    return out;
}

/** A line that can be copied. */
export function copyable(text) {
    const button = h("button", { type: "button", class: "quiet", onclick: () => {
        copy(text).then((done) => { button.textContent = done ? "Copied" : "Select and copy"; });
    } }, "Copy");
    return h("div", { class: "copyable" }, h("code", { tabindex: 0 }, text), button);
}

export async function copy(text) {
    try {
        await navigator.clipboard.writeText(text);
        return true;
    } catch {
        return false;
    }
}

/** Saves bytes or text that the page has, as a file. */
export function save(name, type, content) {
    const url = URL.createObjectURL(new Blob([content], { type }));
    const link = h("a", { href: url, download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/** Runs `work` once per frame however often it is called. */
export function onFrame(work) {
    let asked = 0;
    return () => {
        if (!asked) asked = requestAnimationFrame(() => { asked = 0; work(); });
    };
}

export function debounce(work, ms) {
    let timer = 0;
    return (...values) => {
        clearTimeout(timer);
        timer = setTimeout(() => work(...values), ms);
    };
}

/** What an empty view says: a heading, sentences, lines to copy. */
export function empty(title, ...lines) {
    return h("div", { class: "empty" }, h("h2", {}, title),
        lines.map((line) => (typeof line === "string" ? h("p", {}, line) : line)));
}
