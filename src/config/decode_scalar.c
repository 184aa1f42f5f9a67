/* SPDX-License-Identifier: Apache-2.0 */
/* Setters of single values. YAML is taken strictly, as in the Go collector: a number is no text and
 * a text no number; only what a reference brought adapts to the field. A written null is the type's
 * zero. Main thread. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "src/config/byte_size.h"
#include "src/config/decode.h"
#include "src/config/duration.h"
#include "src/config/loader.h"
#include "src/config/scalar.h"
#include "src/config/suggest.h"

enum { EXPECTED_TEXT_MAX = 512 };

const char *decode_text_of(const struct node *node)
{
    assert(node != NULL);
    if (node->verbatim != NULL)
        return node->verbatim;
    if (node->kind == NODE_NULL)
        return "";
    return node->kind == NODE_TEXT ? node->text : NULL;
}

static bool is_secret(const struct config_field *field)
{
    assert(field != NULL);
    return field->type == CONFIG_TYPE_SECRET || field->type == CONFIG_TYPE_SECRETS ||
           field->type == CONFIG_TYPE_HEADERS;
}

/* Whether what stands there may be a secret: people write one where its section belongs, too. */
static bool may_be_secret(const struct config_field *field)
{
    assert(field != NULL);
    if (field->type != CONFIG_TYPE_SECTION)
        return is_secret(field);
    for (const struct config_field *inner = field->fields; inner != NULL && inner->key != NULL;
         inner++)
        if (inner->type == CONFIG_TYPE_SECRET || inner->type == CONFIG_TYPE_SECRETS)
            return true;
    return false;
}

void decode_mismatch(const struct site *site, const struct config_field *field,
                     const struct node *node, const char *expected)
{
    assert(site != NULL && field != NULL);
    assert(node != NULL && expected != NULL);
    if (node->kind == NODE_BROKEN)
        return;
    struct node_description found =
        may_be_secret(field) ? node_describe_secret(node) : node_describe(node);
    loader_problem(site->loader, node->position, site->path, "found %s, expected %s", found.text,
                   expected);
}

/* "without quotes", when that is what keeps a text from being what was expected. */
static const char *quotes_hint(const struct node *node, enum node_kind kind)
{
    if (node->kind != NODE_TEXT || node->reference != NULL)
        return "";
    enum node_kind unquoted = text_to_scalar(node->text).kind;
    return unquoted == kind ? " (without quotes)" : "";
}

void decode_bool(const struct site *site, const struct config_field *field, const struct node *node,
                 void *target)
{
    char expected[EXPECTED_TEXT_MAX];
    bool *boolean = target;
    assert(node != NULL && target != NULL);
    if (node->kind == NODE_BOOL || node->kind == NODE_NULL) {
        *boolean = node->kind == NODE_BOOL && node->boolean;
        return;
    }
    snprintf(expected, sizeof(expected), "true or false%s", quotes_hint(node, NODE_BOOL));
    decode_mismatch(site, field, node, expected);
}

/* Doubles lose their fraction, as in the Go collector, which says nothing about it. */
static bool take_whole(const struct site *site, const struct node *node, int64_t *ret_integer)
{
    assert(ret_integer != NULL);
    if (node->kind == NODE_NULL)
        *ret_integer = 0;
    else if (node->kind == NODE_INT)
        *ret_integer = node->integer;
    else if (node->kind == NODE_DOUBLE && fabs(node->real) < 9e18)
        *ret_integer = (int64_t)node->real;
    else
        return false;
    if (node->kind == NODE_DOUBLE && (double)*ret_integer != node->real)
        loader_warning(site->loader, node->position, site->path,
                       "found %s, which is cut to %" PRIi64 "; expected a whole number",
                       node_describe(node).text, *ret_integer);
    return true;
}

static void describe_words(const struct config_field *field, char *text, size_t size)
{
    assert(size > 0);
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; field->choices != NULL && field->choices[i] != NULL && length < size; i++)
        length += (size_t)snprintf(text + length, size - length, "%s\"%s\"", i > 0 ? ", " : "",
                                   field->choices[i]);
}

