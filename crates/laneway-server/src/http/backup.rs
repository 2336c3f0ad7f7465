//! Backups of the store while the server works, into a folder on its machine.
//!
//! Callers choose only a name: the folder above it is the operator's setting `store.backup_dir`. A backup goes on when its
//! caller hangs up, and stops when the server is asked to end; either way a folder of that name is whole or not there.

use std::path::Path;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use laneway::files::FileStore;
use laneway_client::wire;

use super::answer::Json;
use super::code::Code;
use super::error::{Failure, Result, chain};
use super::{body, under_way};
use crate::node::Node;
use crate::seam;

const NAME_BYTES_MAX: usize = 128;
/// End of the name of a folder that is not a backup yet.
const PARTIAL: &str = ".partial";

/// Makes a consistent copy of the store while it works, into a new folder below `store.backup_dir` on the server's
/// machine. Answers when the copy is complete and durable; it holds everything that was acknowledged before the call. One
/// backup is made at a time, and only of a `file:` store.
#[utoipa::path(
    post, path = "/v1/store/backup", tag = "store",
    request_body = wire::BackupRequest,
    responses((status = 200, body = wire::Backup)),
)]
pub(super) async fn backup(
    State(node): State<Node>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<wire::Backup>> {
    let wire::BackupRequest { name } = body::object(&headers, body).await?;
    check_name(&name)?;
    let files = files(&node)?.clone();
    let Some(dir) = node.backup_dir().cloned() else {
        let detail = "store.backup_dir is not set: set it to a folder on the server's machine and start the server again; or \
                      stop the server and run laneway store backup file:PATH FOLDER";
        return Err(Failure::new(Code::BackupUnavailable, detail));
    };
    let Some(permit) = node.backing_up() else {
        let detail = "the server makes one backup at a time; try again when it is done";
        return Err(Failure::new(Code::BackupRunning, detail));
    };
    let (by, begun) = (under_way::by(), seam::steady());
    tracing::info!(name, by, "a backup begins");
    let folder = name.clone();
    let made = seam::blocking(move || {
        let _permit = permit;
        make(&node, &files, &dir, folder)
    });
    let made = made.await.inspect_err(|failure| {
        tracing::warn!(name, by, error = failure.detail, "a backup was not made");
    })?;
    let took = seam::steady().since(begun);
    tracing::info!(folder = made.folder, bytes = made.bytes, ?took, by, "a backup was made");
    Ok(Json(made))
}

/// Makes the backup on a thread that may wait for the disk.
fn make(node: &Node, files: &FileStore, dir: &Path, name: String) -> Result<wire::Backup> {
    let failed = |why: String| Failure::new(Code::BackupFailed, why);
    let dir = dir
        .canonicalize()
        .map_err(|error| failed(format!("store.backup_dir {} cannot be used: {error}", dir.display())))?;
    let to = dir.join(&name);
    // A link is in the way too, wherever it leads.
    match to.symlink_metadata() {
        Ok(_) => {
            let detail = format!("{} exists already; choose another name, or remove it", to.display());
            return Err(Failure::new(Code::BackupExists, detail));
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(format!("could not look for {}: {error}", to.display()))),
    }
    let needed = files.backup_bytes().map_err(|error| failed(chain(&error)))?;
    let space = rustix::fs::statvfs(&dir).map_err(|error| failed(format!("{}: {error}", dir.display())))?;
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    if free < needed {
        let dir = dir.display();
        return Err(failed(format!("a backup needs {needed} bytes, and {free} are free at {dir}")));
    }
    match files.backup_while(&to, || !node.is_stopping()) {
        Ok(made) => Ok(wire::Backup {
            name,
            folder: to.display().to_string(),
            bytes: made.bytes,
            segments: made.segments as u64,
        }),
        Err(error) if node.is_stopping() => Err(Failure::new(Code::ShuttingDown, chain(&error))),
        Err(error) => Err(failed(chain(&error))),
    }
}

/// The folder of the store, or what to do about a store without one.
fn files(node: &Node) -> Result<&FileStore> {
    node.files().ok_or_else(|| {
        let detail = if node.engine().stores().store.about().capabilities.shared {
            "the store is on a Redis server, which makes backups of its own: copy its RDB file after BGSAVE, or stop all \
             nodes and run laneway store copy redis://HOST:PORT file:PATH"
        } else {
            "the store is in memory, where nothing is kept; serve a file: store to have backups"
        };
        Failure::new(Code::BackupUnavailable, detail)
    })
}

/// A name that stays below the folder of backups.
fn check_name(name: &str) -> Result<()> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_plain = (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(fits);
    if is_plain && !name.starts_with('.') && !name.ends_with(PARTIAL) {
        return Ok(());
    }
    let limit = format!(
        "1 to {NAME_BYTES_MAX} letters, digits, '-', '_' or '.', not beginning with '.' and not ending in {PARTIAL:?}"
    );
    Err(Failure::value("name", format!("{name:?}"), limit))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use axum::Router;
    use axum::http::Request;
    use hyper::service::Service as _;
    use hyper_util::service::TowerToHyperService;
    use laneway::Laneway;
    use laneway::core::StreamSettings;
    use laneway_testkit::fault::polled;
    use tokio::sync::watch;

    use super::super::gate::{Gate, Limits, Mode};
    use super::super::guard::Hosts;
    use super::super::router::router;
    use super::*;
    use crate::access::Book;
    use crate::duties::Duties;
    use crate::listen::Exposure;
    use crate::node::Ending;

    #[test]
    fn name_of_a_backup_stays_below_its_folder() {
        for good in ["nightly", "2026-11-18", "a.b_C-9", &"x".repeat(NAME_BYTES_MAX)] {
            check_name(good).unwrap();
        }
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        for bad in ["", ".", "..", ".hidden", "../up", "a/b", "/etc", "a\\b", "a\0", "ä", "a.partial", &long]
        {
            let failure = check_name(bad).unwrap_err();
            let says = format!("name is {bad:?}, must be 1 to 128 letters");
            assert!(failure.code == Code::InvalidValue && failure.detail.starts_with(&says), "{failure:?}");
        }
    }

    /// A server without a network, on a folder store with one stream.
    struct World {
        node: Node,
        gate: Arc<Gate>,
        router: TowerToHyperService<Router>,
        dir: PathBuf,
        ending: watch::Sender<Ending>,
        _root: tempfile::TempDir,
    }

    impl World {
        async fn new() -> Self {
            let root = tempfile::tempdir().unwrap();
            let url = format!("file:{}", root.path().join("data").display());
            let app = Laneway::open(&url).await.unwrap();
            let settings = StreamSettings { partitions: 2, ..StreamSettings::default() };
            app.engine().define_stream("orders", settings).await.unwrap();
            let dir = root.path().join("backups");
            std::fs::create_dir(&dir).unwrap();
            let (node, ending) = Node::new(app, Duties::all(), None, Some(dir.clone()));
            let hosts = Hosts::new(Exposure::Machine, Vec::new());
            let gate = Gate::new(hosts, Book::empty(), Mode::ReadWrite, Limits::default());
            let router = TowerToHyperService::new(router(node.clone(), Arc::clone(&gate)));
            Self { node, gate, router, dir, ending, _root: root }
        }

        fn request(name: &str) -> Request<Body> {
            let request = Request::builder().method("POST").uri("/v1/store/backup");
            let request = request.header("host", "localhost").header("content-type", "application/json");
            request.body(Body::from(format!(r#"{{"name":"{name}"}}"#))).unwrap()
        }

        async fn refused(&self, name: &str) -> (u16, serde_json::Value) {
            let answer = self.router.call(Self::request(name)).await.unwrap();
            let status = answer.status().as_u16();
            let bytes = axum::body::to_bytes(answer.into_body(), usize::MAX).await.unwrap();
            let problem: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
            (status, problem["code"].clone())
        }

        /// The names in the folder of backups.
        fn names(&self) -> Vec<String> {
            let entries = std::fs::read_dir(&self.dir).unwrap();
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn backup_goes_on_when_its_caller_hangs_up() {
        let world = World::new().await;
        let (mut dropped, mut made) = (0, 0);
        for polls in 1.. {
            let name = format!("after-{polls}");
            let is_answered = polled(polls, world.router.call(World::request(&name))).await.is_some();
            while !world.gate.is_idle() {
                tokio::task::yield_now().await;
            }
            let folder = world.dir.join(&name);
            if folder.exists() {
                assert!(laneway::files::verify(&folder).unwrap().is_clean(), "{name}");
                made += 1;
            }
            let names = world.names();
            assert!(!names.iter().any(|name| name.ends_with(PARTIAL)), "{names:?}");
            if is_answered {
                assert!(folder.exists());
                break;
            }
            dropped += 1;
        }
        assert!(dropped > 0 && made > 1, "{dropped} were dropped, {made} made");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn one_backup_is_made_at_a_time() {
        let world = World::new().await;
        let permit = world.node.backing_up().unwrap();
        assert_eq!(world.refused("second").await, (409, "backup_running".into()));
        drop(permit);
        assert!(world.router.call(World::request("second")).await.unwrap().status().is_success());
        assert_eq!(world.names(), ["second"]);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn server_that_is_about_to_end_leaves_no_half_backup() {
        let world = World::new().await;
        world.ending.send_replace(Ending::Stopping);
        assert_eq!(world.refused("late").await, (503, "shutting_down".into()));
        assert!(world.names().is_empty(), "{:?}", world.names());
    }
}
