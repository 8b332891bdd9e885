"""Pictures of discourse trees as SVG, without a browser or other tools.

`page` lays out the EDUs as lines of text; `dependencies` and `constituents` draw the tree to their left.
"""
