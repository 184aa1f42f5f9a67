/* SPDX-License-Identifier: Apache-2.0 */
/* Words of responses. Any thread. */
#include "src/net/client/response_words.h"

#include "src/net/client/http_post.h"
#include "src/net/client/request_secrets.h"

#include <stdio.h>

void response_words(const struct http_result *result, const struct request_secrets *secrets,
                    char words[RESPONSE_WORDS_MAX + 1])
{
    /* More than is shown, so that a secret at its end is found whole. */
    char text[4 * RESPONSE_WORDS_MAX];
    size_t size = 0;
    size_t others = 0;
    for (size_t i = 0; i < result->body.size && size < sizeof(text) - 1; i++) {
        uint8_t byte = result->body.data[i];
        bool is_blank = byte == ' ' || (byte >= '\t' && byte <= '\r');
        others += !is_blank && (byte < ' ' || byte >= 0x7f);
        if (!is_blank)
            text[size++] = byte > ' ' && byte < 0x7f ? (char)byte : '?';
        else if (size > 0 && text[size - 1] != ' ')
            text[size++] = ' ';
    }
    size -= size > 0 && text[size - 1] == ' ';
    text[others > size / 2 ? 0 : size] = '\0';
    request_secrets_redact(secrets, text, sizeof(text));
    snprintf(words, RESPONSE_WORDS_MAX + 1, "%.*s", RESPONSE_WORDS_MAX, text);
}
