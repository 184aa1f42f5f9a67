/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the response of a token endpoint, in each format: what is read is text, and a header
 * made of it is one. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "extensions/oauth2_response.h"
#include "src/base/secret.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(struct slice body, enum oauth2_format format)
{
    struct oauth2_response response;
    if (oauth2_response_read(body, format, &response)) {
        assert(strlen(response.access_token) <= body.size);
        char *value = oauth2_response_authorization(&response);
        assert(value == NULL || strpbrk(value, "\r\n") == NULL);
        secret_free(value);
    }
    assert(response.error != NULL && response.error_description != NULL);
    oauth2_response_fini(&response);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice body = slice_of(data, size);
    check(body, OAUTH2_JSON);
    check(body, OAUTH2_FORM);
    (void)oauth2_format_of(body);
    return 0;
}
