"""Page elements for tests of the report and the reader."""

from html.parser import HTMLParser


class Elements(HTMLParser):
    """Elements of a page: links that a browser would fetch, ids, and tags that stay open."""

    VOID = ("meta", "br", "img", "link", "hr")

    def __init__(self, html):
        super().__init__()
        self.tags, self.links, self.ids, self.open = [], [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href", "xlink:href", "action")]
        self.ids += [values["id"]] if "id" in values else []
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
