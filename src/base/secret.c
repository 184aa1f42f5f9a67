/* SPDX-License-Identifier: Apache-2.0 */
/* Compares secrets in constant time; wipes those that are freed. Any thread. */
#include "src/base/secret.h"

#include <assert.h>
#include <string.h>

#include "src/base/mem.h"

bool secret_equal(struct slice presented, struct slice expected)
{
    static const uint8_t nothing;
    assert(presented.data != NULL || presented.size == 0);
    assert(expected.data != NULL || expected.size == 0);
    volatile uint8_t difference = presented.size != expected.size;
    const uint8_t *other = expected.size > 0 ? expected.data : &nothing;
    size_t period = expected.size > 0 ? expected.size : 1;
    for (size_t i = 0, j = 0; i < presented.size; i++) {
        difference = difference | (uint8_t)(presented.data[i] ^ other[j]);
        j++;
        j &= (size_t)0 - (size_t)(j < period); /* back to 0 without a branch */
    }
    return difference == 0;
}

void secret_free(char *text)
{
    if (text == NULL)
        return;
    explicit_bzero(text, strlen(text));
    mem_free(text);
}
