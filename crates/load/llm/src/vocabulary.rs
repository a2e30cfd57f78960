//! Words of random prompts: short ones of common English, most of which are one token of most tokenizers.

/// Words of random prompts.
pub(crate) const WORDS: [&str; 251] = [
    "about", "above", "across", "act", "add", "after", "again", "age", "air", "all", "along", "also", "always",
    "among", "an", "and", "animal", "answer", "any", "are", "area", "arm", "around", "art", "as", "ask", "at", "away",
    "back", "ball", "base", "be", "bear", "because", "bed", "been", "before", "began", "best", "better", "between",
    "big", "bird", "black", "blue", "boat", "body", "book", "both", "box", "boy", "bring", "build", "but", "by",
    "call", "came", "can", "car", "care", "carry", "cause", "change", "check", "child", "city", "class", "clear",
    "close", "cold", "color", "come", "common", "could", "country", "course", "cover", "cross", "cut", "dark", "day",
    "deep", "did", "do", "dog", "door", "down", "draw", "drive", "dry", "during", "each", "early", "earth", "east",
    "eat", "end", "enough", "even", "ever", "every", "eye", "face", "fact", "fall", "family", "far", "farm", "fast",
    "father", "feel", "feet", "few", "field", "final", "find", "fine", "fire", "first", "fish", "five", "fly",
    "follow", "food", "for", "form", "found", "four", "free", "friend", "from", "front", "full", "game", "gave", "get",
    "girl", "give", "go", "gold", "good", "got", "great", "green", "ground", "group", "grow", "had", "half", "hand",
    "hard", "has", "have", "he", "head", "hear", "heat", "help", "her", "here", "high", "him", "his", "hold", "home",
    "horse", "hot", "hour", "house", "how", "idea", "if", "in", "into", "is", "island", "it", "just", "keep", "kind",
    "king", "know", "land", "large", "last", "late", "laugh", "lead", "learn", "leave", "left", "less", "let", "life",
    "light", "like", "line", "list", "listen", "little", "live", "long", "look", "love", "low", "made", "main", "make",
    "man", "many", "map", "mark", "may", "me", "mean", "men", "might", "mile", "mind", "moon", "more", "morning",
    "most", "mother", "mountain", "move", "much", "music", "must", "my", "name", "near", "need", "never", "new",
    "next", "night", "no", "north", "not", "note", "notice", "now", "number", "of", "off", "often", "old", "on",
    "once", "one",
];
