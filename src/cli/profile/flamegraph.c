/* SPDX-License-Identifier: Apache-2.0 */
/* Lays out a call tree: children side by side, by name, above their parent. Frames too narrow to
 * see are left out. Main thread of a command. */
#include "src/cli/profile/flamegraph.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "src/base/mem.h"
#include "src/base/text_escape.h"
#include "src/cli/profile/profile_report.h"
#include "src/cli/profile/report_limits.h"
#include "src/cli/profile/value_unit.h"
#include "src/profiles/pprof/otlp_text.h"

/* Styles and the script for search and zoom, as elements of the SVG; neither refers to anything
 * outside it. Frames are groups of class "f" with the data that the script lays them out by: x
 * and w in parts of a million of the whole width. */
static const char flamegraph_head[] =
    "<style>text{font:12px sans-serif;fill:#111}.f{cursor:pointer}.f text{pointer-events:none;"
    "font-family:monospace;font-size:11px}.f:hover rect{stroke:#111}.m rect{fill:#b14fd6}"
    ".b{cursor:pointer;text-decoration:underline}</style>\n"
    "<script><![CDATA[\n"
    "'use strict';\n"
    "addEventListener('load', function () {\n"
    "  const svg = document.documentElement, WHOLE = 1e6, MARGIN = 10, LETTER = 6.7;\n"
    "  const width = svg.viewBox.baseVal.width - 2 * MARGIN;\n"
    "  const frames = Array.from(document.querySelectorAll('.f'), function (g) {\n"
    "    return {g: g, x: +g.dataset.x, w: +g.dataset.w, d: +g.dataset.d, rect: g.children[1],\n"
    "      text: g.children[2], name: g.dataset.n};\n"
    "  });\n"
    "  const matched = document.getElementById('matched');\n"
    "  let all = {x: 0, w: WHOLE, d: 0};\n"
    "  function zoom(to) {\n"
    "    const scale = width / to.w;\n"
    "    for (const f of frames) {\n"
    "      const above = f.d < to.d && f.x <= to.x && f.x + f.w >= to.x + to.w;\n"
    "      const inside = f.d >= to.d && f.x >= to.x && f.x + f.w <= to.x + to.w;\n"
    "      f.g.style.display = above || inside ? '' : 'none';\n"
    "      f.g.style.opacity = above ? 0.5 : 1;\n"
    "      const x = above ? MARGIN : MARGIN + (f.x - to.x) * scale;\n"
    "      const w = above ? width : f.w * scale;\n"
    "      const letters = Math.floor((w - 4) / LETTER);\n"
    "      f.rect.setAttribute('x', x);\n"
    "      f.rect.setAttribute('width', w);\n"
    "      f.text.setAttribute('x', x + 3);\n"
    "      f.text.textContent = letters < 3 ? '' : f.name.length <= letters ? f.name :\n"
    "        f.name.slice(0, letters - 2) + '..';\n"
    "    }\n"
    "    all = to;\n"
    "  }\n"
    "  function search(text) {\n"
    "    let find = null, sum = 0, end = 0;\n"
    "    try { find = text ? new RegExp(text) : null; } catch (e) { matched.textContent =\n"
    "      'not a regular expression'; return; }\n"
    "    const hits = frames.filter(function (f) {\n"
    "      const hit = find !== null && find.test(f.name);\n"
    "      f.g.classList.toggle('m', hit);\n"
    "      return hit;\n"
    "    }).sort(function (a, b) { return a.x - b.x || b.w - a.w; });\n"
    "    for (const f of hits)\n"
    "      if (f.x >= end) { sum += f.w; end = f.x + f.w; }\n"
    "    matched.textContent = find === null ? '' : (100 * sum / WHOLE).toFixed(1) + '% matched';\n"
    "  }\n"
    "  for (const f of frames)\n"
    "    f.g.addEventListener('click', function () { zoom(f); });\n"
    "  document.getElementById('reset').addEventListener('click', function () {\n"
    "    zoom({x: 0, w: WHOLE, d: 0}); search(''); });\n"
    "  document.getElementById('search').addEventListener('click', function () {\n"
    "    const text = prompt('Regular expression to search for'); if (text !== null)\n"
    "      search(text); });\n"
    "  zoom(all);\n"
    "});\n"
    "]]></script>\n";

