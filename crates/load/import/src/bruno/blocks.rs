//! Blocks of a `.bru` file: `name {`, lines, `}`.

use crate::error::Mismatch;

/// File as blocks in order.
#[derive(Debug, Default)]
pub(super) struct BruFile<'a> {
    pub(super) blocks: Vec<BruBlock<'a>>,
}

/// Block with its lines.
#[derive(Debug)]
pub(super) struct BruBlock<'a> {
    pub(super) name: &'a str,
    /// Line of the name.
    pub(super) line: u32,
    /// Lines with their places, as they are indented.
    pub(super) lines: Vec<(u32, &'a str)>,
}

impl<'a> BruFile<'a> {
    pub(super) fn read(text: &'a str) -> Result<Self, Mismatch> {
        let mut file = Self::default();
        let mut open: Option<(BruBlock<'a>, char)> = None;
        for (number, line) in (1_u32..).zip(text.lines()) {
            match &mut open {
                Some((block, close)) => {
                    // Only a brace at the beginning of a line ends a block.
                    if line.trim_end() == close.to_string() {
                        file.blocks.extend(open.take().map(|(block, _)| block));
                    } else {
                        block.lines.push((number, line));
                    }
                }
                None => {
                    let line = line.trim();
                    let (name, close) = match (line.strip_suffix('{'), line.strip_suffix('[')) {
                        (Some(name), _) => (name, '}'),
                        (_, Some(name)) => (name, ']'),
                        _ if line.is_empty() => continue,
                        _ => {
                            return Err(Mismatch::new(
                                number,
                                "a block, such as get {",
                                format!("'{}'", crate::text::one_line(line, 40)),
                            ));
                        }
                    };
                    open = Some((BruBlock { name: name.trim(), line: number, lines: Vec::new() }, close));
                }
            }
        }
        match open {
            Some((block, _)) => {
                Err(Mismatch::new(block.line, format!("the end of the block {}", block.name), "the end of the file"))
            }
            None => Ok(file),
        }
    }

    pub(super) fn block(&self, name: &str) -> Option<&BruBlock<'a>> {
        self.blocks.iter().find(|block| block.name == name)
    }

    /// Names and values of a block, without those that are switched off (`~name`).
    pub(super) fn pairs(&self, name: &str) -> Vec<(u32, &'a str, &'a str)> {
        self.block(name).map(BruBlock::pairs).unwrap_or_default()
    }

    /// Value of a name in a block.
    pub(super) fn value(&self, block: &str, name: &str) -> Option<&'a str> {
        self.pairs(block).into_iter().find(|(_, own, _)| *own == name).map(|(_, _, value)| value)
    }

    /// Text of a block without its indentation.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.block(name).map(|block| {
            let lines = block.lines.iter().map(|(_, line)| line.strip_prefix("  ").unwrap_or(line));
            lines.collect::<Vec<_>>().join("\n")
        })
    }
}

impl<'a> BruBlock<'a> {
    pub(super) fn pairs(&self) -> Vec<(u32, &'a str, &'a str)> {
        let mut found = Vec::new();
        for (number, line) in &self.lines {
            let line = line.trim();
            if line.is_empty() || line.starts_with('~') {
                continue;
            }
            // A name in quotes may have colons.
            let split = match line.strip_prefix('"') {
                Some(rest) => {
                    rest.split_once('"').and_then(|(name, rest)| Some((name, rest.trim_start().strip_prefix(':')?)))
                }
                None => line.split_once(':'),
            };
            if let Some((name, value)) = split {
                found.push((*number, name.trim(), value.trim()));
            }
        }
        found
    }
}
