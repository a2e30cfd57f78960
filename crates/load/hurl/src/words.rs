//! Keywords as enums.

/// Declares an enum of keywords with their spelling in files.
macro_rules! words {
    ($(#[$meta:meta])* $visibility:vis enum $name:ident { $($(#[$doc:meta])* $word:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        $visibility enum $name {
            $($(#[$doc])* $word,)+
        }

        impl $name {
            /// All keywords, in order.
            $visibility const ALL: &'static [Self] = &[$(Self::$word),+];

            /// Spelling in files.
            $visibility fn as_str(self) -> &'static str {
                match self {
                    $(Self::$word => $text,)+
                }
            }

            /// Keyword of a spelling.
            $visibility fn from_word(word: &str) -> Option<Self> {
                match word {
                    $($text => Some(Self::$word),)+
                    _ => None,
                }
            }

            /// Spellings of all keywords.
            $visibility fn spellings() -> impl Iterator<Item = &'static str> {
                Self::ALL.iter().map(|word| word.as_str())
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

pub(crate) use words;