static void describe_whole(const struct config_field *field, const struct node *node,
                           char *expected, size_t size)
{
    assert(field->type == CONFIG_TYPE_COUNT || field->type == CONFIG_TYPE_INT);
    char words[EXPECTED_TEXT_MAX / 2];
    describe_words(field, words, sizeof(words));
    size_t length = (size_t)snprintf(expected, size, "%s%sa whole number", words,
                                     words[0] != '\0' ? " or " : "");
    if (field->min == INT64_MIN && field->max == INT64_MAX)
        snprintf(expected + length, size - length, "%s", quotes_hint(node, NODE_INT));
    else if (field->max == INT64_MAX)
        snprintf(expected + length, size - length, " of at least %" PRIi64 "%s", field->min,
                 quotes_hint(node, NODE_INT));
    else
        snprintf(expected + length, size - length, " from %" PRIi64 " to %" PRIi64 "%s", field->min,
                 field->max, quotes_hint(node, NODE_INT));
}

/* A word of the row stands for its index. */
static bool take_word(const struct config_field *field, const struct node *node, int64_t *ret_index)
{
    assert(ret_index != NULL);
    if (field->choices == NULL || node->kind != NODE_TEXT)
        return false;
    for (size_t i = 0; field->choices[i] != NULL; i++) {
        if (strcmp(field->choices[i], node->text) != 0)
            continue;
        *ret_index = (int64_t)i;
        return true;
    }
    return false;
}

/* False: reported. */
static bool take_in_range(const struct site *site, const struct config_field *field,
                          const struct node *node, int64_t *ret_integer)
{
    char expected[EXPECTED_TEXT_MAX];
    int64_t integer = 0;
    assert(field->min <= field->max);
    if (take_word(field, node, ret_integer))
        return true;
    /* -0.5 is not cut to a count of 0. */
    bool is_signed = field->type == CONFIG_TYPE_INT || node->kind != NODE_DOUBLE || node->real >= 0;
    bool is_fitting = is_signed && take_whole(site, node, &integer) &&
                      (site->is_off || (integer >= field->min && integer <= field->max));
    if (is_fitting) {
        *ret_integer = integer;
        return true;
    }
    describe_whole(field, node, expected, sizeof(expected));
    decode_mismatch(site, field, node, expected);
    return false;
}

void decode_count(const struct site *site, const struct config_field *field,
                  const struct node *node, void *target)
{
    int64_t integer;
    uint64_t *count = target;
    assert(node != NULL && target != NULL);
    assert(field->min >= 0);
    if (take_in_range(site, field, node, &integer))
        *count = integer > 0 ? (uint64_t)integer : 0;
}

void decode_int(const struct site *site, const struct config_field *field, const struct node *node,
                void *target)
{
    int64_t *integer = target;
    assert(node != NULL && target != NULL);
    take_in_range(site, field, node, integer);
}

void decode_double(const struct site *site, const struct config_field *field,
                   const struct node *node, void *target)
{
    double *real = target;
    assert(node != NULL && target != NULL);
    if (node->kind == NODE_NULL)
        *real = 0;
    else if (node->kind == NODE_INT)
        *real = (double)node->integer;
    else if (node->kind == NODE_DOUBLE)
        *real = node->real;
    else
        decode_mismatch(site, field, node, "a number");
}

/* problem may be NULL. */
static void describe_durations(const struct config_field *field, const char *problem,
                               char *expected, size_t size)
{
    size_t length;
    assert(field->type == CONFIG_TYPE_DURATION);
    if (field->max == INT64_MAX && field->min <= 0)
        length = (size_t)snprintf(expected, size, "a duration such as \"200ms\" or \"1m30s\"");
    else if (field->max == INT64_MAX)
        length = (size_t)snprintf(expected, size, "a duration of at least %s",
                                  duration_to_text(field->min).text);
    else
        length =
            (size_t)snprintf(expected, size, "a duration from %s to %s",
                             duration_to_text(field->min).text, duration_to_text(field->max).text);
    if (problem != NULL && length < size)
        snprintf(expected + length, size - length, " (%s)", problem);
}

/* NULL, or what is wrong with the text. */
static const char *take_duration(const struct site *site, const struct node *node,
                                 int64_t *ret_duration_ns)
{
    assert(ret_duration_ns != NULL);
    if (node->kind == NODE_TEXT)
        return text_to_duration_ns(node->text, ret_duration_ns);
    if (!take_whole(site, node, ret_duration_ns))
        return "";
    if (*ret_duration_ns != 0)
        loader_warning(site->loader, node->position, site->path,
                       "found %s, which is taken as nanoseconds; expected a duration with its "
                       "unit, such as \"%" PRIi64 "s\"",
                       node_describe(node).text, *ret_duration_ns);
    return NULL;
}

