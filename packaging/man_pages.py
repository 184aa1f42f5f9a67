#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the man pages spanflame.1 and spanflame.yaml.5 from what the program prints of its own tables.

usage: man_pages.py PROGRAM DIRECTORY
spanflame.1 is made of `--help`, `profile help` and `journal help`, spanflame.yaml.5 of `config-reference`."""

import pathlib
import re
import subprocess
import sys

EXAMPLE = """\
receivers:
  otlp: {protocols: {grpc: {}, http: {}}}
exporters:
  otlp_http: {endpoint: "http://tempo:4318"}
service:
  pipelines:
    traces: {receivers: [otlp], exporters: [otlp_http]}"""


def escaped(text):
    """Text as roff prints it, with `code` in bold."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    text = re.sub(r"`([^`]*)`", r"\\fB\1\\fR", text)
    return "\n".join("\\&" + line if line[:1] in (".", "'") else line for line in text.split("\n"))


def literal(text):
    return f".nf\n{escaped(text)}\n.fi"


def entries(lines):
    """"  name   help" of a help text as a list of terms."""
    out = []
    for line in lines:
        name, _, text = line.strip().partition("  ")
        out.append(f".TP\n\\fB{escaped(name)}\\fR\n{escaped(text.strip())}")
    return "\n".join(out)


def sections(text):
    """The parts of a help text by their headings: "Flags:" and the lines below it."""
    parts = {}
    for block in text.strip().split("\n\n"):
        heading, *lines = block.split("\n")
        if heading.endswith(":") and lines:
            parts[heading[:-1]] = lines
    return parts


def head(title, section, version):
    # Not justified: long keys and messages cannot be.
    return f'.TH {title} {section} "" "spanflame {version}"\n.ad l'


def program_page(version, help_text, profile_text, journal_text):
    main, profile, journal = (sections(text) for text in (help_text, profile_text, journal_text))
    return "\n".join([
        head("SPANFLAME", 1, version),
        ".SH NAME\nspanflame \\- OpenTelemetry pipeline daemon",
        ".SH SYNOPSIS\n\\fBspanflame\\fR \\-\\-config \\fIFILE\\fR [\\fIflags\\fR]\n.br",
        "\\fBspanflame\\fR \\fICOMMAND\\fR [\\fIflags\\fR]",
        ".SH DESCRIPTION\nReceives traces, metrics, logs and profiles, batches and edits them, and "
        "exports them, as the\nconfiguration file says. Its keys are in \\fBspanflame.yaml\\fR(5).",
        f".SH COMMANDS\n{entries(main['Commands'])}",
        f".SH OPTIONS\n{entries(main['Flags'])}",
        f".SH PROFILE VERBS\n{entries(profile['Verbs'])}",
        f".SH PROFILE OPTIONS\n{entries(profile['Flags'])}",
        f".SH JOURNAL VERBS\n{entries(journal['Verbs'])}",
        f".SH JOURNAL OPTIONS\n{entries(journal['Flags'])}",
        ".SH SIGNALS\n.TP\n\\fBSIGTERM\\fR, \\fBSIGINT\\fR\nStop: what is in flight is exported "
        "first, for at most service::drain_timeout.\n.TP\n\\fBSIGHUP\\fR\nRead the configuration "
        "again. An invalid one is reported, and the old one goes on.",
        ".SH EXIT STATUS\n0 after a stop by signal and after success, 1 after an error."
        "\n.br\n\\fBmigrate\\fR: 1 if something is left out, 2 after an error."
        "\n.br\n\\fBjournal\\fR: 1 if something is damaged (verify, export), 2 after an error.",
        ".SH FILES\n.TP\n\\fI/etc/spanflame/config.yaml\\fR\nThe configuration of the service."
        "\n.TP\n\\fI/etc/default/spanflame\\fR\nThe options of the service.",
        ".SH SEE ALSO\n\\fBspanflame.yaml\\fR(5)",
    ]) + "\n"


def cells(row):
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", row.strip())[1:-1]]


def configuration_page(version, reference):
    out = [
        head("SPANFLAME.YAML", 5, version),
        ".SH NAME\nspanflame.yaml \\- configuration of spanflame",
        ".SH DESCRIPTION\nKeys, defaults and meanings are those of the OpenTelemetry Collector 0.155. "
        "Nested keys are\nwritten with `::` here. Every section that is not always on takes "
        "\\fBenabled: true\\fR or \\fBenabled: false\\fR.\nA key has its type, its default and what "
        "is allowed in parentheses.".replace("`::`", "\\fB::\\fR"),
        f".SH EXAMPLE\n{literal(EXAMPLE)}",
    ]
    for line in reference.split("\n")[1:]:
        if line.startswith("## "):
            out.append(f".SH {escaped(line[3:].upper())}")
        elif line.startswith("### "):
            out.append(f".SS {escaped(line[4:])}")
        elif line.startswith("| `"):
            key, kind, default, allowed, text = cells(line)
            facts = [kind, *([f"default {default}"] if default else []), *([allowed] if allowed else [])]
            out.append(f".TP\n{escaped(key)} ({escaped(', '.join(facts))})\n{escaped(text) or '.br'}")
        elif line and not line.startswith(("|", "Printed from", "Nested keys")):
            out.append(("" if out[-1].startswith(".S") else ".PP\n") + escaped(line))
    out.append(".SH SEE ALSO\n\\fBspanflame\\fR(1)")
    return "\n".join(out) + "\n"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    program, directory = sys.argv[1], pathlib.Path(sys.argv[2])

    def printed(*arguments):
        done = subprocess.run([program, *arguments], check=True, capture_output=True, text=True)
        return done.stdout

    version = printed("--version").split()[-1]
    page = program_page(version, printed("--help"), printed("profile", "help"), printed("journal", "help"))
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "spanflame.1").write_text(page, encoding="utf-8")
    page = configuration_page(version, printed("config-reference"))
    (directory / "spanflame.yaml.5").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
