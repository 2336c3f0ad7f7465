//! Rust text taken apart just far enough for the rules: code without comments and strings, the lines that
//! belong to tests, and the functions.
//!
//! Not a parser. It knows where comments, strings and character literals end and counts braces; the compiler
//! has already made sure that the rest is well formed.

/// One Rust file.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
    /// As long as `text`, with comments, contents of literals and everything beyond ASCII blanked.
    pub(crate) code: String,
    test_lines: Vec<bool>,
}

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// Line of the word `fn`, from 1.
    pub(crate) line: usize,
    /// From the line of `fn` to the line of the closing brace.
    pub(crate) line_count: usize,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let code = blank_comments_and_literals(text);
        let all_test = is_test_path(path) || without_spaces(&code).contains("#![cfg(test)]");
        let mut test_lines = vec![all_test; text.lines().count()];
        for (start, end) in test_spans(&code) {
            for line in line_at(&code, start)..=line_at(&code, end) {
                if let Some(flag) = test_lines.get_mut(line - 1) {
                    *flag = true;
                }
            }
        }
        Self { path: path.into(), text: text.into(), code, test_lines }
    }

    /// Whether the line, from 1, exists only in test builds.
    pub(crate) fn is_test_line(&self, line: usize) -> bool {
        self.test_lines.get(line - 1).copied().unwrap_or(false)
    }

    pub(crate) fn code_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    pub(crate) fn functions(&self) -> Vec<Function> {
        let mut functions = Vec::new();
        for start in word_offsets(&self.code, "fn") {
            let name: String =
                self.code[start + 2..].trim_start().chars().take_while(|&letter| is_word(letter)).collect();
            if name.is_empty() {
                continue;
            }
            let end = end_of_item(&self.code, start);
            if self.code.as_bytes().get(end) == Some(&b'}') {
                let line = line_at(&self.code, start);
                functions.push(Function { name, line, line_count: line_at(&self.code, end) + 1 - line });
            }
        }
        functions
    }
}

fn is_test_path(path: &str) -> bool {
    path.split('/').any(|part| part == "tests" || part == "tests.rs" || part.ends_with("_tests.rs"))
}

pub(crate) fn is_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

/// Offsets of a word that is not part of a longer one.
pub(crate) fn word_offsets(text: &str, word: &str) -> Vec<usize> {
    let free = |(offset, _): &(usize, &str)| {
        !text[..*offset].chars().next_back().is_some_and(is_word)
            && !text[offset + word.len()..].chars().next().is_some_and(is_word)
    };
    text.match_indices(word).filter(free).map(|(offset, _)| offset).collect()
}

pub(crate) fn line_at(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset.min(text.len())].iter().filter(|&&byte| byte == b'\n').count() + 1
}

pub(crate) fn without_spaces(code: &str) -> String {
    code.chars().filter(|letter| !letter.is_whitespace()).collect()
}

/// Offset of the brace or semicolon that ends the item which begins at `start`.
fn end_of_item(code: &str, start: usize) -> usize {
    let (mut parentheses, mut braces) = (0_i32, 0_i32);
    for (offset, byte) in code.bytes().enumerate().skip(start) {
        match byte {
            b'(' | b'[' => parentheses += 1,
            b')' | b']' => parentheses -= 1,
            b'{' => braces += 1,
            b'}' => {
                braces -= 1;
                if braces <= 0 {
                    return offset;
                }
            }
            b';' if parentheses == 0 && braces == 0 => return offset,
            _ => {}
        }
    }
    code.len()
}

/// First and last offset of every item under a `cfg` that asks for a test build.
fn test_spans(code: &str) -> Vec<(usize, usize)> {
    let mut spans = Vec::new();
    for (start, _) in code.match_indices("#[") {
        let Some(attribute_len) = attribute_len(&code[start..]) else { continue };
        let attribute = without_spaces(&code[start..start + attribute_len]);
        if !["#[cfg(test)", "#[cfg(all(test,", "#[cfg(any(test,"]
            .iter()
            .any(|head| attribute.starts_with(head))
        {
            continue;
        }
        let mut item = start + attribute_len;
        loop {
            item += code[item..].len() - code[item..].trim_start().len();
            match attribute_len_here(&code[item..]) {
                Some(len) => item += len,
                None => break,
            }
        }
        spans.push((start, end_of_item(code, item)));
    }
    spans
}

fn attribute_len_here(code: &str) -> Option<usize> {
    if code.starts_with("#[") { attribute_len(code) } else { None }
}

/// Length of the attribute at the start of `code`, up to its closing bracket.
pub(crate) fn attribute_len(code: &str) -> Option<usize> {
    let mut depth = 0_i32;
    for (offset, byte) in code.bytes().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' => {
                depth -= 1;
                if depth == 0 {
                    return Some(offset + 1);
                }
            }
            _ => {}
        }
    }
    None
}

