/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the status pages, one function per table. Strings of the configuration and the log are
 * escaped. On the lane that responds. */
#include "src/service/status_page.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "src/base/budget.h"
#include "src/base/clock.h"
#include "src/base/log_recent.h"
#include "src/base/machine.h"
#include "src/base/text_escape.h"
#include "src/config/component_set.h"
#include "src/journal/journal.h"
#include "src/pipeline/pipeline.h"
#include "src/service/service_parts.h"

static const struct {
    const char *title;
    const char *path;
} pages[] = {
    [STATUS_SERVICE] = {"Service", "servicez"},
    [STATUS_PIPELINES] = {"Pipelines", "pipelinez"},
    [STATUS_EXTENSIONS] = {"Extensions", "extensionz"},
    [STATUS_FEATURES] = {"Feature Gates", "featurez"},
};

static void print_text(FILE *out, const char *text)
{
    text_escape_xml(out, slice_of_text(text));
}

static void print_row(FILE *out, const char *name, const char *value)
{
    fprintf(out, "<tr><th>%s</th><td>", name);
    print_text(out, value);
    fputs("</td></tr>\n", out);
}

static void print_number(FILE *out, const char *name, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRIu64, value);
    assert(text[0] != '\0');
    print_row(out, name, text);
}

static uint64_t sum(const counter *cells, size_t count)
{
    uint64_t total = 0;
    assert(count > 0);
    for (size_t i = 0; i < count; i++)
        total += counter_read(&cells[i]);
    return total;
}

static void print_line(const char *line, void *arg)
{
    FILE *out = arg;
    print_text(out, line);
    fputc('\n', out);
}

static void print_service(const struct service *service, FILE *out)
{
    struct process_figures process = machine_process();
    char uptime[48];
    double seconds = (double)(clock_now_ns() - service->started_ns) / NS_PER_S;
    snprintf(uptime, sizeof(uptime), "%.1f s", seconds);
    assert(service->lanes_count > 0);
    fputs("<h2>Process</h2>\n<table>\n", out);
    print_row(out, "Version", SPANFLAME_VERSION);
    print_row(out, "State",
              service->view.is_ready(&service->view) ? "ready" : "starting or stopping");
    print_row(out, "Up since", uptime);
    print_number(out, "Lanes", service->lanes_count);
    print_number(out, "Resident bytes", process.rss_bytes);
    fputs("</table>\n", out);
    const struct budget *budget = &service->budget;
    fputs("<h2>Budget</h2>\n<table>\n", out);
    print_number(out, "Bytes in use", budget_used(budget));
    print_number(out, "Limit", budget_limit(budget));
    print_number(out, "High water", atomic_load(&budget->high_water));
    print_number(out, "Refusals", atomic_load(&budget->refusals));
    fputs("</table>\n", out);
    /* received = delivered + rejected + dropped + in flight, over all lanes. */
    fputs("<h2>Items</h2>\n<table>\n<tr><th>Signal</th><th>Received</th><th>Delivered</th>"
          "<th>Rejected</th><th>Dropped</th><th>In flight</th></tr>\n",
          out);
    for (int signal = 0; signal < SIGNAL_KINDS; signal++) {
        uint64_t figures[5] = {0};
        for (unsigned lane = 0; lane < service->lanes_count; lane++) {
            const struct ledger_signal *row = &service->lanes[lane].ledger.signals[signal];
            figures[0] += counter_read(&row->received);
            figures[1] += counter_read(&row->delivered);
            figures[2] += sum(row->rejected, LOSS_REASONS);
            figures[3] += sum(row->dropped, LOSS_REASONS);
            figures[4] += (uint64_t)ledger_in_flight(row);
        }
        fprintf(out, "<tr><th>%s</th>", signal_name((enum signal_kind)signal));
        for (size_t i = 0; i < 5; i++)
            fprintf(out, "<td>%" PRIu64 "</td>", figures[i]);
        fputs("</tr>\n", out);
    }
    fputs("</table>\n", out);
    assert(ferror(out) == 0);
    fputs("<h2>Last warnings and errors, newest first</h2>\n<pre>", out);
    log_recent_visit(print_line, out);
    fputs("</pre>\n", out);
}

