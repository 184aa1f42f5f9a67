// SPDX-License-Identifier: Apache-2.0
// One span, whole: what it was doing, attributes, events, links, resource, raw JSON.

import { h, copy, tame } from "./dom.js";
import * as format from "./format.js";

const VALUE_MOST = 4000;
const ROWS_MOST = 500;
const RAW_MOST = 200000;

/** An AnyValue of OTLP/JSON as text. */
export function text(value, depth = 0) {
    if (!value || typeof value !== "object") return "";
    if (depth > 8) return "…";
    if ("stringValue" in value) return String(value.stringValue);
    if ("arrayValue" in value) return `[${(value.arrayValue?.values ?? []).slice(0, 200).map((one) => text(one, depth + 1)).join(", ")}]`;
    if ("kvlistValue" in value)
        return `{${(value.kvlistValue?.values ?? []).slice(0, 200).map((pair) => `${pair.key}: ${text(pair.value, depth + 1)}`).join(", ")}}`;
    const scalar = value.intValue ?? value.doubleValue ?? value.boolValue ?? value.bytesValue;
    return scalar === undefined ? "" : String(scalar);
}

function attributes(pairs, onFilter) {
    if (!pairs?.length) return h("p", { class: "muted" }, "none");
    return h("dl", { class: "pairs" }, pairs.slice(0, ROWS_MOST).map((pair) => {
        const value = text(pair.value);
        const shown = tame(value, VALUE_MOST);
        return [h("dt", { title: tame(pair.key) }, tame(pair.key, 120)),
            h("dd", {}, h("span", { class: "value" }, shown || h("span", { class: "muted" }, "empty")),
                onFilter && value.length < 200 && h("button", { type: "button", class: "quiet mini", title: "Traces with this attribute",
                    "aria-label": `Traces with ${tame(pair.key, 60)} = ${tame(value, 60)}`, onclick: () => onFilter(`${pair.key}=${value}`) }, "filter"))];
    }), pairs.length > ROWS_MOST && h("dt", {}, `and ${pairs.length - ROWS_MOST} more`));
}

const section = (title, number, content, open) =>
    h("details", { open }, h("summary", {}, title, number !== null && h("span", { class: "muted" }, ` ${number}`)), content);

/** How the span spent its time, as a bar with its words. */
export function timeBar(bar) {
    const parts = [["cpu", "on CPU", bar.onCpu], ["children", "in children", bar.children], ["unexplained", "unexplained", bar.unexplained]];
    const sum = parts.reduce((all, part) => all + Math.max(0, part[2] ?? 0), 0);
    if (!sum) return null;
    const pieces = parts.filter((part) => part[2] > 0).map(([name, , ns]) => {
        const piece = h("i", { class: name });
        piece.style.width = `${(100 * ns) / sum}%`;
        return piece;
    });
    return h("div", { class: "time-bar" }, h("div", { class: "track", "aria-hidden": "true" }, pieces),
        h("p", {}, parts.map(([name, words, ns]) => h("span", {}, h("i", { class: `key ${name}` }), `${words} `, h("b", {}, format.duration(ns ?? 0)),
            h("span", { class: "muted" }, ` ${format.percent((ns ?? 0) / sum)}`)))));
}

/** The drawer. actions: {filter(text), trace(id, span), goTo(spanId), baseline()…} */
export function spanDetails(answer, traceStart, actions) {
    const span = answer.span;
    const start = span.startTimeUnixNano;
    const ns = Number(BigInt(span.endTimeUnixNano ?? 0) - BigInt(start ?? 0));
    const status = Number(span.status?.code ?? 0) || ({ STATUS_CODE_OK: 1, STATUS_CODE_ERROR: 2 })[span.status?.code] || 0;
    const service = text((answer.resource?.attributes ?? []).find((pair) => pair.key === "service.name")?.value) || "unknown service";
    const offset = (time) => `+${format.duration(Number(BigInt(time ?? 0) - BigInt(traceStart)))}`;
    const raw = JSON.stringify({ span, resource: answer.resource, scope: answer.scope }, null, 2);
    return h("div", { class: "drawer" },
        h("header", {}, h("h2", {}, tame(span.name, 300) || "(no name)"),
            h("p", { class: "muted" }, h("b", {}, tame(service, 120)), ` · ${format.kind(span.kind)} · `, format.duration(ns), ` · at ${offset(start)}`),
            status === 2 && h("p", { class: "alert" }, "Error", span.status.message && `: ${tame(span.status.message, 2000)}`),
            answer.bar && timeBar(answer.bar),
            h("p", { class: "actions" },
                span.parentSpanId && h("button", { type: "button", class: "quiet", onclick: () => actions.goTo(span.parentSpanId) }, "Go to parent"),
                actions.compare && h("button", { type: "button", class: "quiet", title: "Slow spans of this name against the others", onclick: () => actions.compare(service, span.name) }, "Slow against fast"))),
        section("Attributes", span.attributes?.length ?? 0, attributes(span.attributes, actions.filter), true),
        span.events?.length ? section("Events", span.events.length, h("ul", { class: "events" }, span.events.slice(0, ROWS_MOST).map((event) =>
            h("li", {}, h("p", {}, h("b", {}, tame(event.name, 300)), h("span", { class: "muted" }, ` ${offset(event.timeUnixNano)}`)), event.attributes?.length ? attributes(event.attributes) : null))), true) : null,
        span.links?.length ? section("Links", span.links.length, h("ul", { class: "events" }, span.links.slice(0, ROWS_MOST).map((link) =>
            h("li", {}, h("a", { href: actions.trace(link.traceId, link.spanId), class: "mono" }, tame(link.traceId, 40)), link.attributes?.length ? attributes(link.attributes) : null))), true) : null,
        section("Resource", answer.resource?.attributes?.length ?? 0, attributes(answer.resource?.attributes, actions.filter), false),
        section("Scope and ids", null, attributes([["scope", answer.scope?.name], ["scope version", answer.scope?.version], ["trace id", span.traceId], ["span id", span.spanId],
            ["parent span id", span.parentSpanId], ["start", start && format.iso(start)], ["end", span.endTimeUnixNano && format.iso(span.endTimeUnixNano)], ["trace state", span.traceState]]
            .filter(([, value]) => value).map(([key, value]) => ({ key, value: { stringValue: value } }))), false),
        section("Raw JSON", null, h("div", {}, h("button", { type: "button", onclick: (event) => copy(raw).then((done) => { event.target.textContent = done ? "Copied" : "Not copied"; }) }, "Copy"),
            h("pre", { tabindex: 0 }, raw.length > RAW_MOST ? `${raw.slice(0, RAW_MOST)}\n… cut` : raw)), false));
}