/* In pixels; the script has MARGIN, too. */
enum { WIDTH = 1200, MARGIN = 10, FRAME_HEIGHT = 16, HEAD_HEIGHT = 56 };

#define WHOLE    1e6 /* the width of the root */
#define NARROW   100 /* of WHOLE: a tenth of a pixel */
#define LETTER   6.7 /* pixels that a letter takes */
#define PER_UNIT ((WIDTH - 2 * MARGIN) / WHOLE)

struct frame {
    double begin; /* of WHOLE */
    double next;  /* where its next child begins */
    double width;
    uint32_t depth; /* 0: the root */
    bool is_drawn;
};

struct layout {
    const struct flamegraph *graph;
    const struct call_tree *tree;
    uint32_t *order; /* children of one parent together, by name */
    struct frame *frames;
    uint32_t depth; /* of the deepest frame */
    uint32_t drawn;
};

static int compare_children(const void *left, const void *right, void *argument)
{
    const struct layout *layout = argument;
    const struct call_node *a = &layout->tree->nodes[*(const uint32_t *)left];
    const struct call_node *b = &layout->tree->nodes[*(const uint32_t *)right];
    if (a->parent != b->parent)
        return a->parent < b->parent ? -1 : 1;
    struct slice name_a = report_name(layout->graph->report, a->name);
    struct slice name_b = report_name(layout->graph->report, b->name);
    size_t size = name_a.size < name_b.size ? name_a.size : name_b.size;
    int order = size > 0 ? memcmp(name_a.data, name_b.data, size) : 0;
    return order != 0 ? order : (name_a.size > name_b.size) - (name_a.size < name_b.size);
}

static void put_frame(FILE *out, const struct layout *layout, uint32_t index)
{
    const struct report *report = layout->graph->report;
    const struct call_node *node = &layout->tree->nodes[index];
    const struct frame *frame = &layout->frames[index];
    struct slice unit = report_text(report, layout->graph->type->unit);
    struct slice name = index == 0 ? slice_of_text("all") : report_name(report, node->name);
    double x = MARGIN + frame->begin * PER_UNIT;
    unsigned y = HEAD_HEIGHT + (layout->depth - frame->depth) * FRAME_HEIGHT;
    assert(frame->is_drawn);
    name = otlp_text_cut(name, FLAMEGRAPH_NAME_BYTES_MAX);
    fprintf(out, "<g class=\"f\" data-x=\"%.3f\" data-w=\"%.3f\" data-d=\"%u\" data-n=\"",
            frame->begin, frame->width, frame->depth);
    text_escape_xml(out, name);
    fputs("\"><title>", out);
    text_escape_xml(out, name);
    fprintf(out, " (%s, %.2f%%; itself %s)</title>", value_unit_text(node->total, unit).text,
            100 * frame->width / WHOLE, value_unit_text(node->self, unit).text);
    fprintf(out, "<rect x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"%d\" rx=\"1\" fill=\"", x, y,
            frame->width * PER_UNIT, FRAME_HEIGHT - 1);
    /* Warm colours that depend only on the name, so that two graphs can be compared. */
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < name.size; i++)
        hash = (hash ^ name.data[i]) * 16777619u;
    fprintf(out, "rgb(%u,%u,%u)", 205 + hash % 50, 90 + (hash >> 8) % 130, (hash >> 16) % 60);
    fprintf(out, "\"/><text x=\"%.2f\" y=\"%u\">", x + 3, y + 12);
    /* Cuts the name to the width of the frame; the script does the same after zooming. */
    double pixels = frame->width * PER_UNIT;
    assert(pixels >= 0);
    size_t letters = pixels > 4 ? (size_t)((pixels - 4) / LETTER) : 0;
    if (letters >= 3) {
        if (name.size <= letters) {
            text_escape_xml(out, name);
        } else {
            text_escape_xml(out, otlp_text_cut(name, letters - 2));
            fputs("..", out);
        }
    }
    fputs("</text></g>\n", out);
}

