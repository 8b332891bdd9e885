"""Constituent trees of RSTTool and rstWeb (`.rs3`, `.rs4`).

Files contain a flat list of segments (EDUs) and groups with their parents and relations. `span` relates a nucleus to
the group over it and its satellites. A relation of type `multinuc` relates a nucleus to its multinuclear group, and all
other relations a satellite to its nucleus. In `.rs4` files, secondary edges are counted, and signals are ignored.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element, ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import fromstring

from docmt.discourse.constituents import SPAN, Node, join, leaf, postorder
from docmt.discourse.dependencies import NO_HEAD, ROOT, DependencyTree
from docmt.discourse.treebanks.treebank import RstFile
from docmt.errors import UserError
from docmt.settings import nearest

MULTINUCLEAR = "multinuc"
FOREST_RELATION = "joint"
"""The relation between trees that the annotators did not join. They become nuclei of one node."""


@dataclass(frozen=True, eq=False)
class _Child:
    """A contiguous constituent with its role in the parent."""

    node: Node
    letter: str
    relation: str


@dataclass
class _Element:
    """A segment or a group."""

    name: str
    parent: str | None
    relation: str
    is_multinuclear_group: bool
    edu: int | None = None
    nuclei: list["_Element"] = field(default_factory=list)
    satellites: list["_Element"] = field(default_factory=list)


def parse_rs3(text: str, *, where: str) -> RstFile:
    """Parse an `.rs3` or `.rs4` file as an n-ary tree.

    All satellites of a nucleus are its siblings in one node. A satellite between nuclei is a child of their group. If
    edges still cross, the constituent that is cut off becomes a satellite of the next higher constituent in which it
    leaves no gap, and is counted. The dependency arcs come from the file and can cross. Several trees become the nuclei
    of one node.
    """
    try:
        root = fromstring(text, forbid_dtd=True)
    except ParseError as error:
        raise UserError(f"{where}: not XML ({error})") from None
    except DefusedXmlException:
        message = f"{where}: declares a document type or entities, which are not supported: remove them"
        raise UserError(message) from None
    texts: list[str] = []
    elements = _elements(root, texts, where=where)
    types: dict[str, set[str]] = defaultdict(set)
    for relation in root.iter("rel"):
        types[relation.get("name", "")].add(relation.get("type", ""))
    tops = _link(elements, types, where=where)
    top = tops[0]
    if len(tops) > 1:
        top = _Element("forest", None, SPAN, is_multinuclear_group=True, nuclei=tops)
        for tree in tops:
            tree.relation = FOREST_RELATION
    order = list(postorder(top, lambda element: [*element.nuclei, *element.satellites]))
    reached = {element.name for element in order}
    for name in elements:
        if name not in reached:
            raise UserError(f"{where}: element {name} is part of a cycle of parents")
    tree, n_lifted = _build(order, where=where)
    if (tree.first, tree.last) != (0, len(texts) - 1):
        raise UserError(f"{where}: the tree covers EDUs {tree.first + 1} to {tree.last + 1} of {len(texts)}")
    n_secondary = len(list(root.iter("secedge")))
    return RstFile(tree, tuple(texts), _arcs(order, len(texts)), n_secondary, n_lifted, n_trees=len(tops))


def _elements(root: Element, texts: list[str], *, where: str) -> dict[str, _Element]:
    elements: dict[str, _Element] = {}
    body = root.find("body")
    items = () if body is None else body
    for item in items:
        if item.tag not in ("segment", "group"):
            continue
        name = item.get("id")
        if name is None or name in elements:
            raise UserError(f"{where}: {item.tag} {name!r} has no id, or a duplicate one")
        is_group = item.tag == "group" and item.get("type") == MULTINUCLEAR
        element = _Element(name, item.get("parent"), item.get("relname", SPAN), is_group)
        if item.tag == "segment":
            element.edu = len(texts)
            texts.append(" ".join("".join(item.itertext()).split()))
        elements[name] = element
    if not texts:
        raise UserError(f"{where}: contains no segments")
    return elements


def _link(elements: dict[str, _Element], types: dict[str, set[str]], *, where: str) -> list[_Element]:
    """Attach elements to their parents, and return the elements without a parent."""
    tops = []
    for element in elements.values():
        if element.parent is None:
            tops.append(element)
            continue
        parent = elements.get(element.parent)
        if parent is None:
            raise UserError(f"{where}: element {element.name} has the unknown parent {element.parent}")
        if element.relation != SPAN and element.relation not in types:
            hint = "its header defines none: add <rel> for each"
            if types:
                hint = nearest(element.relation, list(types))
            raise UserError(f"{where}: element {element.name}: unknown relation {element.relation!r}; {hint}")
        is_multinuclear = parent.is_multinuclear_group and MULTINUCLEAR in types[element.relation]
        is_nucleus = element.relation == SPAN or is_multinuclear
        if is_nucleus and parent.edu is not None:
            raise UserError(f"{where}: element {element.name} is a nucleus of {parent.name}, which must be a group")
        if is_nucleus and parent.nuclei and not parent.is_multinuclear_group:
            both = f"{parent.nuclei[0].name} and {element.name}"
            raise UserError(f"{where}: span group {parent.name} has two nuclei, {both}: set its type to multinuc")
        siblings = parent.nuclei if is_nucleus else parent.satellites
        siblings.append(element)
    if not tops:
        raise UserError(f"{where}: has no root, because the tree contains a cycle")
    for element in elements.values():
        if element.edu is None and not element.nuclei:
            mend = "add one"
            has_multinuclear = any(MULTINUCLEAR in types[child.relation] for child in element.satellites)
            if has_multinuclear and not element.is_multinuclear_group:
                mend = "set its type to multinuc"
            raise UserError(f"{where}: group {element.name} has no nucleus: {mend}")
    return tops


def _arcs(order: list[_Element], n_edus: int) -> DependencyTree:
    """Return the arcs between EDUs by the rules of `nary_to_dependencies`: nuclei depend on the first one."""
    head_edus: dict[str, int] = {}  # per element
    heads = [NO_HEAD] * n_edus
    relations = [ROOT] * n_edus
    for element in order:
        nuclei = sorted(element.nuclei, key=lambda nucleus: head_edus[nucleus.name])
        head = element.edu
        if head is None:
            head = head_edus[nuclei[0].name]
        head_edus[element.name] = head
        for child in (*nuclei[1:], *element.satellites):
            heads[head_edus[child.name]] = head
            relations[head_edus[child.name]] = child.relation
    return DependencyTree(tuple(heads), tuple(relations))


def _build(order: list[_Element], *, where: str) -> tuple[Node, int]:
    """Return the tree of the last element, and the number of constituents that were moved up."""
    done: dict[str, tuple[Node, list[_Child]]] = {}
    lifted: set[tuple[int, int]] = set()

    def take(elements: Iterable[_Element], letter: str) -> list[_Child]:
        parts = []
        for element in elements:
            node, cut_off = done.pop(element.name)
            parts += [_Child(node, letter, element.relation), *cut_off]
        return parts

    for element in order:
        satellites = take(element.satellites, "S")
        if element.edu is not None:
            node = leaf(element.edu)
            cut_off = []
        else:
            parts = take(element.nuclei, "N")
            first = min(part.node.first for part in parts)
            last = max(part.node.last for part in parts)
            # rstWeb allows a satellite between the nuclei of its group. It becomes a sibling of the nuclei.
            outside = []
            for satellite in satellites:
                siblings = parts if first < satellite.node.first < last else outside
                siblings.append(satellite)
            satellites = outside
            node, cut_off = _join_around_head(parts)
            lifted.update((part.node.first, part.node.last) for part in cut_off)
        if satellites or cut_off:
            node, cut_off = _join_around_head([_Child(node, "N", SPAN), *satellites, *cut_off])
        lifted.update((part.node.first, part.node.last) for part in cut_off)
        done[element.name] = node, cut_off
    tree, cut_off = done.pop(order[-1].name)
    if cut_off:
        raise UserError(f"{where}: EDU {cut_off[0].node.first + 1} is not connected to the tree")
    return tree, len(lifted)


def _join_around_head(parts: list[_Child]) -> tuple[Node, list[_Child]]:
    """Join the adjacent parts around the first nucleus. Returns the node, and the parts that are cut off."""
    parts = sorted(parts, key=lambda part: part.node.first)
    letters = "".join(part.letter for part in parts)
    start = end = letters.index("N")
    while start > 0 and parts[start - 1].node.last + 1 == parts[start].node.first:
        start -= 1
    while end + 1 < len(parts) and parts[end].node.last + 1 == parts[end + 1].node.first:
        end += 1
    run = parts[start : end + 1]
    letters = letters[start : end + 1]
    cut_off = []
    for part in parts[:start] + parts[end + 1 :]:
        cut_off.append(_Child(part.node, "S", part.relation))
    if len(run) == 1:
        return run[0].node, cut_off
    relations = [part.relation for part in run]
    if letters.count("N") == 1:
        relations[letters.index("N")] = SPAN
    return join([part.node for part in run], letters, relations), cut_off
