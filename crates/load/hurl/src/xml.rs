//! End of an XML document, by its tags.
//!
//! Nothing else ends an XML body, so its well-formedness is checked as far as needed for that: tags, attributes,
//! comments, CDATA and references. Namespaces and declarations are not.

use crate::error::Parsed;
use crate::reader::Reader;

/// Reads an XML document up to the end of its root element.
pub(crate) fn read_xml(reader: &mut Reader<'_>) -> Parsed<String> {
    let start = reader.cursor();
    let mut scanner = XmlScanner { reader, elements: Vec::new(), has_doctype: false };
    while !scanner.next()? {}
    Ok(reader.text_since(start).to_owned())
}

struct XmlScanner<'r, 'a> {
    reader: &'r mut Reader<'a>,
    /// Names of the open elements.
    elements: Vec<&'a str>,
    /// Whether there is a DOCTYPE, which may declare entities.
    has_doctype: bool,
}

impl XmlScanner<'_, '_> {
    /// Consumes a tag, a comment, a declaration or a piece of text; returns whether the root element ended.
    fn next(&mut self) -> Parsed<bool> {
        let is_inside = !self.elements.is_empty();
        if self.reader.eat("<!--") {
            self.skip_past("-->")?;
        } else if self.reader.eat("<?") {
            self.skip_past("?>")?;
        } else if is_inside && self.reader.eat("<![CDATA[") {
            self.skip_past("]]>")?;
        } else if !is_inside && self.reader.eat("<!DOCTYPE") {
            self.doctype()?;
        } else if is_inside && self.reader.eat("</") {
            return self.end_tag();
        } else if self.reader.starts_with("<") {
            return self.start_tag();
        } else if is_inside {
            self.text(|c| c == '<')?;
        } else if self.spaces().is_empty() {
            return Err(self.reader.expected("an XML element"));
        }
        Ok(false)
    }

    fn skip_past(&mut self, end: &str) -> Parsed<()> {
        if self.reader.skip_past(end) {
            return Ok(());
        }
        while self.reader.bump().is_some() {}
        Err(self.reader.expected(format!("'{end}'")))
    }

    fn spaces(&mut self) -> &str {
        self.reader.take_while(|c| matches!(c, ' ' | '\t' | '\r' | '\n'))
    }

    /// Consumes the rest of a DOCTYPE: quoted text, and declarations in brackets.
    fn doctype(&mut self) -> Parsed<()> {
        self.has_doctype = true;
        let mut depth = 0_usize;
        loop {
            match self.reader.bump() {
                Some(quote @ ('"' | '\'')) => self.skip_past(quote.encode_utf8(&mut [0; 4]))?,
                Some('[' | '<') => depth += 1,
                Some('>') if depth == 0 => return Ok(()),
                Some(']' | '>') => depth = depth.saturating_sub(1),
                Some(_) => {}
                None => return Err(self.reader.expected("'>'")),
            }
        }
    }

    fn start_tag(&mut self) -> Parsed<bool> {
        self.reader.need("<")?;
        let start = self.reader.cursor();
        self.name()?;
        let name = self.reader.text_since(start);
        loop {
            let has_spaces = !self.spaces().is_empty();
            if self.reader.eat("/>") {
                return Ok(self.elements.is_empty());
            }
            if self.reader.eat(">") {
                self.elements.push(name);
                return Ok(false);
            }
            if !has_spaces {
                return Err(self.reader.expected("a space, '/>' or '>'"));
            }
            self.attribute()?;
        }
    }

    fn end_tag(&mut self) -> Parsed<bool> {
        let start = self.reader.cursor();
        let expected = self.elements.pop().unwrap_or_default();
        self.name()?;
        if self.reader.text_since(start) != expected {
            return Err(self.reader.expected_at(start, format!("'{expected}', the element that is open")));
        }
        self.spaces();
        self.reader.need(">")?;
        Ok(self.elements.is_empty())
    }

