"""The variables and lines of docs/first-trace.md, as its readers copy them."""

import pathlib
import re

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "first-trace.md"
VARIABLE = re.compile(r"([A-Z][A-Z0-9_]+)=(\S+)")


def section(title):
    """The text below a heading, up to the next one."""
    text = PAGE.read_text()
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    assert found, f"the page has no section: {title}"
    return found[1]


def lines(title, language="python"):
    """The lines of code of a section."""
    found = re.findall(rf"^```{language}\n(.*?)^```", section(title), re.M | re.S)
    assert found, f"no {language} in the section: {title}"
    return "\n".join(found)


def exports(title):
    """The variables that a section exports."""
    found = {}
    for line in re.findall(r"^export (.*)$", section(title), re.M):
        found |= dict(VARIABLE.findall(line.split("#")[0]))
    assert found, f"no variables in the section: {title}"
    return found


def row(library):
    """The variables and the lines of code of a library in the table of others."""
    found = re.search(rf"^\| {re.escape(library)} \|(.*)\|$", PAGE.read_text(), re.M)
    assert found, f"the page has no row: {library}"
    variables, code = {}, []
    for piece in re.findall(r"`([^`]+)`", found[1]):
        named = dict(VARIABLE.findall(piece))
        if named and re.match(VARIABLE, piece):
            variables |= named
        elif re.search(r"[(=]|^from ", piece):
            code.append(piece)
    return variables, "\n".join(code)
