// SPDX-License-Identifier: Apache-2.0
// The page: which view the URL's fragment names, keys, theme, files that are dropped. All state of a view is in the
// fragment, "#/trace/ID?span=…", so that any address can be passed on.

import { h, fill, empty, tame } from "./dom.js";
import * as format from "./format.js";
import { remote, login } from "./api.js";
import { themeChanged, isDark } from "./paint.js";
import { openList } from "./list.js";
import { openTrace } from "./trace.js";
import { openServices, openService, openDiff } from "./service.js";
import { openPipelines } from "./pipelines.js";

const $ = (name) => document.getElementById(name);
const main = $("main");

const app = {
    source: remote,
    local: null, // the source of the files that are open
    status: null,

    /** Goes to another view; the way back is the browser's. */
    go(path, query) {
        const text = query ? String(query) : "";
        location.hash = `#/${path}${text ? `?${text}` : ""}`;
    },

    /** Writes state into the address without a new step of history. null removes a key. */
    replace(changes) {
        const route = parse(location.hash);
        for (const [key, value] of Object.entries(changes)) {
            route.query.delete(key);
            if (Array.isArray(value)) value.forEach((one) => route.query.append(key, one));
            else if (value !== null && value !== undefined && value !== "") route.query.set(key, value);
        }
        const text = route.query.toString();
        history.replaceState(null, "", `#/${route.path.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`);
        if (shown) shown.address = location.hash;
    },

    title(text) {
        document.title = text ? `${tame(text, 80)} – spanflame` : "spanflame";
    },

    toast(text) {
        const toast = $("toast");
        toast.textContent = text;
        toast.classList.add("shown");
        clearTimeout(app.toastTimer);
        app.toastTimer = setTimeout(() => toast.classList.remove("shown"), 4000);
    },

    /** What a request that failed looks like, in the place where its answer would be. */
    failed(container, error, again) {
        if (error.name === "AbortError") return;
        const words = {
            0: "No answer", 401: "This page asks for a login", 403: "Not allowed from here",
            404: "Not kept here", 421: "Not under this name", 503: "Too much at once",
        };
        fill(container, empty(words[error.status] ?? "That did not work", error.message,
            error.status === 401 &&
                "Open the address that the daemon printed at its start, with its #token=… at the end.",
            again && h("button", { type: "button", onclick: again }, "Try again")));
    },

    setStatus(status) {
        app.status = status;
        const share = status.maxBytes ? status.usedBytes / status.maxBytes : 0;
        const kept = $("kept");
        kept.textContent = status.traces || status.samples
            ? `${format.plural(status.traces, "trace")} · ${format.bytes(status.usedBytes)} of ${format.bytes(status.maxBytes)}`
            : "";
        const lost = Object.entries(status.notKept ?? {}).filter(([, number]) => number > 0);
        kept.title = [
            `${format.plural(status.spans, "span")} and ${format.plural(status.samples, "sample")} are kept (${format.percent(share)} of the room).`,
            status.evictedTraces && `${format.plural(status.evictedTraces, "older trace")} made room.`,
            lost.length > 0 && `Not kept: ${lost.map(([why, number]) => `${format.count(number)} (${why})`).join(", ")}.`,
            `spanflame ${status.version} on ${status.hostName}`,
        ].filter(Boolean).join("\n");
    },
};

const views = {
    traces: openList,
    trace: openTrace,
    services: openServices,
    service: openService,
    diff: openDiff,
    pipelines: openPipelines,
    file: openList,
};

let shown = null; // {name, key, view, address}

