/* SPDX-License-Identifier: Apache-2.0 */
/* set_semconv_span_name: the name that the semantic conventions give a span of HTTP, RPC, a
 * database or messaging (contrib, processor/transform; conventions 1.43.0 and older names). Runs on
 * the processor's thread. */
#include "src/base/error.h"
#include "src/ottl/functions/go_text.h"
#include "src/ottl/functions/tables.h"
#include "src/ottl/functions/text_builder.h"
#include "src/ottl/ottl_access.h"

enum { VERSION_PARAMETER, ORIGINAL_NAME_PARAMETER };
enum { KIND_SERVER = 2, KIND_CLIENT, KIND_PRODUCER, KIND_CONSUMER };

/* A number without leading zeros; -1: none. Moves behind it. */
static long read_number(struct slice *text)
{
    enum { DIGITS_MAX = 9 };
    long number = 0;
    size_t size = 0;
    for (; size < text->size && text->data[size] >= '0' && text->data[size] <= '9'; size++)
        if (size < DIGITS_MAX)
            number = number * 10 + (text->data[size] - '0');
    *text = slice_of(text->data + size, text->size - size);
    return size == 0 || size > DIGITS_MAX ? -1 : number;
}

static bool skip(struct slice *text, char byte)
{
    if (text->size == 0 || text->data[0] != byte)
        return false;
    *text = slice_of(text->data + 1, text->size - 1);
    return true;
}

static bool prepare_span_name(const struct ottl_preparation *preparation, void **ret_state,
                              struct error *error)
{
    enum { MAJOR = 1, MINOR_MIN = 37, MINOR_MAX = 43 };
    struct slice text = ottl_literal_text(preparation, VERSION_PARAMETER);
    struct slice rest = text;
    long parts[3] = {0};
    *ret_state = NULL;
    skip(&rest, 'v');
    for (size_t i = 0; i < 3 && (i == 0 || skip(&rest, '.')); i++)
        if ((parts[i] = read_number(&rest)) < 0)
            break;
    bool is_early = rest.size > 0 && rest.data[0] == '-';
    if (parts[0] < 0 || parts[1] < 0 || parts[2] < 0 ||
        (rest.size > 0 && rest.data[0] != '-' && rest.data[0] != '+'))
        return error_set(error,
                         "failed to parse semconv version \"%.*s\": invalid semantic version",
                         (int)text.size, (const char *)text.data);
    bool is_too_old = parts[0] != MAJOR || parts[1] < MINOR_MIN ||
                      (parts[1] == MINOR_MIN && parts[2] == 0 && is_early);
    bool is_too_new =
        parts[0] != MAJOR || parts[1] > MINOR_MAX || (parts[1] == MINOR_MAX && parts[2] > 0);
    if (is_too_old || is_too_new)
        return error_set(error,
                         "unsupported semconv version \"%.*s\": must be between 1.37.0 and 1.43.0",
                         (int)text.size, (const char *)text.data);
    return !ottl_is_given(preparation, ORIGINAL_NAME_PARAMETER) ||
           ottl_literal_text(preparation, ORIGINAL_NAME_PARAMETER).size > 0 ||
           error_set(error, "originalSpanNameAttribute cannot be an empty string");
}

struct naming {
    struct ottl_call *call;
    struct ottl_map *attributes;
    bool has_failed; /* no memory; the error is set */
};

/* The attribute of that name, or else of its old name (NULL: none), as a string. */
static bool find(struct naming *naming, const char *name, const char *old_name, struct slice *ret)
{
    struct ottl_entry *entry = ottl_map_find(naming->attributes, slice_of_text(name));
    struct ottl_value value;
    if (entry == NULL && old_name != NULL)
        entry = ottl_map_find(naming->attributes, slice_of_text(old_name));
    if (entry == NULL || naming->has_failed)
        return false;
    if (!ottl_map_read(naming->attributes, entry, &value)) {
        naming->has_failed = true;
        return ottl_no_memory(naming->call);
    }
    naming->has_failed = !go_as_string(naming->call, &value, ret);
    return !naming->has_failed;
}

static bool is_true(struct naming *naming, const char *name)
{
    struct ottl_entry *entry = ottl_map_find(naming->attributes, slice_of_text(name));
    struct ottl_value value;
    return entry != NULL && ottl_map_read(naming->attributes, entry, &value) &&
           value.type == OTTL_BOOL && value.boolean;
}

static struct slice join(struct naming *naming, struct slice left, const char *between,
                         struct slice right)
{
    struct text_builder builder;
    if (text_builder_init(&builder, naming->call, left.size + strlen(between) + right.size) &&
        text_builder_add(&builder, left.data, left.size) &&
        text_builder_add(&builder, between, strlen(between)) &&
        text_builder_add(&builder, right.data, right.size))
        return text_builder_text(&builder);
    naming->has_failed = true;
    return left;
}

/* Each gives no text when the span is of another kind. */

static struct slice http_name(struct naming *naming, const char *subject_name)
{
    struct slice method, subject;
    if (!find(naming, "http.request.method", "http.method", &method))
        return slice_of(NULL, 0);
    return find(naming, subject_name, NULL, &subject) ? join(naming, method, " ", subject) : method;
}

