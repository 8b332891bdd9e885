"""Program that fetches a dataset with mtdata and prints it as JSON lines.

The first line contains the origin. Every other line is a row: source, target and, in some datasets, a metadata mapping.
The program runs in a separate environment. It must not import docmt, which is not installed there.
"""

import json
import sys

from mtdata import __version__, cache_dir  # pyright: ignore[reportMissingImports]
from mtdata.cache import Cache  # pyright: ignore[reportMissingImports]
from mtdata.entry import DatasetId  # pyright: ignore[reportMissingImports]
from mtdata.index import INDEX  # pyright: ignore[reportMissingImports]
from mtdata.parser import Parser  # pyright: ignore[reportMissingImports]

name = DatasetId.parse(sys.argv[1])
if name not in INDEX:
    sys.exit(f"mtdata {__version__} has no dataset {name}: `mtdata list -id` prints all")
entry = INDEX[name]
rows = Parser(Cache(cache_dir).get_entry(entry), ext=entry.in_ext or None, ent=entry).read_segs(show_pbar=False)
urls = [entry.url] if isinstance(entry.url, str) else list(entry.url)
citations = [INDEX.ref_db.get_bibtex(key) for key in entry.cite or ()]
print(json.dumps({"id": str(name), "mtdata": __version__, "urls": urls, "citations": citations}))
for row in rows:
    print(json.dumps(row))
