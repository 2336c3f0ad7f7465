//! What Redis Cluster will ask for, held against every command that the suite causes: data is touched by scripts alone, a
//! script touches only keys that its caller declared, and the keys of one call share one hash tag.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::Arc;

use laneway_testkit::conformance;

use crate::conformance::RedisFixture;
use crate::server::Server;

/// One per method of the store and of its documents, one for the catalogue, one for the shards' part of it, one for the clock.
const SCRIPTS: usize = 16;
/// What the store says besides: who the server is, and wake-ups.
const BESIDE: [&str; 8] = ["CLIENT", "CONFIG", "HELLO", "INFO", "PING", "PUBLISH", "SCRIPT", "SUBSCRIBE"];
const END: &str = "that was all";

/// What a server was told, in order.
struct Overheard(BufReader<TcpStream>);

/// A command, and whether a script gave it.
struct Command {
    inside: bool,
    words: Vec<String>,
}

impl Overheard {
    fn listen(server: &Server) -> Self {
        let mut stream = TcpStream::connect(server.address()).expect("the server is there");
        stream.write_all(b"MONITOR\r\n").expect("it takes commands");
        let mut overheard = Self(BufReader::new(stream));
        assert_eq!(overheard.line(), "+OK\r\n");
        overheard
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("a line of plain text");
        line
    }

    fn next(&mut self) -> Command {
        let line = self.line();
        let (head, words) = line.split_once("] ").expect("where it comes from, then its words");
        Command { inside: head.ends_with(" lua"), words: words_of(words) }
    }

    fn until_the_end(mut self) -> Seen {
        let mut seen = Seen::default();
        loop {
            let command = self.next();
            if command.words == ["PING", END] {
                return seen;
            }
            seen.hear(command);
        }
    }
}

/// Words between quotes, as the server shows them: a quote inside one has a backslash before it, and so has a backslash.
fn words_of(line: &str) -> Vec<String> {
    let (mut words, mut word, mut letters) = (Vec::new(), None::<String>, line.chars());
    while let Some(letter) = letters.next() {
        match (&mut word, letter) {
            (None, '"') => word = Some(String::new()),
            (None, _) => {}
            (Some(_), '"') => words.extend(word.take()),
            (Some(open), '\\') => open.extend(letters.next()),
            (Some(open), _) => open.push(letter),
        }
    }
    words
}

/// What a command inside a script touches.
fn keys_of(words: &[String]) -> &[String] {
    match &words[0].to_uppercase()[..] {
        "PUBLISH" | "TIME" => &[],
        "DEL" | "UNLINK" => &words[1..],
        _ => &words[1..2],
    }
}

fn tag_of(key: &str) -> &str {
    let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
    tag.unwrap_or_else(|| panic!("{key} has no hash tag")).0
}

#[derive(Default)]
struct Seen {
    scripts: BTreeSet<String>,
    declared: Vec<String>,
    calls: usize,
    commands: usize,
}

impl Seen {
    fn hear(&mut self, Command { inside, words }: Command) {
        if inside {
            self.commands += 1;
            let undeclared = keys_of(&words).iter().find(|key| !self.declared.contains(key));
            assert_eq!(undeclared, None, "{words:?}");
        } else if words[0] == "EVALSHA" {
            let count: usize = words[2].parse().expect("how many keys there are");
            self.calls += 1;
            self.scripts.insert(words[1].clone());
            self.declared = words[3..3 + count].to_vec();
            let tags: BTreeSet<&str> = self.declared.iter().map(|key| tag_of(key)).collect();
            assert_eq!(tags.len(), 1, "keys of one call lie in {tags:?}");
        } else {
            assert!(BESIDE.contains(&&words[0][..]), "{words:?}");
        }
    }
}

#[test]
fn every_key_is_declared_and_the_keys_of_a_call_share_one_tag() {
    let server = Server::start(&[]);
    let overheard = Overheard::listen(&server);
    let fixture = Arc::new(RedisFixture::at(server.url()));
    let seen = std::thread::scope(|scope| {
        let listener = scope.spawn(move || overheard.until_the_end());
        // Long histories say the same again.
        for case in conformance::all().into_iter().filter(|case| case.module != "histories") {
            conformance::run(fixture.clone(), case);
        }
        let _: String = server.command(&["PING", END]);
        listener.join().expect("nothing undeclared")
    });
    println!("{} calls of {} scripts, {} commands inside", seen.calls, seen.scripts.len(), seen.commands);
    assert_eq!(seen.scripts.len(), SCRIPTS, "every script was heard");
}
