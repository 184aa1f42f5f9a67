/* SPDX-License-Identifier: Apache-2.0 */
/* Trees as YAML, through libyaml's emitter, and as JSON. Main thread. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

#include "src/config/node.h"
#include "src/config/print.h"
#include "src/config/scalar.h"

enum { NUMBER_TEXT_MAX = 40, INDENT = 4 };

struct number_text {
    char text[NUMBER_TEXT_MAX];
};

/* The shortest digits that read back as the same double. */
static struct number_text double_to_text(double real)
{
    struct number_text result;
    if (isnan(real) || isinf(real)) {
        snprintf(result.text, sizeof(result.text), "%s",
                 isnan(real) ? ".nan"
                 : real > 0  ? ".inf"
                             : "-.inf");
        return result;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(result.text, sizeof(result.text), "%.*g", digits, real);
        if (strtod(result.text, NULL) == real)
            break;
    }
    return result;
}

static struct number_text scalar_to_text(const struct node *node)
{
    struct number_text result = {.text = "null"};
    assert(node->kind != NODE_LIST && node->kind != NODE_MAP);
    if (node->kind == NODE_BOOL)
        snprintf(result.text, sizeof(result.text), "%s", node->boolean ? "true" : "false");
    else if (node->kind == NODE_INT)
        snprintf(result.text, sizeof(result.text), "%" PRIi64, node->integer);
    else if (node->kind == NODE_DOUBLE)
        result = double_to_text(node->real);
    return result;
}

/* Texts that some reader of YAML, if not ours, takes for something else stand in quotes. */
static bool needs_quotes(const char *text)
{
    assert(text != NULL);
    static const char *const words[] = {"yes", "no", "on", "off", "y", "n"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcasecmp(words[i], text) == 0)
            return true;
    bool is_date = strspn(text, "0123456789") == 4 && text[4] == '-';
    return is_date || text_to_scalar(text).kind != NODE_TEXT;
}

static bool emit_scalar(yaml_emitter_t *emitter, const char *text, bool is_text)
{
    assert(text != NULL);
    yaml_event_t event;
    yaml_char_t bytes[] = "(not UTF-8)";
    int is_plain = !is_text || !needs_quotes(text);
    size_t size = strlen(text);
    /* libyaml copies the value, though its parameter is not const. */
    yaml_char_t *value = (yaml_char_t *)(uintptr_t)text;
    if (!yaml_scalar_event_initialize(&event, NULL, NULL, value, (int)size, is_plain, 1,
                                      YAML_ANY_SCALAR_STYLE) &&
        !yaml_scalar_event_initialize(&event, NULL, NULL, bytes, sizeof(bytes) - 1, 1, 1,
                                      YAML_ANY_SCALAR_STYLE))
        return false;
    return yaml_emitter_emit(emitter, &event);
}

static bool emit_start(yaml_emitter_t *emitter, const struct node *node)
{
    yaml_event_t event;
    int is_ready =
        node->kind == NODE_MAP
            ? yaml_mapping_start_event_initialize(&event, NULL, NULL, 1, YAML_BLOCK_MAPPING_STYLE)
            : yaml_sequence_start_event_initialize(&event, NULL, NULL, 1,
                                                   YAML_BLOCK_SEQUENCE_STYLE);
    assert(node->kind == NODE_LIST || node->kind == NODE_MAP);
    return is_ready && yaml_emitter_emit(emitter, &event);
}

static bool emit_end(yaml_emitter_t *emitter, const struct node *node)
{
    yaml_event_t event;
    int is_ready = node->kind == NODE_MAP ? yaml_mapping_end_event_initialize(&event)
                                          : yaml_sequence_end_event_initialize(&event);
    assert(node->kind == NODE_LIST || node->kind == NODE_MAP);
    return is_ready && yaml_emitter_emit(emitter, &event);
}

static bool emit_node(yaml_emitter_t *emitter, const struct node *node)
{
    assert(node != NULL);
    if (node->kind == NODE_TEXT || node->kind == NODE_TIME)
        return emit_scalar(emitter, node->text, node->kind == NODE_TEXT);
    if (node->kind != NODE_LIST && node->kind != NODE_MAP)
        return emit_scalar(emitter, scalar_to_text(node).text, false);
    if (!emit_start(emitter, node))
        return false;
    for (size_t i = 0; i < node->count; i++) {
        if (node->kind == NODE_MAP && !emit_scalar(emitter, node->entries[i].key, true))
            return false;
        if (!emit_node(emitter, node->entries[i].value))
            return false;
    }
    return emit_end(emitter, node);
}

static bool emit_document(yaml_emitter_t *emitter, const struct node *root)
{
    assert(root != NULL);
    yaml_event_t event;
    return yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING) &&
           yaml_emitter_emit(emitter, &event) &&
           yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1) &&
           yaml_emitter_emit(emitter, &event) && emit_node(emitter, root) &&
           yaml_document_end_event_initialize(&event, 1) && yaml_emitter_emit(emitter, &event) &&
           yaml_stream_end_event_initialize(&event) && yaml_emitter_emit(emitter, &event);
}

bool print_yaml(const struct node *root, FILE *out)
{
    yaml_emitter_t emitter;
    assert(root != NULL);
    assert(out != NULL);
    if (!yaml_emitter_initialize(&emitter))
        return false;
    yaml_emitter_set_output_file(&emitter, out);
    yaml_emitter_set_indent(&emitter, INDENT);
    yaml_emitter_set_unicode(&emitter, 1);
    yaml_emitter_set_width(&emitter, -1);
    bool is_fine = emit_document(&emitter, root);
    yaml_emitter_delete(&emitter);
    return is_fine && !ferror(out);
}

static void write_json_text(const char *text, FILE *out)
{
    assert(text != NULL);
    fputc('"', out);
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte == '"' || byte == '\\')
            fprintf(out, "\\%c", byte);
        else if (byte == '\n')
            fputs("\\n", out);
        else if (byte < 0x20)
            fprintf(out, "\\u%04x", byte);
        else
            fputc(byte, out);
    }
    fputc('"', out);
}

static void write_json(const struct node *node, int indent, FILE *out)
{
    assert(node != NULL);
    bool is_map = node->kind == NODE_MAP;
    assert(indent >= 0);
    bool is_text = node->kind == NODE_TEXT || node->kind == NODE_TIME;
    if (is_text || (node->kind == NODE_DOUBLE && !isfinite(node->real))) {
        write_json_text(is_text ? node->text : scalar_to_text(node).text, out);
        return;
    }
    if (!is_map && node->kind != NODE_LIST) {
        fputs(scalar_to_text(node).text, out);
        return;
    }
    fputc(is_map ? '{' : '[', out);
    for (size_t i = 0; i < node->count; i++) {
        fprintf(out, "%s\n%*s", i > 0 ? "," : "", indent + INDENT, "");
        if (is_map) {
            write_json_text(node->entries[i].key, out);
            fputs(": ", out);
        }
        write_json(node->entries[i].value, indent + INDENT, out);
    }
    if (node->count > 0)
        fprintf(out, "\n%*s", indent, "");
    fputc(is_map ? '}' : ']', out);
}

bool print_json(const struct node *root, FILE *out)
{
    assert(root != NULL);
    assert(out != NULL);
    write_json(root, 0, out);
    fputc('\n', out);
    return !ferror(out);
}
