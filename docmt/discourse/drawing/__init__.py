"""Pictures of discourse trees as SVG text, made without a browser or other tools.

`page` lays the EDUs out as lines of text; `dependencies` and `constituents` draw the tree at their left.
"""
