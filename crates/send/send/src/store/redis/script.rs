//! Scripts: atomic steps on the server.

/// Script of `lua/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RedisScript {
    Open,
    Submit,
    Claim,
    ReleaseClaim,
    Record,
    Renew,
    Edit,
    BulkUpdate,
    List,
    Inspect,
    Expiring,
    Ended,
    KeyUsage,
    Overview,
    Heartbeat,
    Reconcile,
}

/// Each script begins with `head.lua`.
macro_rules! scripts {
    ($($name:ident $file:literal),*) => {
        [$((RedisScript::$name, concat!(include_str!("lua/head.lua"), include_str!(concat!("lua/", $file))))),*]
    };
}

pub(super) const ALL_SCRIPTS: [(RedisScript, &str); 16] = scripts![
    Open "open.lua", Submit "submit.lua", Claim "claim.lua", ReleaseClaim "forget.lua", Record "record.lua", Renew "renew.lua",
    Edit "edit.lua", BulkUpdate "sweep.lua", List "list.lua", Inspect "inspect.lua",
    Expiring "expiring.lua", Ended "ended.lua", KeyUsage "uses.lua", Overview "look.lua",
    Heartbeat "beat.lua", Reconcile "keep.lua"
];

/// Call of a script with its arguments.
#[derive(Clone, Debug)]
pub(super) struct ScriptCall {
    pub(super) script: RedisScript,
    pub(super) args: Vec<Vec<u8>>,
}

impl ScriptCall {
    pub(super) fn new(script: RedisScript) -> Self {
        Self { script, args: Vec::new() }
    }

    pub(super) fn arg(&mut self, word: impl AsRef<[u8]>) -> &mut Self {
        self.args.push(word.as_ref().to_vec());
        self
    }

    pub(super) fn number(&mut self, number: impl std::fmt::Display) -> &mut Self {
        self.arg(number.to_string())
    }

    pub(super) fn flag(&mut self, is: bool) -> &mut Self {
        self.arg(if is { "1" } else { "0" })
    }

    /// Optional text: `=TEXT`, or empty for none.
    pub(super) fn optional(&mut self, text: Option<impl AsRef<[u8]>>) -> &mut Self {
        let word = text.map_or_else(Vec::new, |text| [b"=", text.as_ref()].concat());
        self.args.push(word);
        self
    }
}
