//! What is done on the server in one atomic step each.

/// One of the scripts in `lua/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Script {
    Open,
    Submit,
    Claim,
    Forget,
    Record,
    Renew,
    Edit,
    Sweep,
    List,
    Inspect,
    Expiring,
    Ended,
    Uses,
    Look,
    Beat,
    Keep,
}

/// A script begins with what all of them share.
macro_rules! scripts {
    ($($name:ident $file:literal),*) => {
        [$((Script::$name, concat!(include_str!("lua/head.lua"), include_str!(concat!("lua/", $file))))),*]
    };
}

pub(super) const ALL: [(Script, &str); 16] = scripts![
    Open "open.lua", Submit "submit.lua", Claim "claim.lua", Forget "forget.lua", Record "record.lua", Renew "renew.lua",
    Edit "edit.lua", Sweep "sweep.lua", List "list.lua", Inspect "inspect.lua",
    Expiring "expiring.lua", Ended "ended.lua", Uses "uses.lua", Look "look.lua",
    Beat "beat.lua", Keep "keep.lua"
];

/// One question to the server: a script and its words.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub(super) script: Script,
    pub(super) words: Vec<Vec<u8>>,
}

impl Ask {
    pub(super) fn new(script: Script) -> Self {
        Self { script, words: Vec::new() }
    }

    pub(super) fn say(&mut self, word: impl AsRef<[u8]>) -> &mut Self {
        self.words.push(word.as_ref().to_vec());
        self
    }

    pub(super) fn number(&mut self, number: impl std::fmt::Display) -> &mut Self {
        self.say(number.to_string())
    }

    pub(super) fn flag(&mut self, is: bool) -> &mut Self {
        self.say(if is { "1" } else { "0" })
    }

    /// A text that there may be none of.
    pub(super) fn maybe(&mut self, text: Option<impl AsRef<[u8]>>) -> &mut Self {
        let word = text.map_or_else(Vec::new, |text| [b"=", text.as_ref()].concat());
        self.words.push(word);
        self
    }
}