fn blank_comments_and_literals(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let end = literal_or_comment_end(bytes, at).unwrap_or(at);
        if end == at {
            code.push(if bytes[at].is_ascii() { bytes[at] } else { b' ' });
            at += 1;
            continue;
        }
        code.extend(bytes[at..end].iter().map(|&byte| if byte == b'\n' { b'\n' } else { b' ' }));
        at = end;
    }
    String::from_utf8(code).expect("only ASCII was kept")
}

/// Where the comment or literal that begins at `at` ends; nothing when none begins there.
fn literal_or_comment_end(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    let after_word = at > 0 && is_word(char::from(bytes[at - 1]));
    if rest.starts_with(b"//") {
        let len = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
        return Some(at + len);
    }
    if rest.starts_with(b"/*") {
        return Some(at + block_comment_len(rest));
    }
    if !after_word && matches!(rest[0], b'r' | b'b' | b'c') {
        let prefix = rest.iter().take_while(|byte| matches!(byte, b'r' | b'b' | b'c')).count();
        let hashes = rest[prefix..].iter().take_while(|&&byte| byte == b'#').count();
        if rest[..prefix].contains(&b'r') && rest.get(prefix + hashes) == Some(&b'"') {
            let mut closing = vec![b'"'];
            closing.resize(hashes + 1, b'#');
            let body = prefix + hashes + 1;
            let found = rest[body..].windows(closing.len()).position(|window| window == closing);
            return Some(found.map_or(bytes.len(), |len| at + body + len + closing.len()));
        }
    }
    match rest[0] {
        b'"' => Some(at + quoted_len(rest, b'"')),
        b'\'' if rest.get(1) == Some(&b'\\') => Some(at + quoted_len(rest, b'\'')),
        b'\'' => {
            let letter_len = std::str::from_utf8(&rest[1..rest.len().min(5)])
                .unwrap_or_else(|error| {
                    std::str::from_utf8(&rest[1..1 + error.valid_up_to()]).unwrap_or_default()
                })
                .chars()
                .next()?
                .len_utf8();
            // Otherwise it is a lifetime or a label.
            (rest.get(1 + letter_len) == Some(&b'\'')).then_some(at + letter_len + 2)
        }
        _ => None,
    }
}

fn block_comment_len(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

fn quoted_len(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_code(text: &str, expected: &str) {
        let code = Source::new("a.rs", text).code;
        assert_eq!(code.len(), text.len());
        assert_eq!(code.split_whitespace().collect::<Vec<_>>().join(" "), expected);
    }

    #[test]
    fn comments_and_literals_are_blanked_and_code_is_kept() {
        check_code("a // b\nc /* d /* e */ f */ g", "a c g");
        check_code(r#"let a = "b \" {"; c"#, "let a = ; c");
        check_code("let a = r##\"b \"# {\"##; c", "let a = ; c");
        check_code("let a = br\"{\\\"; c", "let a = ; c");
        check_code("f('{', '\\'', b'}', 'é', 'x)", "f( , , b , , 'x)");
        check_code("fn f<'a>(b: &'a str) -> &'a str { b }", "fn f<'a>(b: &'a str) -> &'a str { b }");
        check_code("r#type \"x\" bar\"y\"", "r#type bar");
    }

    #[test]
    fn functions_are_found_with_their_length() {
        let text = "fn one() {}\ntrait T { fn none(&self); }\nfn two(\n    a: [u8; 4],\n) -> fn(u8) {\n    \"}\"\n}\n";
        let functions = Source::new("a.rs", text).functions();
        let expected = [("one", 1, 1), ("two", 3, 5)];
        let found: Vec<_> =
            functions.iter().map(|found| (found.name.as_str(), found.line, found.line_count)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn test_items_and_test_files_are_told_from_the_rest() {
        let text = "fn a() {}\n#[cfg(test)]\n#[rustfmt::skip]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n#[cfg(test)]\nmod d;\nfn e() {}\n";
        let source = Source::new("src/a.rs", text);
        let flags: Vec<bool> = (1..=10).map(|line| source.is_test_line(line)).collect();
        assert_eq!(flags, [false, true, true, true, true, true, false, true, true, false]);
        assert!(Source::new("crates/a/tests/it/main.rs", "fn a() {}\n").is_test_line(1));
        assert!(Source::new("crates/a/src/b/tests.rs", "fn a() {}\n").is_test_line(1));
        assert!(!Source::new("crates/a/src/latest.rs", "#[cfg(not(test))]\nfn a() {}\n").is_test_line(2));
    }
}