bool flamegraph_write(FILE *out, const struct flamegraph *graph)
{
    struct layout layout = {.graph = graph, .tree = &graph->type->tree};
    if (layout.tree->nodes[0].total <= 0)
        return false;
    uint32_t count = layout.tree->edges.count;
    assert(count > 0);
    layout.order = mem_alloc(count * sizeof(layout.order[0]));
    layout.frames = mem_zalloc(count * sizeof(layout.frames[0]));
    for (uint32_t i = 0; i < count; i++)
        layout.order[i] = i;
    qsort_r(layout.order + 1, count - 1, sizeof(layout.order[0]), compare_children, &layout);
    layout.frames[0] = (struct frame){.width = WHOLE, .is_drawn = true};
    for (uint32_t i = 1; i < count; i++) {
        /* Parents come first in the array, so a parent is placed before its children. */
        const struct call_node *node = &layout.tree->nodes[layout.order[i]];
        struct frame *parent = &layout.frames[node->parent];
        struct frame *frame = &layout.frames[layout.order[i]];
        assert(node->parent < layout.order[i]);
        double share = (double)node->total / (double)layout.tree->nodes[0].total;
        double left = parent->begin + parent->width - parent->next;
        if (parent->is_drawn && node->total > 0) {
            frame->width = share * WHOLE < left ? share * WHOLE : left;
            frame->begin = parent->next;
            frame->next = frame->begin;
            frame->depth = parent->depth + 1;
            parent->next += frame->width;
            frame->is_drawn = frame->width >= NARROW && frame->depth <= FLAMEGRAPH_DEPTH_MAX &&
                              layout.drawn < FLAMEGRAPH_FRAMES_MAX;
            layout.drawn += frame->is_drawn;
            if (frame->is_drawn && frame->depth > layout.depth)
                layout.depth = frame->depth;
        }
    }
    const struct report *report = layout.graph->report;
    const struct report_type *type = layout.graph->type;
    struct slice unit = report_text(report, type->unit);
    unsigned height = HEAD_HEIGHT + (layout.depth + 1) * FRAME_HEIGHT + MARGIN;
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"%d\" height=\"%u\" "
            "viewBox=\"0 0 %d %u\">\n%s<rect width=\"100%%\" height=\"100%%\" fill=\"#fffdf6\"/>\n"
            "<text x=\"%d\" y=\"20\">",
            WIDTH, height, WIDTH, height, flamegraph_head, MARGIN);
    text_escape_xml(out, otlp_text_cut(layout.graph->title, FLAMEGRAPH_NAME_BYTES_MAX));
    fputs(": ", out);
    text_escape_xml(out, otlp_text_cut(report_text(report, type->type), FLAMEGRAPH_NAME_BYTES_MAX));
    fprintf(out, ", %s</text>\n", value_unit_text(type->total, unit).text);
    fprintf(out,
            "<text id=\"search\" class=\"b\" x=\"%d\" y=\"42\">Search</text>"
            "<text id=\"reset\" class=\"b\" x=\"%d\" y=\"42\">Reset</text>"
            "<text id=\"matched\" x=\"%d\" y=\"42\"></text>\n",
            MARGIN, MARGIN + 60, MARGIN + 120);
    for (uint32_t i = 0; i < layout.tree->edges.count; i++)
        if (layout.frames[i].is_drawn)
            put_frame(out, &layout, i);
    fputs("</svg>\n", out);
    mem_free(layout.order);
    mem_free(layout.frames);
    return true;
}
