// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them. Durations are nanoseconds, times unix nanoseconds in decimal strings.

const THIN = "\u2009";

function three(number) {
    const size = Math.abs(number);
    if (size >= 100 || Number.isInteger(number)) return number.toFixed(0);
    return number.toFixed(size >= 10 ? 1 : 2);
}

export function duration(ns) {
    const size = Math.abs(ns);
    if (!Number.isFinite(size)) return "–";
    if (size === 0) return "0";
    if (size < 999.5) return `${three(ns)} ns`;
    if (size < 999.5e3) return `${three(ns / 1e3)} µs`;
    if (size < 999.5e6) return `${three(ns / 1e6)} ms`;
    if (size < 60e9) return `${three(ns / 1e9)} s`;
    const seconds = Math.round(size / 1e9);
    const sign = ns < 0 ? "−" : "";
    if (seconds < 3600) return `${sign}${Math.floor(seconds / 60)} min ${seconds % 60} s`;
    if (seconds < 172800)
        return `${sign}${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
    return `${sign}${three(seconds / 86400)} days`;
}

export function count(number) {
    return Math.round(number).toString().replace(/\B(?=(\d{3})+$)/g, THIN);
}

/** 1 234 567 as 1.23 M. */
export function short(number) {
    const size = Math.abs(number);
    if (size < 1e4) return count(number);
    for (const [unit, scale] of [["k", 1e3], ["M", 1e6], ["G", 1e9], ["T", 1e12]])
        if (size < scale * 999.5) return `${three(number / scale)} ${unit}`;
    return number.toExponential(2);
}

export function bytes(number) {
    let size = number;
    for (const unit of ["B", "KiB", "MiB", "GiB", "TiB"]) {
        if (Math.abs(size) < 1000 || unit === "TiB") return `${three(size)} ${unit}`;
        size /= 1024;
    }
    return "";
}

export function percent(share) {
    if (!Number.isFinite(share)) return "–";
    const value = share * 100;
    if (value === 0 || value === 100) return `${value} %`;
    if (Math.abs(value) < 0.1) return "< 0.1 %";
    return `${value.toFixed(Math.abs(value) < 10 ? 1 : 0)} %`;
}

export function rate(perSecond) {
    if (perSecond >= 1 || perSecond === 0) return `${short(three(perSecond) * 1)}/s`;
    return `${three(perSecond * 60)}/min`;
}

/** A profile's value in its unit. */
export function value(unit, number) {
    if (unit === "nanoseconds" || unit === "ns") return duration(number);
    if (unit === "bytes") return bytes(number);
    if (!unit || unit === "count") return short(number);
    return `${short(number)} ${unit}`;
}

export const milliseconds = (ns) => Number(BigInt(ns) / 1000n) / 1000;
export const nanoseconds = (ms) => String(BigInt(Math.round(ms * 1000)) * 1000n);

const two = (number) => String(number).padStart(2, "0");

export function clock(ms, withFraction = true) {
    const date = new Date(ms);
    const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
    return withFraction ? `${time}.${String(date.getMilliseconds()).padStart(3, "0")}` : time;
}

export function day(ms) {
    const date = new Date(ms);
    return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** The time of day, with the date unless it is today. */
export function time(ns, withFraction = true) {
    const ms = milliseconds(ns);
    const text = clock(ms, withFraction);
    return day(ms) === day(Date.now()) ? text : `${day(ms)} ${text}`;
}

export const iso = (ns) => new Date(milliseconds(ns)).toISOString();

export function plural(number, one, many = `${one}s`) {
    return `${count(number)} ${number === 1 ? one : many}`;
}

/** In percent, in steps of 5 above 10, since it is not known better. */
export function margin(samples) {
    const exact = 100 / Math.sqrt(samples);
    return samples ? (exact > 10 ? 5 * Math.ceil(exact / 5) : Math.ceil(exact)) : 100;
}

/** "12 samples, ± 30 %": what a share of a call tree can be trusted for. */
export function confidence(samples, most) {
    if (!samples) return "no samples";
    return `${plural(samples, "sample")}, ± ${most ?? margin(samples)} %`;
}

/** "250ms", "1.5 s", "2m" or plain nanoseconds; NaN if it is none. */
export function parseDuration(text) {
    const found = /^\s*([\d.]+)\s*(ns|us|µs|ms|s|m|min|h)?\s*$/.exec(text);
    if (!found) return NaN;
    const scale = { ns: 1, us: 1e3, µs: 1e3, ms: 1e6, s: 1e9, m: 6e10, min: 6e10, h: 36e11 };
    return Number(found[1]) * (scale[found[2]] ?? 1);
}

/** Ticks for an axis from a to b, about `wanted` of them at round numbers. */
export function ticks(a, b, wanted) {
    const rough = (b - a) / Math.max(1, wanted);
    if (!(rough > 0)) return [];
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].find((factor) => factor * power >= rough) * power;
    const out = [];
    for (let at = Math.ceil(a / step) * step; at <= b; at += step) out.push(at);
    return out;
}

const KINDS = ["unspecified", "internal", "server", "client", "producer", "consumer"];
export const kind = (number) => (typeof number === "string" ? number : KINDS[number] ?? "unspecified");
