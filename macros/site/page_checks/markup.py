"""Markup that readers would see as text: what it looks like, what is reported about it, and the fix."""

from __future__ import annotations

import re
from typing import NamedTuple

from .boxes import TYPES
from .mistakes import Level

_TYPES = "|".join(TYPES)
_FILE = r"(?:[^\s()\[\]<>]*\.(?:md|html|png|svg|jpe?g|gif|webp|pdf|json|csv)(?:#[\w:.-]*)?|https?://[^\s()\[\]<>]+|#[\w:.-]+|\.\.?/[^\s()\[\]<>]*)"


class Rule(NamedTuple):
    """A pattern in a block's text; what was found and the fix, in which `{0}` is the match and `{name}` a group."""

    pattern: re.Pattern[str]
    what: str
    mend: str
    level: Level = Level.ERROR


def rule(pattern: str, what: str, mend: str, level: Level = Level.ERROR, flags: int = re.M) -> Rule:
    return Rule(re.compile(pattern, flags), what, mend, level)


RULES = (
    # links, images, footnotes
    rule(
        r"\A\[\^(?P<label>[^\]\s\[]+)\][ \t]*(?P<colon>:?)[ \t]+(?=\S)",
        "{0}begins no footnote: no colon stands right behind the bracket",
        "write [^{label}]: and its text",
    ),
    rule(r"\^\[[^\[\]\n]+\](?!\()", "the footnote {0} is not read as one", "write [^1], and [^1]: and its text below"),
    rule(r"\[\^(?P<label>[^\]\s\[]+)\](?!:)", "the footnote {0} has no text", "write {0}: and its text below"),
    rule(
        r"\[\^(?P<label>[^\]\s\[]+)\]:",
        "{0} does not begin a footnote here",
        "write it at the beginning of a line, below a blank one",
    ),
    rule(
        rf"!?\[(?P<text>[^\[\]\n]*)\][ \t]+\((?P<to>{_FILE})\)",
        "a space stands between the text and the address of a link: {0}",
        "remove the space",
    ),
    rule(
        rf"\((?P<text>[^()\n]+)\)\[(?P<to>{_FILE})\]",
        "the brackets of a link are the wrong way around: {0}",
        "write [{text}]({to})",
    ),
    rule(
        r"(?<![\w\]\)])!?\[(?P<text>[^\[\]\n]{1,200})\]\[(?P<label>(?!\w+(?:\.\w+)+\])[^\[\]\n]*|[^\[\]\n]*\.md)\](?!\[)",
        "the link {0} is not defined",
        "write [{text}](address), or add a line that begins with its label: [{label}]: address",
    ),
    rule(
        r"!?\[(?P<text>[^\[\]\n]{1,200})\]\((?P<to>[^()\n<>\"]*?[^\s()<>\"!?.,] [^()\n<>\"]*\.\w{2,4}(?:#[^()\n]*)?)\)",
        "the address of a link has a space: {0}",
        "rename the file, or write %20 for the space",
    ),
    rule(
        rf"!?\[(?P<text>[^\[\]\n]{{1,200}})\]\((?P<to>{_FILE})(?=[\s.,;:!?]|\Z)(?!\))(?![^\n]*\))",
        "the link {0} is not closed: ) is missing",
        "add it",
    ),
    rule(
        rf"!?\[(?P<text>[^\[\]()\n]{{1,200}})\((?P<to>{_FILE})\)",
        "the link {0} is not closed: ] is missing",
        "write [{text}]({to})",
    ),
    rule(
        rf"(?<![\w\[])(?P<text>\w+)\]\((?P<to>{_FILE})\)",
        "the link {0} is not opened: [ is missing",
        "write [{text}]({to})",
    ),
    rule(
        r"\[\[(?P<text>[A-Za-z][\w .-]*(?:[|#][^\[\]\n]*)?)\]\]",
        "{0} is no link here",
        "write [{text}](its-page.md)",
    ),
    rule(
        rf"!?\[(?P<text>[^\[\]\n]{{1,200}})\]\n\((?P<to>{_FILE})\)",
        "a line break stands between the text and the address of a link: {0}",
        "remove it",
    ),
    rule(
        r"!?\[(?P<text>[^\[\]\n]{1,200})\]\((?P<to>(?:https?://|[\w./-]+\.md)[^\s()]*\([^\s()]*\)[^\s()]*)(?=\s|\Z)",
        "the link {0} is not closed: ) is missing",
        "add it",
    ),
    rule(
        r"!?[\[【](?P<text>[^\[\]【】\n]{1,200})[\]】](?:（[^（）\n]*）|(?<=】)\([^()\n]*\))",
        "the brackets of the link {0} are those of another alphabet",
        "write [{text}](…)",
    ),
    rule(
        rf"\{{(?P<text>[^{{}}\n]{{1,200}})\}}\((?P<to>{_FILE})\)",
        "the brackets of the link {0} are braces",
        "write [{text}]({to})",
    ),
    rule(
        rf"\[(?P<text>[^\[\]\n]{{1,200}})\]\((?P<to>{_FILE})\)",
        "the link {0} is shown as text: it stands inside another one",
        "write one of them",
    ),
    rule(
        rf"\A\[(?P<label>[^\[\]^\n]+)\][ \t]*:?[ \t]+(?P<to>{_FILE})\Z",
        "{0} defines no link",
        "write [{label}]: {to}",
    ),
    rule(r"<https?://[^\s<>]+(?=\s|\Z)", "the address {0} is not closed: > is missing", "add it"),
    # what other dialects of Markdown support
    rule(r"\A\.\. (?P<type>[a-z-]+)::[^\n]*", "the directive {0} is not read here", 'write !!! note "Title" for a box'),
    rule(
        r"\A/{3,}[ \t]*(?P<type>[a-z-]+)[^\n]*",
        "the box {0} is not read as one",
        'write !!! note "Title", and its content indented by four spaces',
    ),
    rule(r"\A(?:'{3}|[‘’´]{3})\w*(?=\n)", "the fence {0} is not read as one", "write three backticks, above and below"),
    rule(
        r"\*\[[^\[\]\n]+\]:[^\n]*",
        "the abbreviation {0} is shown as text",
        "write it into docs/includes/glossary.md",
    ),
    rule(r"\[@[A-Za-z][\w:.-]*\]", "the citation {0} is shown as text", "write a footnote: [^1]", Level.WARNING),
    rule(
        r"\{(?:\+\+|--|==|>>|~~)[^{}\n]*(?:\+\+|--|==|<<|~~)\}",
        "{0} is shown as text",
        "write the text alone",
        Level.WARNING,
    ),
    rule(r"^＃+[^\n]*", "the heading {0} is not read as one", "write #"),
    rule(r"<!-?(?![-\[A-Z])[^\n<>]*>?", "{0} is no comment: it is shown as text", "write <!-- and -->"),
    rule(r"\{[ \t]+%[^{}\n]*%[ \t]*\}", "the tag {0} is not read as one", "remove the spaces between the brace and %"),
    rule(
        r"(?<![\w+])\+\+[a-z][\w-]*(?:\+[\w-]+)*\+\+",
        "{0} names no key of a keyboard",
        "write names such as ctrl, shift, enter, f1",
        Level.WARNING,
    ),
    rule(r"(?<![\w+])\+\+[a-z][\w-]*(?:\+[\w-]+)+(?!\+)", "the keys {0} are not closed: ++ is missing", "add it"),
    rule(
        r"[^\n]{0,60}[^\s\\]\\(?=\n)",
        r"the \ at the end of {0} is shown as text",
        "write two spaces for a line break, or <br>",
        Level.WARNING,
    ),
    # boxes and fences
    rule(
        r"^(?:!!!|\?\?\?\+?)(?P<said>[^\n]*)",
        "the box {0} is not read as one",
        'write its type and its title between straight quotation marks, as in !!! note "Title"',
    ),
    rule(
        rf"^(?:!!?|\?\??) ?(?:{_TYPES})\b[^\n]*",
        "the box {0} is not read as one",
        'write three !, its type and its title, as in !!! note "Title"',
    ),
    rule(
        rf"^:{{3,}} ?(?:{_TYPES})\b[^\n]*",
        "the box {0} is not read as one",
        'write !!! note "Title", and its content indented by four spaces',
    ),
    rule(
        r"^\[!(?P<type>note|tip|important|warning|caution)\]",
        "{0} is not read as a box",
        "write !!! {type}, and its content indented by four spaces",
        flags=re.M | re.I,
    ),
    rule(
        r"^={2,4}[+!]? ?(?P<text>[\"'“‘«][^\n=]+|[A-Z][\w .+#-]{0,30})$",
        "the tab {0} is not read as one",
        'write three =, a space, and its title between straight quotation marks: === "Title"',
    ),
    rule(
        r"^[`~]{3,}[^\n]*",
        "the fence {0} is not read as one",
        "write it in a line of its own, and close it by the same",
    ),
    rule(r"(?<![`\w])`(?=\w)[^`\n]{0,60}", "a backtick is not closed: {0}", r"close it, or write \` for text"),
    rule(r"^(?P<marks>#{1,6}) [^\n]*", "the heading {0} is not read as one", "remove the spaces in front of {marks}"),
    rule(
        r"^(?P<first>\d\)[ \t]+[^\n]+)(?:\n\d\)[ \t][^\n]*)+",
        "the list {first} … is shown as text",
        "write 1. in place of 1)",
    ),
    rule(
        r"\A(?P<first>\(?[1ai][.)][ \t]+[^\n]+)\n\(?(?:2|b|ii)[.)][ \t][^\0]*",
        "the list {first} … is shown as text",
        "write 1. for each item",
    ),
    rule(
        r"^(?P<first>[•‣▪●·–—][ \t]+[^\n]+)(?:\n[•‣▪●·–—][ \t][^\n]*)+",
        "the list {first} … is shown as text",
        "write - for each item",
    ),
    rule(
        r"\A(?:[-*+]|\d\.)\u00a0[^\n]*",
        "a no-break space stands behind the mark of the item {0}",
        "replace it by a space",
    ),
    rule(r"^:(?P<said>[A-Z][^:\n]+)$", "no space stands behind the colon of the definition {0}", "write : and a space"),
    # tables of other languages
    rule(
        r"\A\+(?:[-=]{2,}\+)+[ \t]*\n",
        "a table of + and - is not read as one: {0}",
        "write | between its cells, and | --- | below its head",
    ),
    rule(r"\A｜[^\n]*", "｜ stands for no |: {0}", "write |"),
    # formulas
    rule(
        r"\$(?:[ \t]+[^$\n]*[\\^_=][^$\n]*|[^$\s][^$\n]*[\\^_=][^$\n]*[ \t]+)\$(?!\w)",
        "a space stands inside the dollar signs: {0}",
        "remove it",
    ),
    rule(
        r"(?<![\w\\])\\(?:ref|cite|eqref|label|textbf|textit|emph|footnote|begin|end|newpage|section|pagebreak)\b"
        r"(?:\{[^{}\n]*\})?",
        "the command {0} is shown as text",
        "write Markdown for it",
    ),
    rule(
        r"(?<![\w\\{}])[A-Za-z]{1,8}[_^]\{[\w, +-]{1,12}\}",
        "the formula {0} is shown as text",
        "write $ around it",
        Level.WARNING,
    ),
    rule(r"\$\\[A-Za-z]+[^$\n]{0,60}", "the formula {0} is not closed: $ is missing", "add it behind the formula"),
    rule(
        r"(?<![\w\\])\\(?:frac|sqrt|cdot|times|sum|text|mathrm|left|alpha|beta|approx|leq|geq)\b[^\n]{0,40}",
        "the formula {0} is shown as text",
        "write $ around it",
    ),
    rule(
        r"(?<![\w*])\*\*(?=[A-Za-z\d])(?![A-Za-z_]+\b(?! [A-Za-z]))[^*\n]{2,80}(?<!\s)(?:$|\*(?!\*))",
        "the bold text {0} is not closed: ** is missing",
        "add it",
        Level.WARNING,
    ),
    rule(
        r"(?<![\w_])__(?=[A-Za-z]+ )[^_\n]{3,80}$",
        "the bold text {0} is not closed: __ is missing",
        "add it",
        Level.WARNING,
    ),
    rule(
        r"(?<=\w )\*(?=[A-Za-z])[^*\n]{2,80}$",
        "the text {0} is not closed: * is missing",
        r"add it, or write \* for text",
        Level.WARNING,
    ),
    rule(r"[´‘](?P<code>[\w.]+)´", "{0} is no code: its marks are accents", "write `{code}`", Level.WARNING),
    rule(
        r"(?<=\w)~(?P<text>\w{1,4})~",
        "{0} is not written below the line",
        "write <sub>{text}</sub>",
        Level.WARNING,
    ),
    rule(
        r"(?<=\w)\^(?P<text>[\w+-]{1,4})\^",
        "{0} is not written above the line",
        "write <sup>{text}</sup>",
        Level.WARNING,
    ),
    # emphasis and what other Markdown parsers support
    rule(
        r"(?<![\w*])\*\*[ \t]+(?P<text>[^*\n]+?)[ \t]*\*\*|(?<![\w*])\*\*(?P<text2>[^*\s][^*\n]*?)[ \t]+\*\*(?!\w)",
        "{0} is not bold: a space stands inside the asterisks",
        "remove the space",
        Level.WARNING,
    ),
    rule(r"~~(?P<text>[^~\s][^~\n]*)~~", "{0} is not struck through here", "write <s>{text}</s>", Level.WARNING),
    rule(
        r"(?<!=)==(?P<text>[^=\s][^=\n]*)==(?!=)", "{0} is not marked here", "write <mark>{text}</mark>", Level.WARNING
    ),
    rule(r"\^\^(?P<text>[^^\s][^^\n]*)\^\^", "{0} is not underlined here", "write <ins>{text}</ins>", Level.WARNING),
    rule(
        r":(?:material|fontawesome|octicons|simple)-[\w-]+:",
        "the icon {0} is not drawn here",
        "write a word, or put a picture into docs/assets",
        Level.WARNING,
    ),
    rule(
        r"(?<![\w:]):(?:smile|warning|rocket|tada|bulb|heart|thumbsup|\+1|white_check_mark|x|heavy_check_mark|fire|star|"
        r"information_source|construction|eyes|sparkles|point_right|zap|memo|bug|book|books|link|lock|key):",
        "{0} is not drawn here",
        "write the character itself",
        Level.WARNING,
    ),
    rule(r"^\[[ xX]\][ \t]", "{0}is no box to tick here", "write ☐ or ☑", Level.WARNING),
    rule(r"-{1,}8<-{1,}[^\n]*", "{0} includes nothing here", "use {{% include %}}, or the macro excerpt"),
    rule(
        r"\{:?[ \t]*(?:[#.][A-Za-z]|(?:width|height|loading|align|class|id|title|target|rel)=)[^{}\n]*(?=\n|\Z)",
        "the attributes {0} are not closed: }} is missing",
        "add it",
    ),
    rule(
        r"\{:?[ \t]*(?:[#.][\w-]+|(?:width|height|loading|align|class|id|title|target|rel)=[^\s{}])[^{}\n]*\}",
        "the attributes {0} are shown as text",
        "write them at the end of the line, or right behind what they are of",
    ),
    # braces
    rule(
        r"(?<!\{)\{[ \t]*(?P<call>[a-z]\w+\([^{}\n]*\))[ \t]*\}(?!\})", "{0} calls no macro", "write {{{{ {call} }}}}"
    ),
    rule(
        r"\{[\d.,]+(?:[ \u00a0]\w+)?\}",
        "braces stand around a figure: {0}",
        "write two braces around the call, not three",
    ),
    rule(r"(?<![{}])(?:\}\}|%\})(?!\})", "{0} closes nothing", "delete it, or open the braces before", Level.WARNING),
    rule(r"\$\$", "{0} opens no formula, or closes none", r"write \$\$ for text, or close the formula by $$"),
)
