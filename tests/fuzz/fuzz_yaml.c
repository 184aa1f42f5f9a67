/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes are a whole configuration file: YAML, references, option tables, graph; what loads is
 * printed too. Files are in memory and nothing opens a socket. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>

#include "src/config/config.h"
#include "src/config/rewrite.h"
#include "tests/unit/config/support.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const location = "otel.yaml";
    struct config_request request = {
        .locations = &location, .locations_count = 1, .factories = fake_factories};
    struct config_problems problems;
    memory_files_set_bytes(data, size);
    struct config *config = config_load(&request, &problems);
    assert((config == NULL) == (problems.count > 0));
    config_problems_clear(&problems);
    if (config != NULL) {
        FILE *out = fopen("/dev/null", "w");
        assert(out != NULL);
        assert(config_print(&request, false, size % 2 == 0, out, &problems));
        fclose(out);
        config_problems_clear(&problems);
    }
    config_destroy(config);
    /* Once more, without what is not supported; cut from the text if that is possible. */
    request.skips_unsupported = true;
    config = config_load(&request, &problems);
    assert((config == NULL) == (problems.count > 0));
    config_problems_clear(&problems);
    if (config != NULL) {
        struct error error;
        FILE *out = fopen("/dev/null", "w");
        assert(out != NULL);
        config_rewrite(slice_of(data, size), config, out, &error);
        fclose(out);
    }
    config_destroy(config);
    memory_files_set(NULL);
    return 0;
}
