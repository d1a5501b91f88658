"""Advice for runtime errors that Python 2 would not have raised."""

from __future__ import annotations

import re

_VIEWS = r"(dict_items|dict_keys|dict_values|filter|map|range|zip)"
_LISTS = "`map`, `filter`, `zip`, `range`, and `keys()` of dicts, gave lists. Write list(...)"
_DICT = r"'(?:dict|collections\.OrderedDict|collections\.defaultdict)' object"
_MODULES = {
    "BaseHTTPServer": "http.server",
    "ConfigParser": "configparser",
    "HTMLParser": "html.parser",
    "Queue": "queue",
    "SocketServer": "socketserver",
    "StringIO": "io",
    "Tkinter": "tkinter",
    "__builtin__": "builtins",
    "cPickle": "pickle",
    "cStringIO": "io",
    "commands": "subprocess",
    "cookielib": "http.cookiejar",
    "copy_reg": "copyreg",
    "httplib": "http.client",
    "urllib2": "urllib.request",
    "urlparse": "urllib.parse",
}
_NAMES = {
    "itertools.ifilter": "filter",
    "itertools.imap": "map",
    "itertools.izip": "zip",
    "itertools.izip_longest": "itertools.zip_longest",
    "os.getcwdu": "os.getcwd",
    "string.join": "the method of the separator, `separator.join(words)`",
    "string.letters": "string.ascii_letters",
    "string.lowercase": "string.ascii_lowercase",
    "string.maketrans": "str.maketrans",
    "string.split": "the method, `text.split()`",
    "string.uppercase": "string.ascii_uppercase",
    "sys.maxint": "sys.maxsize",
    "urllib.quote": "urllib.parse.quote",
    "urllib.unquote": "urllib.parse.unquote",
    "urllib.urlencode": "urllib.parse.urlencode",
    "urllib.urlopen": "urllib.request.urlopen",
    "urllib.urlretrieve": "urllib.request.urlretrieve",
}

_SAID = [
    (r"object of type '(filter|map|zip)' has no len\(\)", _LISTS),
    (rf"'{_VIEWS}' object is not subscriptable", _LISTS),
    (rf"'{_VIEWS}' object does not support item (assignment|deletion)", _LISTS),
    (
        rf"'{_VIEWS}' object has no attribute '(append|extend|insert|pop|remove|reverse|sort)'",
        _LISTS,
    ),
    (rf"unsupported operand type\(s\) for \+: '({_VIEWS}|list)' and '{_VIEWS}'", _LISTS),
    (rf"unsupported operand type\(s\) for \+: '{_VIEWS}' and 'list'", _LISTS),
    (rf'can only concatenate list \(not "{_VIEWS}"\) to list', _LISTS),
    (
        rf"{_DICT} has no attribute 'has_key'",
        "dicts had `has_key`. Write `key in d`",
    ),
    (
        rf"{_DICT} has no attribute '(iter|view)(items|keys|values)'",
        r"dicts had `\1\2()`. Write `\2()`",
    ),
    (
        r"'(generator|enumerate|filter|map|zip|_csv\.reader|list_iterator)' object has no "
        "attribute 'next'",
        "iterators had `next()`. Write next(iterator)",
    ),
]
_DIVISION = re.compile(
    r"'float' object cannot be interpreted as an integer"
    r"|(list|tuple) indices must be integers or slices, not float"
    r"|slice indices must be integers or None"
    r"|can't multiply sequence by non-int of type 'float'"
)


def advice(error: BaseException, line: str) -> str | None:
    """Advice on an error that Python 2 would not have raised; `line` is its source line."""
    said = _said(error, line)
    return said and f"This looks like Python 2, where {said}."


def _said(error: BaseException, line: str) -> str | None:
    text = str(error)
    if isinstance(error, ModuleNotFoundError):
        today = _MODULES.get(error.name or "")
        return today and f"there was a module {error.name}. Its names are in {today} now"
    found = re.search(r"cannot import name '(\w+)' from '(\w+)'", text)
    name = found and f"{found[2]}.{found[1]}"
    if found := re.search(r"^module '(\w+)' has no attribute '(\w+)'", text):
        name = f"{found[1]}.{found[2]}"
    if name in _NAMES:
        return f"there was {name}. Today it is {_NAMES[name]}"
    if not isinstance(error, AttributeError | TypeError):
        return None
    for pattern, said in _SAID:
        if found := re.search(pattern, text):
            return found.expand(said)
    if _DIVISION.search(text) and re.search(r"[^/]/[^/]", line):
        return "`/` of two integers gave an integer. Write `//`"
    return None
