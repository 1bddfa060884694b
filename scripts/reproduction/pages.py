# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/results. Rows are in CSV files beside a page, NAME.csv or NAME-TABLE.csv; the page's one table sums them up, and people
write the rest of it. A computed page says how each row is made, so that any of them can be made again and compared."""

import collections
import concurrent.futures
import csv
import dataclasses
import math
import pathlib
import re
import tempfile
import threading
import time
import typing

from reproduction.lab import ROOT, say, table

DOCUMENTS = ROOT / "docs/results"
AT_ONCE = 2  # rows that are computed
CLOSE = 1e-4  # relative: six digits are written, and compilers round differently
CLOSE_PERCENT = 0.005


class Job(typing.NamedTuple):
    """One row: what names it, and compute(folder of its own) -> what it says."""
    key: dict
    compute: typing.Callable[[pathlib.Path], dict]


@dataclasses.dataclass
class Page:
    name: str
    tables: tuple  # names; "" is NAME.csv
    summary: typing.Callable  # rows by table -> (headers, rows)
    jobs: typing.Callable | None = None  # of a computed page: folder -> jobs by table
    pictures: typing.Callable | None = None  # (folder, rows by table)
    sparse: int = 1  # so many times fewer rows in a sample: they take long
    limited: tuple = ()  # columns that are empty where a time limit ended the computation

    def file(self, name, folder=DOCUMENTS):
        return folder / f"{self.name}{'-' if name else ''}{name}.csv"

    def document(self, folder=DOCUMENTS):
        return folder / f"{self.name}.md"

    def rows(self, folder=DOCUMENTS):
        """By table, from a folder or else from docs/results."""
        return {name: read(self.file(name, folder) if self.file(name, folder).exists() else self.file(name)) for name in self.tables}


def text(value):
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def as_text(row):
    return {column: text(value) for column, value in row.items()}


def write(path, rows):
    """Columns in the order in which rows first have them."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(as_text(row) for row in rows)


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def with_table(document, new):
    """A page with another table in the place of its first."""
    found = re.search(r"(?:^\|.*\n?)+", document, re.MULTILINE)
    if not found:
        raise ValueError("the page has no table")
    return document[:found.start()] + new.rstrip("\n") + "\n" + document[found.end():]


def renewed(page, rows):
    """The page's text with the table that these rows give."""
    return with_table(page.document().read_text(), table(*page.summary(rows)))


def publish(page, rows, folder):
    """Writes CSV files and the page with its table renewed; tables that are not among the rows stay as they are in docs/results."""
    for name, some in rows.items():
        write(page.file(name, folder), some)
    page.document(folder).write_text(renewed(page, page.rows(folder)))
    if page.pictures:
        page.pictures(folder, page.rows(folder))
    print(page.document(folder).read_text())
    say(f"written: {page.document(folder)} and its CSV files" + (
        "; to publish, copy them to docs/results" if folder != DOCUMENTS else ""))


