"""Program that fetches a dataset of mtdata and prints it as lines of JSON.

The first line contains the origin. The other lines contain rows of source, target and, in some datasets, a mapping of
metadata. After a failure, the last line contains the error. The program runs in an environment with mtdata and without
docmt, so it does not import docmt.
"""

import json
import sys

from mtdata import __version__, cache_dir  # pyright: ignore[reportMissingImports]
from mtdata.cache import Cache  # pyright: ignore[reportMissingImports]
from mtdata.entry import DatasetId  # pyright: ignore[reportMissingImports]
from mtdata.index import INDEX  # pyright: ignore[reportMissingImports]
from mtdata.parser import Parser  # pyright: ignore[reportMissingImports]

problem, remedy = "is not in mtdata", "`mtdata list -id` prints all ids"
try:
    name = DatasetId.parse(sys.argv[1])
    if name not in INDEX:
        raise LookupError(f"no such dataset in version {__version__}")
    entry = INDEX[name]
    problem, remedy = "cannot be downloaded", "try again later, or declare files of yours in `corpora.custom`"
    files = Cache(cache_dir).get_entry(entry)
    problem, remedy = "cannot be parsed by mtdata", f"declare its files in `corpora.custom`: {files}"
    rows = Parser(files, ext=entry.in_ext or None, ent=entry).read_segs(show_pbar=False)
    urls = [entry.url] if isinstance(entry.url, str) else list(entry.url)
    citations = [INDEX.ref_db.get_bibtex(key) for key in entry.cite or ()]
    print(json.dumps({"id": str(name), "mtdata": __version__, "urls": urls, "citations": citations}))
    for row in rows:
        print(json.dumps(row))
except Exception as error:  # mtdata also raises AssertionError and Exception
    print(json.dumps({"error": f"{problem} ({type(error).__name__}: {error}): {remedy}"}))