void decode_duration(const struct site *site, const struct config_field *field,
                     const struct node *node, void *target)
{
    char expected[EXPECTED_TEXT_MAX];
    int64_t duration_ns = 0;
    uint64_t *field_ns = target;
    const char *problem = take_duration(site, node, &duration_ns);
    bool is_fitting = site->is_off || (duration_ns >= field->min && duration_ns <= field->max);
    assert(target != NULL);
    assert(field->min <= field->max);
    if (problem == NULL && is_fitting) {
        *field_ns = duration_ns > 0 ? (uint64_t)duration_ns : 0;
        if (duration_ns < 0 && !site->is_off)
            loader_warning(site->loader, node->position, site->path,
                           "found %s; a negative duration is taken as 0",
                           node_describe(node).text);
        return;
    }
    describe_durations(field, problem != NULL && *problem != '\0' ? problem : NULL, expected,
                       sizeof(expected));
    decode_mismatch(site, field, node, expected);
}

void decode_bytes(const struct site *site, const struct config_field *field,
                  const struct node *node, void *target)
{
    char expected[EXPECTED_TEXT_MAX];
    uint64_t bytes = 0;
    uint64_t *field_bytes = target;
    bool is_number = node->kind == NODE_INT && node->integer >= 0;
    bool is_size = is_number || node->kind == NODE_NULL ||
                   (node->kind == NODE_TEXT && text_to_bytes(node->text, &bytes));
    assert(target != NULL);
    assert(field->min >= 0 && field->min <= field->max);
    if (is_number)
        bytes = (uint64_t)node->integer;
    if (is_size &&
        (site->is_off || (bytes >= (uint64_t)field->min && bytes <= (uint64_t)field->max))) {
        *field_bytes = bytes;
        return;
    }
    snprintf(expected, sizeof(expected), "a number of bytes from %s to %s, such as \"64MiB\"",
             bytes_to_text((uint64_t)field->min).text, bytes_to_text((uint64_t)field->max).text);
    decode_mismatch(site, field, node, expected);
}

void decode_text(const struct site *site, const struct config_field *field, const struct node *node,
                 void *target)
{
    const char **text = target;
    const char *found = decode_text_of(node);
    assert(target != NULL);
    if (field->refuses_empty && node->kind == NODE_TEXT && node->text[0] == '\0')
        decode_mismatch(site, field, node, "a text that is not empty, or no such key");
    else if (found != NULL)
        *text = field->refuses_empty && node->kind == NODE_NULL ? "" : found;
    else
        decode_mismatch(site, field, node,
                        node->kind == NODE_LIST || node->kind == NODE_MAP
                            ? "a text"
                            : "a text (put it in quotes)");
}

static bool is_choice(const struct config_field *field, int index, const char *text)
{
    assert(field->choices[index] != NULL);
    return (field->is_level ? strcasecmp : strcmp)(field->choices[index], text) == 0;
}

void decode_choice(const struct site *site, const struct config_field *field,
                   const struct node *node, void *target)
{
    assert(target != NULL);
    char words[EXPECTED_TEXT_MAX / 2];
    char expected[EXPECTED_TEXT_MAX];
    int *index = target;
    bool is_unset = field->refuses_empty && node->kind == NODE_NULL;
    bool is_empty = field->refuses_empty && node->kind == NODE_TEXT && node->text[0] == '\0';
    const char *found = is_unset ? "" : is_empty ? NULL : decode_text_of(node);
    struct suggestion suggestion = suggestion_for(found != NULL ? found : "");
    assert(field->choices != NULL);
    if (field->is_level && node->kind == NODE_NULL) {
        *index = 0;
        return;
    }
    for (int i = 0; field->choices[i] != NULL; i++) {
        bool is_number = field->is_level && node->kind == NODE_INT && node->integer == i;
        if (is_number || (found != NULL && is_choice(field, i, found))) {
            *index = i;
            return;
        }
        suggestion_consider(&suggestion, field->choices[i]);
    }
    describe_words(field, words, sizeof(words));
    snprintf(expected, sizeof(expected), "one of %s%s", words,
             suggestion_to_text(&suggestion).text);
    decode_mismatch(site, field, node, expected);
}
