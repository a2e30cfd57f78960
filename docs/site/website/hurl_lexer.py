"""Colours of `.hurl` files."""

from pygments.lexer import RegexLexer, bygroups
from pygments.token import Comment, Keyword, Name, Number, String, Text


class HurlLexer(RegexLexer):  # type: ignore[misc]
    """Lexer of hurl's format, for the blocks of the documentation."""

    name = "Hurl"
    aliases = ("hurl",)
    filenames = ("*.hurl",)
    url = "https://hurl.dev"

    tokens = {  # noqa: RUF012  as RegexLexer has it
        "root": [
            (r"#.*$", Comment),
            (r"^([A-Z]+)( +)(?=\S*(?:/|\{\{))", bygroups(Keyword, Text), "line"),
            (r"^(HTTP(?:/[0-9.]+)?)( +)([0-9]+|\*)", bygroups(Keyword, Text, Number)),
            (r"^\[[A-Za-z]+\]", Keyword.Type),
            (r"^([A-Za-z][\w -]*)(:)", bygroups(Name.Attribute, Text), "line"),
            (
                r"^(status|header|cookie|body|bytes|jsonpath|xpath|regex|duration|variable|sha256)\b",
                Name.Builtin,
                "line",
            ),
            (r"\{\{[^}]*\}\}", Name.Variable),
            (r'"(?:\\.|[^"\\])*"', String),
            (r".|\n", Text),
        ],
        "line": [
            (r"\n", Text, "#pop"),
            (r"\{\{[^}]*\}\}", Name.Variable),
            (r'"(?:\\.|[^"\\])*"', String),
            (r"\b(?:jsonpath|header|cookie|xpath|regex|body|duration|status|bytes)\b", Name.Builtin),
            (r"\b[0-9]+\b", Number),
            (r"==|!=|>=|<=|>|<|\b(?:exists|contains|matches|count|not|startsWith|endsWith)\b", Keyword),
            (r".", Text),
        ],
    }