def leave(folder, name, title, about, rows, shown=12, by=None):
    """What no page of docs/results is about: a CSV file, and a page that shows a few rows, those greatest `by` first."""
    write(folder / f"{name}.csv", rows)
    some = [as_text(r) for r in (sorted(rows, key=by, reverse=True) if by else rows)[:shown]]
    columns = list(dict.fromkeys(column for row in some for column in row))
    lines = [f"# {title}", "", table(columns, [[row.get(c, "") for c in columns] for row in some]), "",
             about + (f" {len(rows)} rows are in {name}.csv." if len(rows) > shown else ""), "", f"    scripts/reproduce {name}"]
    (folder / f"{name}.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    say(f"written: {folder}/{name}.md and .csv")


def computed(page, wanted=lambda number: True):
    """Its rows by table, or those of each table whose number is wanted; several at once."""
    made, lock, done = collections.defaultdict(list), threading.Lock(), 0
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        jobs = [(name, job) for name, some in page.jobs(folder).items() for number, job in enumerate(some) if wanted(number)]

        def one(number, job):
            nonlocal done
            own = folder / f"row-{number}"
            own.mkdir()
            start = time.monotonic()
            row = {**job.key, **job.compute(own)}
            with lock:
                done += 1
                say(f"{page.name} {done}/{len(jobs)}: {' '.join(text(v) for v in job.key.values())}: {time.monotonic() - start:.1f} s")
            return as_text(row)

        with concurrent.futures.ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
            futures = [(name, pool.submit(one, number, job)) for number, (name, job) in enumerate(jobs)]
            try:
                for name, future in futures:
                    made[name].append(future.result())
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
    return made


def differs(column, one, other):
    if one == other:
        return False
    try:
        apart, most = abs(float(one) - float(other)), max(abs(float(one)), abs(float(other)))
    except ValueError:
        return True
    return apart > max(CLOSE * most, CLOSE_PERCENT if column.endswith("_percent") else 0)


def compared(page, sample=0):
    """What of a computed page is not what its CSV files say: all rows, or one in `sample` * page.sparse of each table."""
    step = sample * page.sparse  # the second row of every so many
    keys = {name: [as_text(job.key) for job in jobs] for name, jobs in keys_of(page).items()}
    found = []
    made = computed(page, (lambda number: number % step == 1 % step) if step else lambda number: True)
    for name, of_table in keys.items():
        file = page.file(name)
        old = {tuple(row[c] for c in of_table[0]): row for row in read(file)} if of_table else {}
        for row in made[name]:
            key = tuple(row[c] for c in of_table[0])
            label = " ".join(k for k in key if k)
            if key not in old:
                found.append(f"{file.name}: {label}: no such row")
                continue
            for column, value in row.items():
                was = old[key].get(column, "")
                if differs(column, was, value) and not (column in page.limited and "" in (was, value)):
                    found.append(f"{file.name}: {label}: {column}: '{was}' on the page, '{value}' computed")
        for key in old.keys() - {tuple(k.values()) for k in of_table}:
            found.append(f"{file.name}: {' '.join(key)}: a row that nothing computes")
    return found


def keys_of(page):
    with tempfile.TemporaryDirectory() as place:
        return page.jobs(pathlib.Path(place))


def stale(page):
    """Whether the page's table is not what its CSV files give."""
    document = page.document().read_text()
    return [] if renewed(page, page.rows()) == document else [
        f"{page.document().name}: its table is not that of its CSV files; scripts/reproduce pages renews it"]


def make(page, folder):
    publish(page, computed(page), folder)


def experiment(page):
    """For EXPERIMENTS: computes the page."""
    return {page.name: lambda arguments, folder: make(page, folder)}


# ---------------------------------------------------------------- for summaries

def number(row, column):
    return float(row[column])


def grouped(rows, *columns):
    """Rows by their values of these columns, in order."""
    groups = {}
    for row in rows:
        groups.setdefault(tuple(row[c] for c in columns), []).append(row)
    return groups


def quantile(values, q):
    return sorted(values)[max(0, math.ceil(q * len(values)) - 1)]


def digits(value, count=4):
    return f"{value:.0f}" if abs(value) >= 10 ** (count - 1) else f"{value:.{count}g}"


def error_row(label, rows, predicted, measured):
    """How far measurements are from predictions: a row for ERRORS. Times in a CSV file may be rounded more than a row's own error."""
    errors = [number(r, "error_percent") if r.get("error_percent") else 100 * (number(r, measured) / number(r, predicted) - 1) for r in rows]
    sizes = [abs(e) for e in errors]
    return (label, len(rows), f"{quantile(sizes, 0.5):.1f} %", f"{quantile(sizes, 0.95):.1f} %", f"{max(errors, key=abs):+.1f} %")


ERRORS = ("", "plans", "median error", "95 % of plans at most", "greatest")