function parse(hash) {
    const text = hash.replace(/^#\/?/, "");
    const mark = text.indexOf("?");
    const path = (mark < 0 ? text : text.slice(0, mark)).split("/").filter(Boolean).map((part) => {
        try {
            return decodeURIComponent(part);
        } catch {
            return part;
        }
    });
    return { path: path.length ? path : ["traces"], query: new URLSearchParams(mark < 0 ? "" : text.slice(mark + 1)) };
}

function route() {
    if (shown && shown.address === location.hash) return;
    const to = parse(location.hash);
    const name = Object.hasOwn(views, to.path[0]) ? to.path[0] : "traces";
    const isLocal = name === "file" || to.query.get("from") === "file";
    if (isLocal && !app.local) {
        close();
        fill(main, empty("No file is open", "Files stay in the browser tab that opened them.",
            "Drop a file here: OTLP as JSON or protobuf (traces, profiles), or pprof."));
        mark("file");
        return;
    }
    app.source = isLocal ? app.local : remote;
    const key = `${name}/${to.path[1] ?? ""}/${isLocal}`;
    if (shown && shown.key === key && shown.view.update) {
        shown.address = location.hash;
        shown.view.update(to);
        return;
    }
    close();
    shown = { name, key, view: {}, address: location.hash };
    fill(main);
    main.className = `view-${name}`;
    app.title("");
    mark(isLocal ? "file" : { trace: "traces", service: "services", diff: "services" }[name] ?? name);
    shown.view = views[name](main, to, app) ?? {};
    main.scrollTop = 0;
}

function close() {
    shown?.view.close?.();
    shown = null;
}

function mark(name) {
    for (const link of document.querySelectorAll("header nav a")) {
        if (link.dataset.view === name) link.setAttribute("aria-current", "page");
        else link.removeAttribute("aria-current");
    }
}

// Keys ---------------------------------------------------------------------------------------------------------------

const GENERAL = [
    ["?", "this list"],
    ["g t · g s · g p", "go to traces, services, pipelines"],
    ["/", "filter or search"],
    ["o", "open a file"],
    ["l", "light, dark, or as the system has it"],
    ["Esc", "close, clear, or zoom out"],
];

function showKeys() {
    const dialog = $("keys");
    const table = (title, rows) => [h("h3", {}, title), h("dl", {}, rows.map(([keys, what]) =>
        [h("dt", {}, keys.split(" · ").map((one, i) => [i ? " · " : "", h("kbd", {}, one)])), h("dd", {}, what)]))];
    fill(dialog, h("h2", { id: "keys-title" }, "Keys"), table("Everywhere", GENERAL),
        (shown?.view.keyHelp ?? []).map(([title, rows]) => table(title, rows)),
        h("form", { method: "dialog" }, h("button", { class: "primary" }, "Close")));
    dialog.showModal();
}

let prefix = -Infinity; // when "g" was pressed

/** The second key after "g", before any view takes it. */
function onSecondKey(event) {
    const to = { t: "traces", s: "services", p: "pipelines" }[event.key];
    if (!to || event.timeStamp - prefix > 1500) return;
    prefix = -Infinity;
    app.go(to);
    event.preventDefault();
    event.stopPropagation();
}

function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || $("keys").open) return;
    const typing = event.target.closest("input, select, textarea, [contenteditable]");
    if (typing && typing.type !== "checkbox") {
        if (event.key === "Escape") typing.blur();
        return;
    }
    if (event.key === "g") prefix = event.timeStamp;
    else if (event.key === "?") showKeys();
    else if (event.key === "l") nextTheme();
    else if (event.key === "o") $("file").click();
    else if (event.key === "/") {
        const search = main.querySelector("[data-search]");
        if (!search) return;
        search.focus();
        search.select?.();
    } else if (!shown?.view.onKey?.(event)) return;
    event.preventDefault();
}

// Theme --------------------------------------------------------------------------------------------------------------

const THEMES = { "": ["◐", "Theme: as the system"], light: ["☀", "Theme: light"], dark: ["☾", "Theme: dark"] };

function setTheme(name) {
    if (name) document.documentElement.dataset.theme = name;
    else delete document.documentElement.dataset.theme;
    const [sign, words] = THEMES[name];
    $("theme").textContent = sign;
    $("theme").title = `${words} (l)`;
    $("theme").setAttribute("aria-label", words);
    themeChanged();
}

function stored() {
    try {
        const name = localStorage.getItem("spanflame.theme") ?? "";
        return Object.hasOwn(THEMES, name) ? name : "";
    } catch {
        return "";
    }
}

function nextTheme() {
    const now = document.documentElement.dataset.theme ?? "";
    const next = now === "" ? (isDark() ? "light" : "dark") : now === "dark" ? "light" : "";
    try {
        localStorage.setItem("spanflame.theme", next);
    } catch { /* not kept then */ }
    setTheme(next);
}

// Files --------------------------------------------------------------------------------------------------------------

async function openFiles(files) {
    if (!files.length) return;
    app.toast(`Reading ${files.length === 1 ? tame(files[0].name, 60) : `${files.length} files`} …`);
    try {
        const { readFiles } = await import("./local.js");
        app.local = await readFiles(files);
        $("file-link").hidden = false;
        app.toast(app.local.summary);
        const to = app.local.home();
        if (location.hash === to) {
            shown = null;
            route();
        } else location.hash = to;
    } catch (error) {
        app.toast(error.message);
    }
}

function watchDrops() {
    let depth = 0;
    const show = (on) => { $("drop").hidden = !on; };
    addEventListener("dragenter", (event) => {
        if (!event.dataTransfer?.types.includes("Files")) return;
        event.preventDefault();
        depth++;
        show(true);
    });
    addEventListener("dragover", (event) => event.preventDefault());
    addEventListener("dragleave", () => {
        depth = Math.max(0, depth - 1);
        if (!depth) show(false);
    });
    addEventListener("drop", (event) => {
        event.preventDefault();
        depth = 0;
        show(false);
        openFiles([...event.dataTransfer.files]);
    });
}

// Start --------------------------------------------------------------------------------------------------------------

async function start() {
    setTheme(stored());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", themeChanged);
    $("theme").addEventListener("click", nextTheme);
    $("help").addEventListener("click", showKeys);
    $("open-file").addEventListener("click", () => $("file").click());
    $("file").addEventListener("change", (event) => {
        openFiles([...event.target.files]);
        event.target.value = "";
    });
    $("skip").addEventListener("click", (event) => {
        event.preventDefault();
        main.focus();
    });
    addEventListener("keydown", onSecondKey, true);
    addEventListener("keydown", onKey);
    watchDrops();
    const token = /^#token=(.+)$/.exec(location.hash);
    if (token) {
        history.replaceState(null, "", "#/traces");
        try {
            await login(token[1]);
        } catch (error) {
            app.failed(main, error);
            return;
        }
    }
    addEventListener("hashchange", route);
    route();
    const ask = () => remote.status().then(app.setStatus, () => {});
    ask();
    setInterval(() => { if (!document.hidden) ask(); }, 15000);
}

start();