static void print_ids(FILE *out, const struct config_component *const *components, size_t count)
{
    assert(components != NULL || count == 0);
    fputs("<td>", out);
    for (size_t i = 0; i < count; i++) {
        fputs(i > 0 ? ", " : "", out);
        print_text(out, components[i]->id);
        fputs(components[i]->factory->kind == CONNECTOR ? " (connector)" : "", out);
    }
    fputs("</td>", out);
}

struct ring_row {
    const char *ring;
    const char *signal; /* NULL: part of the owner's id */
    const char *owner;
    unsigned lane;
};

static void print_ring(FILE *out, const struct ring_row *row, struct ring_figures figures)
{
    fprintf(out, "<tr><th>%s</th><td>", row->ring);
    if (row->signal != NULL)
        fprintf(out, "%s/", row->signal);
    print_text(out, row->owner);
    fprintf(out, "</td><td>%u</td><td>%zu</td><td>%zu</td><td>%zu</td><td>%" PRIu64 "</td></tr>\n",
            row->lane, figures.depth, figures.high_water, figures.capacity, figures.refusals);
}

static void print_age(FILE *out, uint64_t wall_ns)
{
    uint64_t now_ns = clock_wall_ns();
    if (wall_ns == 0)
        fputs("<td></td>", out);
    else
        fprintf(out, "<td>%.1f s</td>",
                now_ns > wall_ns ? (double)(now_ns - wall_ns) / NS_PER_S : 0);
}

/* Of one pipeline, with a row for each exporter that it knows. */
static void print_journal(FILE *out, const char *pipeline, struct journal *journal)
{
    struct journal_figures figures = journal_figures(journal);
    struct journal_health health = journal_health(journal);
    fputs("<h3>", out);
    print_text(out, pipeline);
    fputs("</h3>\n<table>\n", out);
    print_row(out, "Directory", journal_directory(journal));
    print_row(out, "State", health.is_refusing ? "refuses requests" : "takes requests");
    print_number(out, "Bytes of files", figures.bytes);
    print_number(out, "Requests", figures.next_id - figures.low_id);
    print_number(out, "Commits", counter_read(&journal_counters(journal)->commits));
    fputs("<tr><th>Oldest</th>", out);
    print_age(out, figures.oldest_wall_ns);
    fputs("</tr>\n<tr><th>Last error</th><td>", out);
    print_text(out, health.last_error != 0 ? journal_error_text(health.last_error) : "none");
    fputs("</td>", out);
    if (health.last_error != 0)
        print_age(out, health.last_wall_ns);
    fputs("</tr>\n</table>\n<table>\n<tr><th>Waits for</th><th>Requests</th><th>Items</th>"
          "<th>Bytes</th><th>Oldest</th></tr>\n",
          out);
    struct journal_backlog waits;
    for (size_t i = 0; journal_each_backlog(journal, i, &waits); i++) {
        fputs("<tr><th>", out);
        print_text(out, waits.name);
        fputs(waits.is_configured ? "" : " (not in the configuration)", out);
        fprintf(out, "</th><td>%" PRIu64 "</td><td>%" PRIu64 "</td><td>%" PRIu64 "</td>",
                waits.records, waits.amount.items, waits.amount.bytes);
        print_age(out, waits.oldest_wall_ns);
        fputs("</tr>\n", out);
    }
    fputs("</table>\n", out);
}

static void print_journals(const struct service *service, FILE *out)
{
    bool has_title = false;
    for (size_t i = 0; i < service->config->pipelines_count; i++) {
        if (service->journals[i] == NULL)
            continue;
        fputs(has_title ? "" : "<h2>Journals</h2>\n", out);
        has_title = true;
        print_journal(out, service->config->pipelines[i].id, service->journals[i]);
    }
    if (service->unused_count == 0)
        return;
    fputs(has_title ? "" : "<h2>Journals</h2>\n", out);
    fputs("<h3>Not used by any pipeline, at the start</h3>\n<table>\n<tr><th>Directory</th>"
          "<th>Requests</th><th>Bytes of files</th></tr>\n",
          out);
    for (size_t i = 0; i < service->unused_count; i++) {
        const struct unused_journal *unused = &service->unused[i];
        fputs("<tr><th>", out);
        print_text(out, unused->directory);
        fprintf(out, "</th><td>%" PRIu64 "</td><td>%" PRIu64 "</td></tr>\n", unused->records,
                unused->bytes);
    }
    fputs("</table>\n", out);
}

