# SPDX-License-Identifier: Apache-2.0
"""The page of --html: page.html with a search's figures in it."""
import base64
import hashlib
import json
import os
import re

SLOT = "@SEARCH@"


def escape(told):
    """JSON that no character of markup ends."""
    return json.dumps(told, allow_nan=False).replace("<", "\\u003c") \
        .replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def hash_of(kind, template):
    """As a Content-Security-Policy names the inline element KIND."""
    inner = re.search(rf"<{kind}>(.*?)</{kind}>", template, re.S)[1]
    digest = hashlib.sha256(inner.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def text(told):
    """The page of TOLD, document()'s."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                        "page.html")
    with open(path, encoding="utf-8") as file:
        template = file.read()
    for kind in ("script", "style"):
        template = template.replace(f"@{kind.upper()}_HASH@",
                                    hash_of(kind, template))
    before, _, after = template.partition(SLOT)
    return before + escape(told) + after
