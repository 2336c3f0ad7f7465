//! The program `laneway` as a child: the release binary beside this one, started as users start it.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::{Connection, get, post_with};
use crate::{Failure, cpu, memory, seam};

/// A server is quiet when it has written nothing for so long; it fills files ahead when it starts.
const QUIET: Duration = Duration::from_millis(200);
/// How long it may take to become quiet before it is measured anyway.
const QUIET_WAIT: Duration = Duration::from_secs(10);

/// A running server on a store of its own. It is killed with this: its folder is thrown away.
pub(crate) struct LanewayServer {
    process: Child,
    pub(crate) address: SocketAddr,
}

/// Where the server's program is.
pub(crate) fn check_program() -> Result<PathBuf, Failure> {
    let program = std::env::current_exe()?.with_file_name("laneway");
    if program.is_file() {
        return Ok(program);
    }
    let release = if cfg!(debug_assertions) { "" } else { " --release" };
    Err(format!(
        "the rows over HTTP need the server beside this program, and {} is not there: cargo build{release} -p \
         laneway-server",
        program.display()
    )
    .into())
}

impl LanewayServer {
    /// Serves a new store in this folder with these settings.
    pub(crate) fn start(folder: &Path, settings: &str) -> Result<Self, Failure> {
        std::fs::create_dir_all(folder)?;
        std::fs::write(folder.join("laneway.toml"), settings)?;
        let mut command = Command::new(check_program()?);
        command.args([
            "serve",
            "--config",
            "laneway.toml",
            "--store",
            "file:./data",
            "--listen",
            "127.0.0.1:0",
        ]);
        // What this shell sets for another server is not meant.
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("LANEWAY_"))
        {
            command.env_remove(name);
        }
        command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = command.spawn()?;
        let stdout = process.stdout.take().ok_or("the server has no standard output")?;
        // From here on it is killed whatever happens.
        let mut server = Self { process, address: SocketAddr::from(([127, 0, 0, 1], 0)) };
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let address = line.trim().strip_prefix("ready http://");
        server.address = address.ok_or_else(|| format!("the server did not start: {line:?}"))?.parse()?;
        server.wait_until_quiet()?;
        Ok(server)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// CPU seconds of all its threads since it began, without handlers in processes of their own.
    pub(crate) fn cpu_seconds(&self) -> Result<f64, Failure> {
        cpu::seconds_of(self.pid())
    }

    pub(crate) fn resident_mib(&self) -> Result<f64, Failure> {
        memory::resident_mib_of(&self.pid().to_string())
    }

    /// Changes something; the answer must be one of success.
    pub(crate) async fn change(&self, method: &str, path: &str, body: &str) -> Result<(), Failure> {
        let request = post_with(path, "", body);
        let request = [method.as_bytes(), &request["POST".len()..]].concat();
        let mut connection = Connection::open(self.address).await?;
        let answer = connection.call(&request).await?;
        if (200..300).contains(&answer.status) { Ok(()) } else { Err(answer.unexpected()) }
    }

    /// Events of a stream that its one processor has not ended.
    pub(crate) async fn lag(&self, stream: &str) -> Result<u64, Failure> {
        let mut connection = Connection::open(self.address).await?;
        let answer = connection.call(&get(&format!("/v1/streams/{stream}"))).await?;
        let told: serde_json::Value = serde_json::from_slice(answer.body)?;
        told["processors"][0]["lag"].as_u64().ok_or_else(|| answer.unexpected())
    }

    /// Waits until it writes nothing more, so that filling of files does not run into a measurement.
    pub(crate) fn wait_until_quiet(&self) -> Result<(), Failure> {
        let begun = seam::now();
        let mut written = self.written_bytes()?;
        while seam::now().duration_since(begun) < QUIET_WAIT {
            seam::rest(QUIET);
            let now = self.written_bytes()?;
            if now == written {
                return Ok(());
            }
            written = now;
        }
        Ok(())
    }

    fn written_bytes(&self) -> Result<u64, Failure> {
        let text = std::fs::read_to_string(format!("/proc/{}/io", self.pid()))?;
        let line = text.lines().find_map(|line| line.strip_prefix("write_bytes:"));
        Ok(line.ok_or("/proc/PID/io has no write_bytes")?.trim().parse()?)
    }
}

impl Drop for LanewayServer {
    fn drop(&mut self) {
        // One that has ended already cannot be killed, which is fine.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