static void print_skips(const struct config *config, FILE *out)
{
    if (config->skips_count == 0)
        return;
    fputs("<h2>Left out</h2>\n<table>\n<tr><th>Pipeline</th><th>Component</th><th>Why</th></tr>\n",
          out);
    for (size_t i = 0; i < config->skips_count; i++) {
        const struct config_skip *skip = &config->skips[i];
        fputs("<tr><th>", out);
        print_text(out, skip->pipeline != NULL ? skip->pipeline : "");
        fputs("</th><td>", out);
        if (skip->component != NULL) {
            fprintf(out, "%s::", skip->section);
            print_text(out, skip->component);
        }
        fputs("</td><td>", out);
        print_text(out, skip->why);
        fputs("</td></tr>\n", out);
    }
    fputs("</table>\n", out);
}

static void print_pipelines(const struct service *service, FILE *out)
{
    const struct config *config = service->config;
    fputs("<table>\n<tr><th>Pipeline</th><th>Receivers</th><th>Processors</th><th>Exporters</th>"
          "</tr>\n",
          out);
    for (size_t i = 0; i < config->pipelines_count; i++) {
        const struct config_pipeline *pipeline = &config->pipelines[i];
        fputs("<tr><th>", out);
        print_text(out, pipeline->id);
        fputs("</th>", out);
        print_ids(out, pipeline->receivers, pipeline->receivers_count);
        print_ids(out, pipeline->processors, pipeline->processors_count);
        print_ids(out, pipeline->exporters, pipeline->exporters_count);
        fputs("</tr>\n", out);
    }
    fputs("</table>\n", out);
    print_skips(config, out);
    fputs("<h2>Rings</h2>\n<table>\n<tr><th>Ring</th><th>Of</th><th>Lane</th><th>Depth</th>"
          "<th>High water</th><th>Capacity</th><th>Refusals</th></tr>\n",
          out);
    for (unsigned lane = 0; lane < service->lanes_count; lane++) {
        const struct service_lane *part = &service->lanes[lane];
        for (size_t i = 0; i < config->pipelines_count; i++)
            print_ring(out, &(struct ring_row){"pipeline", NULL, config->pipelines[i].id, lane},
                       pipeline_ring_figures(part->pipelines[i]));
        for (size_t i = 0; i < config->components_count * SIGNAL_KINDS; i++) {
            const struct component *exporter = part->exporters[i];
            if (exporter == NULL)
                continue;
            const struct ring_row row = {"sending_queue", signal_name(exporter->signal),
                                         exporter->id, lane};
            print_ring(out, &row, exporter_queue_ring_figures(part->queues[i]));
        }
    }
    fputs("</table>\n", out);
    print_journals(service, out);
}

static void print_extensions(const struct service *service, FILE *out)
{
    const struct config *config = service->config;
    assert(config->extensions_count == 0 || config->extensions != NULL);
    fputs("<ul>\n", out);
    for (size_t i = 0; i < config->extensions_count; i++) {
        fputs("<li>", out);
        print_text(out, config->extensions[i]->id);
        fputs("</li>\n", out);
    }
    fputs("</ul>\n", out);
}

static void print_features(const struct service *service, FILE *out)
{
    fputs("<pre>", out);
    feature_gates_print(&service->config->gates, NULL, out);
    fputs("</pre>\n", out);
}

void status_page_print(const struct service *service, enum status_page page, FILE *out)
{
    static void (*const printers[])(const struct service *, FILE *) = {
        [STATUS_SERVICE] = print_service,
        [STATUS_PIPELINES] = print_pipelines,
        [STATUS_EXTENSIONS] = print_extensions,
        [STATUS_FEATURES] = print_features,
    };
    assert(page < STATUS_PAGES);
    fprintf(out,
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
            "<title>spanflame: %s</title><style>body{font-family:sans-serif;margin:2em}"
            "table{border-collapse:collapse}td,th{border:1px solid #bbb;padding:.2em .6em;"
            "text-align:left}pre{white-space:pre-wrap}</style></head><body>\n<p>",
            pages[page].title);
    for (size_t i = 0; i < STATUS_PAGES; i++)
        fprintf(out, "<a href=\"/debug/%s\">%s</a> ", pages[i].path, pages[i].title);
    fprintf(out, "</p>\n<h1>%s</h1>\n", pages[page].title);
    printers[page](service, out);
    fputs("</body></html>\n", out);
}