    fn name(&mut self) -> Parsed<()> {
        let is_start = self.reader.peek().is_some_and(|c| c.is_alphabetic() || matches!(c, '_' | ':'));
        if !is_start {
            return Err(self.reader.expected("a name"));
        }
        self.reader.take_while(|c| c.is_alphanumeric() || matches!(c, '_' | ':' | '-' | '.' | '\u{b7}'));
        Ok(())
    }

    fn attribute(&mut self) -> Parsed<()> {
        self.name()?;
        self.spaces();
        self.reader.need("=")?;
        self.spaces();
        let Some(quote @ ('"' | '\'')) = self.reader.peek() else {
            return Err(self.reader.expected("a quoted value"));
        };
        self.reader.bump();
        self.text(|c| c == quote || c == '<')?;
        self.reader.need(quote.encode_utf8(&mut [0; 4]))
    }

    /// Consumes text and references up to a character.
    fn text(&mut self, is_end: impl Fn(char) -> bool) -> Parsed<()> {
        loop {
            match self.reader.peek() {
                Some('&') => self.reference()?,
                Some(c) if is_end(c) => return Ok(()),
                Some(_) => {
                    self.reader.bump();
                }
                None => {
                    let name = self.elements.last().copied().unwrap_or_default();
                    return Err(self.reader.expected(format!("the end of the XML element '{name}'")));
                }
            }
        }
    }

    /// Consumes `&amp;` or `&#160;`.
    fn reference(&mut self) -> Parsed<()> {
        let start = self.reader.cursor();
        self.reader.need("&")?;
        let name = self.reader.take_while(|c| c.is_alphanumeric() || matches!(c, '#' | '_' | ':' | '-' | '.'));
        let digits = |digits: &str, radix| u32::from_str_radix(digits, radix).ok().and_then(char::from_u32).is_some();
        let is_known = match name.strip_prefix('#') {
            Some(number) => number.strip_prefix('x').map_or_else(|| digits(number, 10), |number| digits(number, 16)),
            None => matches!(name, "amp" | "apos" | "gt" | "lt" | "quot") || (self.has_doctype && !name.is_empty()),
        };
        if is_known && self.reader.eat(";") {
            return Ok(());
        }
        Err(self.reader.expected_at(start, "'&amp;' or another reference of XML"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_ends_with_its_root() {
        let documents = [
            "<a/>",
            "<a></a >",
            "<?xml version=\"1.0\"?>\n<!-- > -->\n<a b='>' c=\"&lt;\">x<b>&#233;&#xe9;</b><![CDATA[</a>&]]></a>",
            "<!DOCTYPE html [<!ENTITY nbsp \"]>\">]><html>&nbsp;</html>",
            "<x:a xmlns:x='urn:x'>{{x}}<!--</x:a>--></x:a>",
        ];
        for document in documents {
            let text = format!("{document}\nHTTP 200");
            let mut reader = Reader::new(&text);
            assert_eq!(read_xml(&mut reader).as_deref(), Ok(document));
            assert_eq!(reader.rest(), "\nHTTP 200");
        }
    }

    #[test]
    fn a_malformed_document_has_a_position() {
        let cases = [
            ("<a><b></a>", "1:9: expected 'b', the element that is open, found 'a'"),
            ("<a>", "1:4: expected the end of the XML element 'a', found the end of the file"),
            ("<a b></a>", "1:5: expected '=', found '>'"),
            ("<a b='1'c='2'/>", "1:9: expected a space, '/>' or '>', found 'c'"),
            ("<a>x & y</a>", "1:6: expected '&amp;' or another reference of XML, found '&'"),
            ("<a>&nbsp;</a>", "1:4: expected '&amp;' or another reference of XML, found '&'"),
            ("<!-- a", "1:7: expected '-->', found the end of the file"),
            ("<a>\n<</a>", "2:2: expected a name, found '<'"),
            ("<?x?>", "1:6: expected an XML element, found the end of the file"),
        ];
        for (text, expected) in cases {
            assert_eq!(read_xml(&mut Reader::new(text)).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn deep_nesting_takes_no_stack() {
        let text = format!("{}{}", "<a>".repeat(100_000), "</a>".repeat(100_000));
        assert_eq!(read_xml(&mut Reader::new(&text)).map(|text| text.len()), Ok(700_000));
    }
}
