#!/usr/bin/env python3
"""Fails if modules of a crate use each other in a circle.

    scripts/module_cycles.py CRATE...

Modules are the top-level ones of each crate (`foo.rs` with everything below `foo/`). A module uses
another one where its code, apart from tests, has a path that begins with `crate::`. What `lib.rs`
exports counts as a use of the module that it comes from.
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
PATH = re.compile(r"\bcrate::(\{[^;]*?\}|\w+)", re.DOTALL)
EXPORT = re.compile(r"pub(?:\(\w+\))? use (?:self::|crate::)?(\w+)::(?:\{([^}]*)\}|([\w:]+));")
TESTS = re.compile(r"#\[cfg\(test\)\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\(\w+\))? )?mod \w+ \{.*\Z", re.DOTALL)


def code(path):
    """The text of a file without comments, strings and the tests at its end."""
    return STRING.sub('""', COMMENT.sub("", TESTS.sub("", path.read_text())))


def names(group):
    """The first segments of `{a::b, c::{d, e}, f}`."""
    depth, start, found = 0, 1, []
    for at, letter in enumerate(group):
        depth += (letter == "{") - (letter == "}")
        if (letter == "," and depth == 1) or at == len(group) - 1:
            word = re.match(r"\s*(\w+)", group[start:at])
            found += [word.group(1)] if word else []
            start = at + 1
    return found


def uses(source):
    """Which top-level modules each top-level module of a crate uses."""
    files = [path for path in sorted(source.rglob("*.rs")) if "tests" not in path.stem.split("_")]
    of = {path: path.relative_to(source).parts[0].removesuffix(".rs") for path in files}
    modules = set(of.values()) - {"lib", "main"}
    exports = {}
    for root in ("lib.rs", "main.rs"):
        if (source / root).exists():
            for module, many, one in EXPORT.findall(code(source / root)):
                for name in (many or one).split(","):
                    exports[name.split(" as ")[-1].split("::")[-1].strip()] = module
    graph = defaultdict(lambda: defaultdict(set))
    for path in files:
        if of[path] not in modules:
            continue
        for found in PATH.findall(code(path)):
            for name in names(found) if found.startswith("{") else [found]:
                used = exports.get(name, name)
                if used in modules and used != of[path]:
                    graph[of[path]][used].add(str(path.relative_to(ROOT)))
    return graph


def circles(graph):
    """The strongly connected components of more than one module (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            component = []
            while not component or component[-1] != node:
                component.append(stack.pop())
            if len(component) > 1:
                found.append(sorted(component))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def main(crates):
    bad = False
    for crate in crates:
        source = ROOT / "crates" / crate / "src"
        if not source.is_dir():
            sys.exit(f"module_cycles: there is no {source}")
        graph = uses(source)
        for circle in circles(graph):
            bad = True
            print(f"{crate}: these modules use each other in a circle: {', '.join(circle)}")
            for module in circle:
                for other in sorted(set(graph[module]) & set(circle)):
                    places = ", ".join(sorted(graph[module][other]))
                    print(f"  {module} uses {other} in {places}")
    sys.exit(bad)


main(sys.argv[1:])
