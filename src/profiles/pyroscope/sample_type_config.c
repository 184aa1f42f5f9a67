/* SPDX-License-Identifier: Apache-2.0 */
/* Display names out of JSON. Pure functions; any thread. */
#include "src/profiles/pyroscope/sample_type_config.h"

#include "src/base/error.h"
#include "src/profiles/pyroscope/json_walk.h"

#include <assert.h>

static void read_entry(struct json_walk *walk, struct slice *ret_name)
{
    struct json_string key;
    struct json_string text;
    assert(ret_name != NULL);
    if (!json_walk_object(walk))
        return;
    while (json_walk_key(walk, &key)) {
        if (!json_walk_is(&key, "display-name"))
            json_walk_skip(walk);
        else if (json_walk_text(walk, &text) && text.raw.size > 0)
            *ret_name = text.raw;
    }
}

bool sample_type_config_display_name(struct slice json, struct slice type, struct slice *ret_name,
                                     struct error *error)
{
    assert(ret_name != NULL);
    struct json_walk walk = json_walk_of(json);
    struct json_string key;
    *ret_name = type;
    if (json_walk_object(&walk)) {
        while (json_walk_key(&walk, &key)) {
            if (!key.has_escapes && slice_equal(key.raw, type))
                read_entry(&walk, ret_name);
            else
                json_walk_skip(&walk);
        }
    }
    return json_walk_end(&walk) || error_set(error, "sample_type_config: %s", walk.failure);
}
