/* SPDX-License-Identifier: Apache-2.0 */
/* Edits of headers. Any thread. */
#include "src/net/client/request_edits.h"

#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/base/secret.h"
#include "src/base/slice.h"
#include "src/config/field.h"
#include "src/net/client/grpc_metadata.h"
#include "src/net/syntax/http1_chars.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

void request_edits_begin(struct request_edits *edits, bool is_grpc)
{
    edits->place = is_grpc ? 0 : edits->count;
}

void request_edits_add(struct request_edits *edits, enum request_edit_action action,
                       const char *name, const char *value)
{
    assert(edits->place <= edits->count);
    edits->list = mem_resize(edits->list, (edits->count + 1) * sizeof(*edits->list));
    struct request_edit *edit = edits->list + edits->place;
    memmove(edit + 1, edit, (edits->count - edits->place) * sizeof(*edit));
    *edit = (struct request_edit){
        .action = action, .name = mem_copy_text(name), .value = mem_copy_text(value)};
    edits->count++;
    edits->place++;
}

void request_edits_fini(struct request_edits *edits)
{
    for (size_t i = 0; i < edits->count; i++) {
        mem_free(edits->list[i].name);
        secret_free(edits->list[i].value);
    }
    mem_free(edits->list);
    *edits = (struct request_edits){.count = 0};
}

bool request_edits_check(const struct request_edits *edits, bool is_grpc, const char **ret_name)
{
    size_t bytes = 0;
    for (size_t i = 0; i < edits->count; i++) {
        const struct request_edit *edit = &edits->list[i];
        const struct config_pair pair = {.key = edit->name, .value = edit->value};
        struct slice name = slice_of_text(edit->name);
        struct slice value = slice_of_text(edit->value);
        struct error ignored;
        *ret_name = edit->name;
        bytes += name.size + value.size;
        if (bytes > REQUEST_EDITS_BYTES_MAX)
            return false;
        if (is_grpc ? !grpc_metadata_check(&pair, 1, &ignored)
                    : !http1_is_token(name) || !http1_is_all(value, HTTP1_VALUE))
            return false;
    }
    return true;
}

static size_t find(const struct config_pair *rows, size_t count, const char *name)
{
    size_t at = 0;
    while (at < count && strcasecmp(rows[at].key, name) != 0)
        at++;
    return at;
}

size_t request_edits_apply(const struct request_edits *edits, bool is_grpc,
                           struct config_pair *rows, size_t count)
{
    assert(rows != NULL || edits->count == 0);
    for (size_t i = 0; i < edits->count; i++) {
        const struct request_edit *edit = &edits->list[i];
        size_t at = find(rows, count, edit->name);
        bool is_there = at < count;
        bool has_value = is_there && (is_grpc || rows[at].value[0] != '\0');
        if (edit->action == EDIT_DELETE) {
            if (is_there)
                memmove(rows + at, rows + at + 1, (--count - at) * sizeof(*rows));
        } else if (edit->action == EDIT_UPSERT || has_value == (edit->action == EDIT_UPDATE)) {
            rows[at] = (struct config_pair){.key = edit->name, .value = edit->value};
            count += !is_there;
        }
    }
    return count;
}
