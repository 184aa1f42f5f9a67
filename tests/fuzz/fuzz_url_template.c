/* SPDX-License-Identifier: Apache-2.0 */
/* Any string as a template, with any bytes behind its zero byte as the value of all its places:
 * what is written is a URL without blanks, its values nothing but unreserved characters and
 * escapes. */
#include <assert.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/join/url_template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_written(const struct url_template *template, struct slice value)
{
    uint8_t room[URL_BYTES_MAX];
    struct url_values values = {.texts = {{.data = NULL}}};
    struct slice url = url_template_write(template, &values, room);
    for (size_t i = 0; i < template->count; i++)
        assert(url.data == NULL || template->pieces[i].text.data != NULL);
    for (unsigned i = 0; i < URL_VALUES; i++)
        values.texts[i] = value;
    url = url_template_write(template, &values, room);
    assert(url.size <= URL_BYTES_MAX);
    assert(url.data == NULL || (url.size >= 7 && memcmp(url.data, "http", 4) == 0));
    for (size_t i = 0; i < url.size; i++)
        assert(url.data[i] > ' ' && url.data[i] < 0x7f);
}

static void check(const char *text, struct slice value)
{
    struct url_template template;
    struct error error = {.text = ""};
    if (!url_template_read(text, UINT_MAX, &template, &error)) {
        assert(error.text[0] != '\0');
        return;
    }
    assert(template.count <= URL_PIECES_MAX);
    assert((template.count == 0) == (text[0] == '\0'));
    if (template.count > 0)
        check_written(&template, value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = mem_alloc(size + 1);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    size_t used = strlen(text);
    check(text, used < size ? slice_of(data + used + 1, size - used - 1) : slice_of_text("v"));
    mem_free(text);
    return 0;
}
