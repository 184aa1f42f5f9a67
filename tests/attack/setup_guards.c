/* SPDX-License-Identifier: Apache-2.0 */
/* Receivers of OTLP that ask who is there: with TLS, with authenticators, with both. */
#include "tests/attack/drawing.h"

static void put_guard(struct drawing *drawing, const char *indent)
{
    static const char *const names[] = {"basicauth", "basicauth", "bearertokenauth"};
    bytes_add_format(drawing->out, "%sauth: {authenticator: %s}\n", indent,
                     names[drawn_below(drawing, 3)]);
}

static void put_protocols(struct drawing *drawing, const char *name, bool has_tls, bool has_guard)
{
    static const char *const protocols[][2] = {{"grpc", "GRPC"}, {"http", "HTTP"}};
    bytes_add_format(drawing->out, "  otlp/%s:\n    protocols:\n", name);
    for (unsigned i = 0; i < 2; i++) {
        bytes_add_format(drawing->out,
                         "      %s:\n        endpoint: 127.0.0.1:${env:ATTACK_%s%s}\n"
                         "        include_metadata: true\n",
                         protocols[i][0], has_tls ? "TLS" : "GUARDED", protocols[i][1]);
        if (has_tls)
            put(drawing, "        tls: {cert_file: '${env:ATTACK_CERTIFICATE}', "
                         "key_file: '${env:ATTACK_CERTIFICATE}'}\n");
        if (has_guard)
            put_guard(drawing, "        ");
    }
}

void put_guarded_receivers(struct drawing *drawing)
{
    put_protocols(drawing, "guarded", false, true);
    put_protocols(drawing, "tls", true, drawn_below(drawing, 4) == 0);
}

/* The password is hello everywhere; s and t take long. */
void put_authenticators(struct drawing *drawing)
{
    static const char *const lines[] = {
        "      u:$$2b$$04$$abcdefghijklmnopqrstuuwHJMEGjfAzmL1lWmUmlphguIbWfjYey\n",
        "      v:{SHA}qvTGHdzF6KLavt4PO0gs2a6pQ00=\n",
        "      w:$$apr1$$abcdefgh$$cy3DSYyOwfhsyu7QOMQzd.\n",
        "      s:$$2b$$12$$abcdefghijklmnopqrstuuW3FogT0WLDxqwgLK23cI..2q07im5LG\n",
        "      t:$$6$$rounds=400000$$abcdefgh$$HXwDPmgVILTLG28iyal8Az1ugOAodIjjuczUdN38iqkPD/"
        "11GXkf9SBVeB9Y4jDkzTtYMEx91scFb2z3g96D51\n",
        NULL,
    };
    put(drawing, "  basicauth:\n    htpasswd:\n     inline: |\n");
    put_lines(drawing, lines, 3, 4, true);
    put(drawing, "  bearertokenauth:\n    tokens: [sesame, simsim]\n");
}
