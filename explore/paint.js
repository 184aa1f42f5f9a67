// SPDX-License-Identifier: Apache-2.0
// What canvases share: sharp pixels, the theme's colours, colours of services and of functions.

const probe = document.createElement("i");
let palette = new Map();

/** A colour of theme.css, as the theme that is on has it. */
export function colour(name) {
    let found = palette.get(name);
    if (!found) {
        if (!probe.isConnected) {
            probe.hidden = true;
            document.body.append(probe);
        }
        probe.style.color = `var(--${name})`;
        found = getComputedStyle(probe).color;
        palette.set(name, found);
    }
    return found;
}

const watchers = new Set();

/** Calls `draw` when the theme changes, until the function that it returns is called. */
export function onTheme(draw) {
    watchers.add(draw);
    return () => watchers.delete(draw);
}

export function themeChanged() {
    palette = new Map();
    for (const draw of watchers) draw();
}

export function isDark() {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

/** Gives the canvas as many pixels as its box has on this screen; returns its context and size in CSS pixels. */
export function prepare(canvas) {
    const width = canvas.clientWidth;
    const height = canvas.clientHeight;
    const scale = window.devicePixelRatio || 1;
    const wide = Math.max(1, Math.round(width * scale));
    const high = Math.max(1, Math.round(height * scale));
    if (canvas.width !== wide || canvas.height !== high) {
        canvas.width = wide;
        canvas.height = high;
    }
    const context = canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    return { context, width, height };
}

export function hash(text) {
    let sum = 2166136261;
    for (let i = 0; i < text.length && i < 200; i++) sum = Math.imul(sum ^ text.charCodeAt(i), 16777619);
    sum ^= sum >>> 15;
    return Math.imul(sum, 2246822519) >>> 0;
}

const HUES = [250, 150, 305, 85, 195, 350, 120, 275, 60, 220, 325, 175];

const hues = new Map();
const taken = new Set();

/** Of a service, the same on every view; services differ while there are few. */
export function serviceHue(name) {
    let hue = hues.get(name);
    if (hue === undefined) {
        let at = hash(name) % HUES.length;
        while (taken.has(at)) at = (at + 5) % HUES.length;
        taken.add(at);
        if (taken.size === HUES.length) taken.clear();
        hue = HUES[at];
        if (hues.size > 5000) hues.clear();
        hues.set(name, hue);
    }
    return hue;
}

export function serviceColour(hue) {
    return isDark() ? `oklch(0.68 0.11 ${hue})` : `oklch(0.66 0.12 ${hue})`;
}

export function serviceColours(names) {
    return new Map(names.map((name) => [name, serviceColour(serviceHue(name))]));
}

/** What a function belongs to: its package, module or file, without its own name. */
function packageOf(name) {
    const slash = name.lastIndexOf("/");
    const dot = name.indexOf(".", slash + 1);
    if (slash >= 0) return dot > 0 ? name.slice(0, dot) : name.slice(0, slash);
    const colons = name.indexOf("::");
    if (colons > 0) return name.slice(0, colons);
    return dot > 0 ? name.slice(0, dot) : name;
}

const frames = new Map();

/** Warm colours by package, with a slight difference by name. */
export function frameColour(name) {
    let found = frames.get(name);
    if (!found) {
        const hue = 28 + (hash(packageOf(name)) % 66);
        const light = 0.76 + ((hash(name) >>> 8) % 100) / 1000;
        found = `oklch(${light.toFixed(3)} 0.115 ${hue})`;
        if (frames.size > 20000) frames.clear();
        frames.set(name, found);
    }
    return found;
}

/** Of a difference of shares: more is red, less is blue, by how much relative to the larger. */
export function diffColour(shareA, shareB) {
    const larger = Math.max(shareA, shareB);
    if (!(larger > 0)) return colour("same");
    const change = (shareB - shareA) / larger;
    const strength = Math.round(Math.min(1, Math.abs(change) * 1.2) * 100);
    return `color-mix(in oklab, ${colour(change > 0 ? "more" : "less")} ${strength}%, ${colour("same")})`;
}

/** Cuts the text to the width; one measure for all frames since their font has one width. */
export function fit(text, width, letter) {
    const most = Math.floor(width / letter);
    if (text.length <= most) return text;
    return most < 3 ? "" : `${text.slice(0, most - 1)}…`;
}
