"""Fenced code blocks of the Markdown documents, for the tests that run them."""

import re


def blocks_of(document, language):
    """The blocks of `document` that are marked `language` ("": those without a mark), in their order."""
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", document.read_text(encoding="utf-8"), re.M | re.S)
    return [block for mark, block in fences if mark == language]
