#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The schemas of docs/documents against the C++ code and the shipped files.

    check_schemas.py DOCUMENTS_TOOL SOURCE_DIR

1. Every schema is a valid one, describes every field and admits no unknown key; the example has every field.
2. Examples that the C++ code wrote, those of docs/documents.md and every file under profiles/ (but usual/) and plans/ conform.
3. Of some thousand damaged examples, reader and schema refuse the same ones. A rule that no schema can
   state (k_reader_only) is the reader's alone.
"""
import copy
import json
import pathlib
import re
import subprocess
import sys

try:
    import jsonschema
except ImportError:
    print("skipped: the Python module jsonschema is missing (Debian: python3-jsonschema)")
    sys.exit(77)

KINDS = ["profile", "workload", "roles", "plan", "report", "requirements"]

# Messages about what lies beyond one value: sums, references, order, names that occur twice.
k_reader_only = re.compile("|".join([
    "must hold",
    "a repeat is of numbers before it",
    r"of this repeat -?\d+; must be at",
    r"makes more than \d+ numbers",
    "occurs twice",
    "no machine and no topology object has the id",
    "no entry of /machines has the id",
    "is the id of a machine; (rename|call)",
    r"names \d+ machines, but count is",
    "no object before this one has the id",
    "no object of this topology has the id",
    "must stand after .* among the objects",
    "is in another machine than",
    r"is \d+, but there are \d+ samples",
    "but that of the samples is",
    r"below from_bytes",
    "but the segment before ends at",
    "below bound_seconds",
    "not to mid_seconds",
    "but the run before ends at",
    "ends ascend and are at most",
    "beyond gradient_bytes",
    "as gradients are without it",
    "the number of (workers|machines that work)",
    "is for machines with equally many workers",
    r"must name, for each of the \d+ workers of a machine",
    r"leads from worker \d+ to (no|another) head",
    r"is machine tree \d+, but there are",
    "is not the head of machine tree",
    "more than the",
    "is impossible; must be",
    "more than its ranks",
    "no machine has so many",
    "multiples of",
    "no multiple of",
    "the columns differ in length",
    r"is rank \d+, but there are",
    r"is lane \d+, but rank",
    r"is (tree|way) \d+, but there are",
    "is not the root of tree",
    "leads round in a circle",
    r"has \d+ entries for \d+ ranks",
    r"has \d+ entries, bytes has",
    r"has \d+ places for \d+ lanes",
    r"but there are \d+ endpoints",
    "names trees, but the plan has none",
    "names tensors, but the plan has no routing tables",
    'the key "(tensors|queues)" is missing',
    "which is no rank",
    r"has parts \d+ to \d+, but there are",
    'the key "tree" is missing',
    "come to .* bytes, its assigned_bytes",
    "must have every worker's rank once",
    "no part covers",
    "is the first byte that no other part covers",
    "lies outside of /runs",
    "beyond the end",
    "above 2\\^53 bytes",
    "must be less, so that computation has some",
    "no layer has the tensor",
    "no entry of /tensors has the name",
    "no layer after this one has the name",
]))

failures = []


def check(condition, text):
    if not condition:
        failures.append(text)


def tool(task, documents=()):
    lines = "".join(json.dumps(d) + "\n" for d in documents)
    done = subprocess.run([sys.argv[1], task], input=lines, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def follow(schema, root):
    while "$ref" in schema:
        schema = root["$defs"][schema["$ref"].split("/")[-1]]
    return schema


def described(schema, root, where):
    """Every field has a description; every object says which keys it may have."""
    for key, field in schema.get("properties", {}).items():
        check(field.get("description"), f"{where}/{key}: no description")
        described(field, root, f"{where}/{key}")
    if schema.get("type") == "object":
        check("additionalProperties" in schema, f"{where}: admits unknown keys")
    if "items" in schema:
        described(schema["items"], root, f"{where}/items")


def unused(schema, root, documents, where=""):
    """Fields of the schema that no example has."""
    schema = follow(schema, root)
    for key, field in schema.get("properties", {}).items():
        values = [d[key] for d in documents if isinstance(d, dict) and key in d]
        if values:
            yield from unused(field, root, values, f"{where}/{key}")
        else:
            yield f"{where}/{key}"
    if "items" in schema:
        yield from unused(schema["items"], root, [e for d in documents for e in d], f"{where}/items")


def in_documentation(text):
    """The JSON blocks of docs/documents.md: (kind by the heading above, document). Long ones are shortened there."""
    kind = None
    for match in re.finditer(r"^## (\w+)$|^```json\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        if match[1]:
            kind = match[1].lower()
        else:
            yield kind, json.loads(match[2])


def damaged(document):
    """Copies of `document` with one value removed, of another type, or out of range."""
    def places(value, path):
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, member in items:
            yield path + [key]
            yield from places(member, path + [key])

    strange = [None, True, False, -1, 0, 0.5, 1, 5000, 2**53 + 2, "", "x", "Ümlaut\n", "m0", "seconds", [], [0], {},
               {"x": 1}, "failed", "ok", "noisy", "published", "machine", "y" * 300]
    for path in places(document, []):
        for value in ["remove"] + strange:
            changed = copy.deepcopy(document)
            target = changed
            for step in path[:-1]:
                target = target[step]
            if value == "remove":
                del target[path[-1]]
            elif type(target[path[-1]]) is type(value) and target[path[-1]] == value:
                continue
            else:
                target[path[-1]] = value
            yield path, value, changed


def main():
    source = pathlib.Path(sys.argv[2])
    schemas = {k: json.loads((source / f"docs/documents/{k}.schema.json").read_text()) for k in KINDS}
    validators = {}
    for kind, schema in schemas.items():
        jsonschema.Draft202012Validator.check_schema(schema)
        validators[kind] = jsonschema.Draft202012Validator(schema)
        described(schema, schema, kind)
        for name, definition in schema.get("$defs", {}).items():
            described(definition, schema, f"{kind}/{name}")

    examples = {k: json.loads(json.loads(line)) for k, line in zip(KINDS, tool("examples"))}
    documents = [(f"example {k}", d) for k, d in examples.items()]
    for folder in ("profiles", "plans"):
        for path in sorted(p for p in (source / folder).rglob("*.json") if p.parent.name != "usual"):
            documents.append((str(path.relative_to(source)), json.loads(path.read_text())))
    shown = list(in_documentation((source / "docs/documents.md").read_text()))
    check({kind for kind, _ in shown} == set(KINDS), f"docs/documents.md shows {[kind for kind, _ in shown]}")
    whole = [document for kind, document in shown if "schema" in document]
    for document, verdict in zip(whole, tool("verdicts", whole)):
        check(verdict == "ok", f"docs/documents.md: {document['schema']}: {verdict}")
    for kind, document in shown:
        schema = schemas[kind] if "schema" in document else {**schemas[kind], "required": []}
        for error in jsonschema.Draft202012Validator(schema).iter_errors(document):
            check(False, f"docs/documents.md: {kind}: {error.message}")

    for where, document in documents:
        kind = document.get("schema", "").removeprefix("reckon/")
        if kind not in validators:
            check(False, f"{where}: schema is {document.get('schema')!r}")
            continue
        for error in validators[kind].iter_errors(document):
            pointer = "".join(f"/{step}" for step in error.absolute_path)
            check(False, f"{where}: {pointer or '/'}: {error.message}")

    for kind, example in examples.items():
        missing = list(unused(schemas[kind], schemas[kind], [example]))
        check(not missing, f"{kind}: no example has {missing}")

    tried = reader_alone = 0
    for kind, example in examples.items():
        cases = list(damaged(example))
        for (path, value, changed), verdict in zip(cases, tool("verdicts", [c[2] for c in cases])):
            tried += 1
            valid = validators[kind].is_valid(changed)
            at = f"{kind}: {'/'.join(map(str, path))} = {value!r}"
            check(not verdict.startswith("not an input error"), f"{at}: {verdict}")
            # What is wrong at the document's root has the file's name alone before it.
            placed = "f.json: " if len(path) == 1 else "f.json: /"
            check(verdict == "ok" or verdict.startswith(placed), f"{at}: no pointer: {verdict}")
            if verdict != "ok" and valid:
                reader_alone += 1
                check(k_reader_only.search(verdict), f"{at}: the schema admits it, the reader says: {verdict}")
            check(valid or verdict != "ok", f"{at}: the reader admits what the schema refuses")

    for failure in failures[:40]:
        print(failure)
    print(f"{len(documents)} documents, {tried} damaged ones ({reader_alone} refused by the reader alone): "
          f"{len(failures)} failures")
    sys.exit(1 if failures else 0)


main()
