//! The pages of the documentation do what they say: their own commands are pasted into a shell.

use crate::program::{Program, paste};

/// Everything that a page tells to paste, in its order, for a server at this address.
fn commands(page: &str, address: &str) -> String {
    let path = format!("{}/../../docs/{page}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let blocks = text.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let script: String = blocks.collect();
    assert!(script.contains("http://127.0.0.1:7070"), "the page names the default address");
    format!("set -e\n{}", script.replace("http://127.0.0.1:7070", address))
}

/// Curl alone makes a stream and a pull processor, sends ordered events, works, submits a job and reads its result.
#[tokio::test(flavor = "multi_thread")]
async fn the_curl_page_works_when_pasted() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let written = paste(commands("start/curl.md", program.address()));
    let of_ann: Vec<&str> = written.lines().filter(|line| line.starts_with("delivering ann")).collect();
    assert_eq!(
        of_ann,
        ["delivering ann first", "delivering ann second", "delivering ann third"],
        "{written}"
    );
    assert!(written.contains("delivering bob only"), "{written}");
    assert_eq!(written.matches(r#""accepted":true"#).count(), 4, "{written}");
    let lines: Vec<serde_json::Value> =
        written.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let why = lines.iter().find(|told| told["why"]["code"] == "behind");
    assert!(why.is_some_and(|job| job["status"] == "waiting"), "{written}");
    let [.., job, list] = &lines[..] else { panic!("{written}") };
    assert_eq!((&job["status"], &job["attempt"], &job["key"]), (&"done".into(), &1.into(), &"ann".into()));
    assert_eq!(job["result"]["delivered"], job["ref"], "{written}");
    assert_eq!(
        (list["items"][0]["id"].as_str(), list["items"].as_array().unwrap().len()),
        (job["id"].as_str(), 1)
    );
    program.stop().await;
}