static struct slice rpc_name(struct naming *naming)
{
    struct slice system, method, service;
    if (!find(naming, "rpc.system.name", "rpc.system", &system))
        return slice_of(NULL, 0);
    bool has_method = find(naming, "rpc.method", "rpc.grpc.method", &method);
    if (!find(naming, "rpc.service", "rpc.grpc.service", &service))
        return has_method ? method : system;
    return has_method ? join(naming, service, "/", method)
                      : join(naming, service, "/*", slice_of(NULL, 0));
}

static struct slice server_name(struct naming *naming)
{
    struct slice address, port;
    if (!find(naming, "server.address", NULL, &address))
        return slice_of(NULL, 0);
    return find(naming, "server.port", NULL, &port) ? join(naming, address, ":", port) : address;
}

static struct slice database_target(struct naming *naming)
{
    struct slice space, target;
    if (!find(naming, "db.namespace", "db.name", &space))
        space = slice_of(NULL, 0);
    if (find(naming, "db.collection.name", NULL, &target) ||
        find(naming, "db.stored_procedure.name", NULL, &target))
        return space.size > 0 ? join(naming, space, ".", target) : target;
    return space.size > 0 ? space : server_name(naming);
}

static struct slice database_name(struct naming *naming)
{
    struct slice system, summary, operation;
    if (!find(naming, "db.system.name", "db.system", &system))
        return slice_of(NULL, 0);
    if (find(naming, "db.query.summary", NULL, &summary))
        return summary;
    if (!find(naming, "db.operation.name", "db.operation", &operation))
        operation = slice_of(NULL, 0);
    struct slice target = database_target(naming);
    if (operation.size > 0 && target.size > 0)
        return join(naming, operation, " ", target);
    return operation.size > 0 ? operation : target.size > 0 ? target : system;
}

static struct slice messaging_destination(struct naming *naming)
{
    struct slice destination;
    if (is_true(naming, "messaging.destination.temporary"))
        return slice_of_text("(temporary)");
    if (is_true(naming, "messaging.destination.anonymous"))
        return slice_of_text("(anonymous)");
    if (find(naming, "messaging.destination.template", NULL, &destination) ||
        find(naming, "messaging.destination.name", "messaging.destination", &destination))
        return destination;
    return server_name(naming);
}

static struct slice messaging_name(struct naming *naming)
{
    struct slice system, operation;
    if (!find(naming, "messaging.system", NULL, &system))
        return slice_of(NULL, 0);
    bool has_operation =
        find(naming, "messaging.operation.name", "messaging.operation", &operation);
    struct slice destination = messaging_destination(naming);
    if (has_operation && destination.size > 0)
        return join(naming, operation, " ", destination);
    return destination.size > 0 ? destination : has_operation ? operation : system;
}

static struct slice span_name(struct naming *naming, int64_t kind)
{
    struct slice name = slice_of(NULL, 0);
    if (kind == KIND_SERVER || kind == KIND_CLIENT) {
        name = http_name(naming, kind == KIND_SERVER ? "http.route" : "url.template");
        if (name.size == 0)
            name = rpc_name(naming);
    }
    if (kind == KIND_CLIENT && name.size == 0)
        name = database_name(naming);
    if (kind >= KIND_SERVER && kind <= KIND_CONSUMER && name.size == 0)
        name = messaging_name(naming);
    return name;
}

static bool set_semconv_span_name(struct ottl_call *call, struct ottl_value *ret)
{
    enum { NAME = 5, KIND = 6, ATTRIBUTES = 9 };
    static const struct ottl_path_row rows[] = {
        {.field = NAME}, {.field = KIND}, {.field = ATTRIBUTES}};
    const struct ottl_path name = {.row = &rows[0], .context = OTTL_SPAN, .slot = -1};
    const struct ottl_path kind = {.row = &rows[1], .context = OTTL_SPAN, .slot = -1};
    const struct ottl_path attributes = {.row = &rows[2], .context = OTTL_SPAN, .slot = -1};
    struct ottl_value old, value;
    struct naming naming = {.call = call};
    (void)ret;
    if (!ottl_get_text(call->run, &name, &old) ||
        !ottl_get_attributes(call->run, &attributes, &value))
        return false;
    naming.attributes = value.map;
    if (!ottl_get_enumeration(call->run, &kind, &value))
        return false;
    const struct ottl_value made = ottl_string(span_name(&naming, value.integer));
    if (naming.has_failed)
        return false;
    if (made.size == 0 || slice_equal(ottl_slice(&made), ottl_slice(&old)))
        return true;
    struct slice key;
    if (!ottl_set_text(call->run, &name, &made))
        return false;
    if (!ottl_has(call, ORIGINAL_NAME_PARAMETER))
        return true;
    return ottl_get_string(call, ORIGINAL_NAME_PARAMETER, &key) &&
           (ottl_map_put(naming.attributes, key, &old) || ottl_no_memory(call));
}

static const struct ottl_parameter span_name_parameters[] = {
    {"SemconvVersion", OTTL_TEXT_LITERAL, false, false},
    {"OriginalSpanNameAttribute", OTTL_TEXT_LITERAL, true, false},
    {.name = NULL}};

const struct ottl_function ottl_semconv_functions[] = {
    {.name = "set_semconv_span_name",
     .parameters = span_name_parameters,
     .evaluate = set_semconv_span_name,
     .prepare = prepare_span_name,
     .users = OTTL_FOR_TRANSFORM,
     .contexts = OTTL_CONTEXT_BIT(OTTL_SPAN)},
    {.name = NULL},
};
