// SPDX-License-Identifier: Apache-2.0
// The daemon's answers. A source has these methods; local.js has another one, for files.

export class Failure extends Error {
    constructor(status, message) {
        super(message);
        this.status = status;
    }
}

async function get(path, query, signal) {
    const text = query ? String(query) : "";
    let response;
    try {
        response = await fetch(`api/v1/${path}${text ? `?${text}` : ""}`, { signal, credentials: "same-origin" });
    } catch (error) {
        if (error.name === "AbortError") throw error;
        throw new Failure(0, "The daemon does not answer. Is it still running?");
    }
    const body = await response.json().catch(() => null);
    if (response.ok && body !== null) return body;
    throw new Failure(response.status, body?.error || `The daemon answered with status ${response.status}.`);
}

const id = encodeURIComponent;

export const remote = {
    isLocal: false,
    status: (signal) => get("status", null, signal),
    services: (signal) => get("services", null, signal),
    traces: (query, signal) => get("traces", query, signal),
    scatter: (query, signal) => get("scatter", query, signal),
    trace: (trace, signal) => get(`traces/${id(trace)}`, null, signal),
    rows: (trace, from, count, signal) =>
        get(`traces/${id(trace)}/rows`, new URLSearchParams({ from, count }), signal),
    find: (trace, q, signal) =>
        get(`traces/${id(trace)}/find`, new URLSearchParams({ q, limit: 200 }), signal),
    span: (trace, span, signal) => get(`traces/${id(trace)}/spans/${id(span)}`, null, signal),
    flame: (query, signal) => get("flame", query, signal),
    diff: (query, signal) => get("diff", query, signal),
    spans: (query, signal) => get("spans", query, signal),
    pipelines: (signal) => get("pipelines", null, signal),
    node: (id, signal) => get("pipelines", new URLSearchParams({ node: id }), signal),
    download: (query) => `api/v1/download?${query}`,
    live: (query) => new EventSource(`api/v1/live?${query}`),
};

/** Trades the one-time token of the printed URL for a cookie. */
export async function login(token) {
    const response = await fetch("api/v1/session", {
        headers: { Authorization: `Bearer ${token}` }, credentials: "same-origin",
    });
    if (response.ok) return;
    const body = await response.json().catch(() => null);
    throw new Failure(response.status, body?.error || "The token of this address was not accepted.");
}
